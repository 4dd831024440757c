"""Opening a PDF: how many pages it has, and which of the reasons keeps it shut. With PDFium, apart from what reads it."""

import pypdfium2

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Source

PAGES_LOOKED_AT = 20
"""Pages that are searched for pictures when no words were found."""

_END_MARK = b"%%EOF"
_END_WITHIN = 1024


def count_pages(source: Source) -> int:
    """Pages by PDFium's count. Raises DocumentFault (encrypted, truncated, corrupt, empty)."""
    try:
        with pypdfium2.PdfDocument(source.path) as pdf:
            pages = len(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentFault(Reason.ENCRYPTED, f"{source.name} asks for a password; save it without one") from error
        if "security" in str(error).lower():
            raise DocumentFault(Reason.ENCRYPTED, f"{source.name} is encrypted in a way that cannot be opened ({error})") from error
        if is_cut_off(source):
            raise DocumentFault(Reason.TRUNCATED, f"{source.name} ends without its end mark; upload the whole file again") from error
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as pdf ({error})") from error
    if pages == 0:
        raise DocumentFault(Reason.CORRUPT, f"{source.name} is a pdf without pages")
    return pages


def is_cut_off(source: Source) -> bool:
    """Whether the end mark that every whole PDF carries is missing."""
    size = source.path.stat().st_size
    with source.path.open("rb") as file:
        file.seek(max(0, size - _END_WITHIN))
        return _END_MARK not in file.read()


def describe_textless(source: Source, pages: int) -> str:
    """Why a PDF gave no words: pictures on its pages make it a scan."""
    with pypdfium2.PdfDocument(source.path) as pdf:
        pictured = sum(
            1
            for number in range(min(pages, PAGES_LOOKED_AT))
            if any(True for _ in pdf[number].get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))
        )
    if pictured:
        return f"{source.name} has {pages} pages without a text layer and with pictures: and no text was found in these"
    return f"{source.name} has {pages} pages and no text"
