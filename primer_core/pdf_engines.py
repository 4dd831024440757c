"""What can lay a PDF out."""

from enum import StrEnum


class PdfEngine(StrEnum):
    """RULES need nothing besides the installed packages; MODELS are Docling's own, whose weights somebody must have put in place."""

    RULES = "rules"
    MODELS = "models"
