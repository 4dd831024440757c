"""What a deployment chooses about PDF. Light: it travels from the settings to the workers, and its version is asked without Docling."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from primer_core.pdf_engines import PdfEngine
from primer_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class PdfConfig:
    """`artifacts` is the folder of Docling's models; without one they are looked for in the hub's cache."""

    engine: PdfEngine = PdfEngine.RULES
    artifacts: Path | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """What of it shapes the output, for the parser's version: the engine, and which files its models are."""
        if self.engine is PdfEngine.RULES:
            return ("pdf=rules",)
        return ("pdf=models", f"pdf_models={'hub' if self.artifacts is None else fingerprint(self.artifacts)}")


def pdf_config(settings: Settings) -> PdfConfig:
    """The choice that the settings make."""
    return PdfConfig(settings.pdf_engine, settings.docling_artifacts)


def fingerprint(folder: Path) -> str:
    """Twelve hex digits of what lies in a folder: names and sizes, since weights are too big to be read for this."""
    files = sorted((str(file.relative_to(folder)), file.stat().st_size) for file in folder.rglob("*") if file.is_file())
    return hashlib.sha256(repr(files).encode()).hexdigest()[:12]
