"""Attachments of a mail: what a person attached. Pictures that the mail's own text shows, such as a signature's logo, are left out."""

import io
from collections.abc import Generator
from email import policy
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import BinaryIO

from primer_resources.parser.text import mail_bytes

MAIL_SUFFIX = ".eml"


def mail_members(path: Path) -> Generator[tuple[str, BinaryIO]]:
    """(name, bytes) of each attachment, in the mail's order. An attached mail is one file, with its own attachments in it."""
    yield from _attachments(BytesParser(policy=policy.default).parsebytes(mail_bytes(path.read_bytes())))


def _attachments(part: Message, is_related: bool = False) -> Generator[tuple[str, BinaryIO]]:
    """`is_related`: the part belongs to the text beside it (multipart/related)."""
    if part.get_content_type() == "message/rfc822":
        for inner in part.get_payload():
            if isinstance(inner, Message):
                subject = str(inner.get("subject") or "mail")
                yield part.get_filename() or f"{subject}{MAIL_SUFFIX}", io.BytesIO(inner.as_bytes(policy=policy.compat32))
        return
    if part.is_multipart():
        for inner in part.get_payload():
            if isinstance(inner, Message):
                yield from _attachments(inner, part.get_content_type() == "multipart/related")
        return
    if _is_attachment(part, is_related):
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield part.get_filename() or f"attachment.{part.get_content_subtype()}", io.BytesIO(payload)


def _is_attachment(part: Message, is_related: bool) -> bool:
    is_shown = part.get("content-id") is not None and part.get_content_maintype() in ("image", "video", "audio")
    if is_shown and (is_related or part.get_content_disposition() != "attachment"):
        return False  # many mail programs call it an attachment all the same
    if part.get_content_disposition() == "attachment" or part.get_filename() is not None:
        return True
    return part.get_content_maintype() != "text"
