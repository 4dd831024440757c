"""Failures: the reasons a document can end with, and the kinds of error that decide what happens next.

| kind | what Primer does |
|---|---|
| DocumentFault | dead letter at once, with a reason; no retry is spent |
| Transient | back to the entry state with backoff; the fifth attempt is a dead letter |
| Deferred | back to the entry state, no attempt spent (the outside service is down) |
| LeaseLost | nothing is written; another holder has the work |
| SystemFault | the step fails and Dagster retries the run; no document is blamed |
"""

import errno
from enum import StrEnum


class Reason(StrEnum):
    """Why a document ended as a dead letter."""

    TOO_LARGE = "too_large"
    ENCRYPTED = "encrypted"
    UNSUPPORTED_FORMAT = "unsupported_format"
    CORRUPT = "corrupt"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    OCR_BELOW_BAR = "ocr_below_bar"
    OCR_UNAVAILABLE = "ocr_unavailable"
    ACL_UNREADABLE = "acl_unreadable"
    PARSE_TIMEOUT = "parse_timeout"
    PARSE_MEMORY = "parse_memory"
    PARSE_CRASH = "parse_crash"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"
    SYMLINK_LOOP = "symlink_loop"
    OUTSIDE_ROOT = "outside_root"
    NAME_NOT_UTF8 = "name_not_utf8"
    CHANGING = "changing"
    BYTES_DELETED = "bytes_deleted"
    BYTES_LOST = "bytes_lost"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"


NEXT_ACTION: dict[Reason, str] = {
    Reason.TOO_LARGE: "split the file, or raise the size limit and retry",
    Reason.ENCRYPTED: "save the file without a password and sync again",
    Reason.UNSUPPORTED_FORMAT: "convert the file to a supported format (html, md, txt, csv, docx, pptx, xlsx, eml, pdf or a picture)",
    Reason.CORRUPT: "open and save the file again, or remove it",
    Reason.TRUNCATED: "upload the whole file again",
    Reason.EMPTY: "nothing to index: the file holds no text, and no picture of any",
    Reason.OCR_BELOW_BAR: "`primer review show DOC` has the pages: accept what was read right, scan again at 300 dpi, or add "
    "their language to PRIMER_OCR_LANGUAGES",
    Reason.OCR_UNAVAILABLE: "install tesseract-ocr (`apt-get install tesseract-ocr`), then `primer dlq retry`",
    Reason.ACL_UNREADABLE: "let the connector read the permissions and sync again",
    Reason.PARSE_TIMEOUT: "raise the parse time limit and retry, or simplify the file",
    Reason.PARSE_MEMORY: "raise the parse memory limit and retry, or split the file",
    Reason.PARSE_CRASH: "the parser died on this file; report it, or save the file in another format",
    Reason.INCOMPLETE: "some pages could not be read; save the file again, or raise the limits and retry",
    Reason.UNREADABLE: "the error says what stands in the way: grant read permission, mend or remove the link, or move out what is no file",
    Reason.SYMLINK_LOOP: "remove the link that points back to itself",
    Reason.OUTSIDE_ROOT: "the link leaves the source's folder: move the file inside, or add its folder as a source",
    Reason.NAME_NOT_UTF8: "rename the file to a valid UTF-8 name",
    Reason.CHANGING: "the file kept changing while it was read; it is tried again at the next sync",
    Reason.BYTES_DELETED: "`primer replay --doc DOC --to-stage parse --apply`: its source is asked for it again",
    Reason.BYTES_LOST: "its source is asked for it again at the next sync by itself; where the source does not have it either, restore the "
    "drive from a backup and sync again",
    Reason.ATTEMPTS_EXHAUSTED: "read the error, mend its cause, then `primer dlq retry`",
}
"""What a person should do about each reason."""


class PrimerError(Exception):
    """An error a user can meet: its text is one line that names the thing, the value and the fix."""


class DocumentFault(PrimerError):
    """The document's own fault: a dead letter at once."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Transient(PrimerError):
    """Worth trying again: a timeout, a busy lock, a throttled service."""


class Deferred(PrimerError):
    """The outside service is down; the work waits and no attempt is spent."""


class LeaseLost(PrimerError):
    """The lease ran out and someone else holds the work."""


class SystemFault(PrimerError):
    """Primer's own surroundings failed (disk full, store gone); no document is to blame."""


SYSTEM_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EIO})
"""A full or failing disk, no descriptors left: nothing that a document does. Damaged data may give others (EINVAL for a seek before the
beginning), or an OSError without any number."""


def is_of_system(error: BaseException) -> bool:
    """Whether an error is the system's, so that no document is to blame."""
    return isinstance(error, OSError) and error.errno in SYSTEM_ERRNOS
