"""Whether Tesseract and its languages are installed, and what to do where they are not. Light: asked before any worker starts.

A missing Tesseract is no error until a page needs it: deployments without scans run without it. A language that was asked for and is
missing is one at once, since Tesseract would read with the others and nobody would know.
"""

import os
import shutil
import subprocess

from primer_core.failures import DocumentFault, PrimerError, Reason

PROGRAM = "tesseract"
ORIENTATION = "osd"
"""The language data that tells which way up a page is."""

PROBE_SECONDS = 30
PACKAGE = "tesseract-ocr"


def installed_languages() -> frozenset[str] | None:
    """The languages that Tesseract has data for; None where there is no Tesseract on the PATH, or none that runs."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    try:
        listed = subprocess.run(
            [program, "--list-langs"],
            capture_output=True,
            text=True,
            check=True,
            timeout=PROBE_SECONDS,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return frozenset(listed.stdout.split("\n")[1:]) - {""}


def check_languages(languages: tuple[str, ...]) -> None:
    """Raises PrimerError that names each language which is not installed and its Debian package. Silent without Tesseract."""
    installed = installed_languages()
    if installed is None:
        return
    missing = [language for language in (*languages, ORIENTATION) if language not in installed]
    if missing:
        packages = " ".join(_package(language) for language in missing)
        raise PrimerError(
            f"OCR language {', '.join(missing)} is not installed (PRIMER_OCR_LANGUAGES = {'+'.join(languages)}): "
            f"`apt-get install {packages}`, or set PRIMER_OCR_LANGUAGES to some of {', '.join(sorted(installed - {ORIENTATION}))}"
        )


def unavailable(name: str, page: int) -> DocumentFault:
    """The fault of a document with a page that needs OCR where there is no Tesseract."""
    return DocumentFault(
        Reason.OCR_UNAVAILABLE,
        f"{name}: page {page} has no readable text layer, and Tesseract, which would read its picture, is not installed; "
        f"`apt-get install {PACKAGE}`, then `primer dlq retry`",
    )


def _package(language: str) -> str:
    """Debian's name of a language's package: tesseract-ocr-chi-sim holds chi_sim."""
    return f"{PACKAGE}-{language.replace('_', '-').lower()}"
