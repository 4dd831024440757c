"""Runs one Docling backend that gives a DoclingDocument straight away (everything but PDF)."""

from io import BytesIO

from docling.backend.abstract_backend import DeclarativeDocumentBackend
from docling.datamodel.backend_options import BackendOptions
from docling.datamodel.base_models import InputFormat
from docling.datamodel.document import InputDocument, build_invalid_input_errors, get_input_rejection_cause
from docling.exceptions import DocumentLoadError
from docling_core.types.doc import DoclingDocument

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Source


def convert(
    data: bytes,
    format_: InputFormat,
    backend: type[DeclarativeDocumentBackend],
    source: Source,
    options: BackendOptions | None = None,
) -> DoclingDocument:
    """Convert `data` with a backend chosen by Primer's own sniffing, so Docling's guess at the format has no say.

    Raises DocumentFault(CORRUPT) where the backend refuses the file; whatever else a backend raises goes up as it is.
    """
    given = InputDocument(BytesIO(data), format_, backend, backend_options=options, filename=source.plain_name)
    if not given.valid:
        cause = get_input_rejection_cause(given)
        if isinstance(cause, MemoryError):
            raise cause
        raise _refused("; ".join(error.error_message for error in build_invalid_input_errors(given)), cause, source) from cause
    opened = given._backend
    assert isinstance(opened, DeclarativeDocumentBackend)
    try:
        return opened.convert()
    except DocumentLoadError as error:
        raise _refused(str(error), error, source) from error


def _refused(error: str, cause: BaseException | None, source: Source) -> DocumentFault:
    """The fault, with the innermost exception's words: Docling's own say no more than that it failed."""
    deepest = cause
    while deepest is not None and (deepest.__cause__ or deepest.__context__):
        deepest = deepest.__cause__ or deepest.__context__
    detail = f"{error} ({deepest})" if deepest is not None and str(deepest) not in error else error
    return DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as {source.format.value}: {source.tidy(detail)}")
