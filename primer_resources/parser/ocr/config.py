"""What a deployment chooses about OCR. Light: it travels from the settings to the workers."""

from dataclasses import dataclass

from primer_core.recognised import DEFAULT_BAR
from primer_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class OcrConfig:
    """`languages` are Tesseract's names (eng, deu, chi_sim), in order of preference. A page read with a lower confidence than `bar`
    (0 to 1) waits for a person's review."""

    languages: tuple[str, ...] = ("eng",)
    bar: float = DEFAULT_BAR

    @property
    def options(self) -> tuple[str, ...]:
        """What of it shapes the output, for the parser's version."""
        return (f"ocr_languages={'+'.join(self.languages)}", f"ocr_bar={self.bar:g}")


def ocr_config(settings: Settings) -> OcrConfig:
    """The choice that the settings make."""
    return OcrConfig(settings.ocr_languages, settings.ocr_bar)
