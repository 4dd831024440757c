"""Names on a drive: how a path is shown, what its URI is, and which names are junk that no listing shows. No I/O."""

import re
from urllib.parse import quote_from_bytes

JUNK_NAMES = frozenset({".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", "$RECYCLE.BIN", "System Volume Information", "@eaDir"})
"""Files and folders that file managers and servers leave behind; nobody wrote them. Compared without regard to case."""

JUNK_PREFIXES = ("~$", "._", ".~lock.")
"""Lock files of Office and LibreOffice, and resource forks of macOS: they come and go with an open editor, and hold no document."""

REPOSITORY_FOLDERS = frozenset({".git", ".svn", ".hg"})
"""Inner folders of version control: thousands of files that are no documents. Left out even where hidden names are listed."""

HIDDEN_PREFIX = "."
"""Names that begin with a dot are hidden by convention: settings, secrets (.env, .ssh), caches, trash and snapshots of a file server.
Indexing them would show secrets and bring deleted documents back, so they are left out unless `include_hidden` says otherwise."""

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_JUNK_FOLDED = frozenset(name.casefold() for name in JUNK_NAMES)


def find_junk(name: str, include_hidden: bool) -> str | None:
    """Why a name is left out of a listing ("junk" or "hidden"), or None when it is listed."""
    if name in REPOSITORY_FOLDERS or name.startswith(JUNK_PREFIXES) or name.casefold() in _JUNK_FOLDED:
        return "junk"
    if name.startswith(HIDDEN_PREFIX) and not include_hidden:
        return "hidden"
    return None


def is_utf8(name: str) -> bool:
    """Whether a name or a path as the system gave it (surrogateescape) was UTF-8 on disk."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def show_name(name: str) -> str:
    r"""A name or a path as people and the catalog see it: always valid UTF-8, and two names never look the same.

    Bytes that are not UTF-8 become \xNN. A real backslash becomes \x5c, or a name that spells out an escape could meet an escaped one.
    """
    return name.replace("\\", r"\x5c").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def unshow_name(shown: str) -> str | None:
    """The name or path that `show_name` shows like this, as the system gives it; None where it shows none like this."""
    try:
        raw = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), shown.encode("utf-8"))
    except UnicodeEncodeError:
        return None
    native = raw.decode("utf-8", "surrogateescape")
    return native if show_name(native) == shown else None


def file_uri(absolute_path: str) -> str:
    """The file:// URI of an absolute path as the system gave it; every byte outside RFC 3986's unreserved set is percent-encoded."""
    return "file://" + quote_from_bytes(absolute_path.encode("utf-8", "surrogateescape"), safe="/")
