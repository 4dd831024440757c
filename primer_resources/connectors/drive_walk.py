"""The listing of a drive: one walk over a folder tree, sorted and streamed, that says of itself whether it is evidence.

| met on the way | what the listing does |
|---|---|
| a regular file | an item; with fault NAME_NOT_UTF8 where a part of its path is not UTF-8 |
| a junk or hidden name | left out and counted (rules in drive_names) |
| a link to a file inside the root | an item, with the access of the place it leads to |
| a link to a folder inside the root | walked once, with the access of the place it leads to; a second link to it is left out and counted |
| a link back to a folder it stands in, or to itself | an item with fault SYMLINK_LOOP |
| a link that leaves the root | an item with fault OUTSIDE_ROOT; what it leads to is never looked at |
| a dangling link, a pipe, socket or device, a file whose state cannot be read | an item with fault UNREADABLE; nothing is opened |
| a file that vanished since its folder was read | left out and counted |
| a folder that cannot be read, or that vanished | a problem: the listing is incomplete |

A link grants nothing: who may read a document is decided by where its bytes lie, or a link from an open folder would show a closed one.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from primer_core.failures import Reason, SystemFault, Transient
from primer_resources.connectors.access import AccessRules, absolute_path
from primer_resources.connectors.base import Access, ListedItem
from primer_resources.connectors.drive_names import file_uri, find_junk, is_utf8, show_name, unshow_name

PROBLEMS_SHOWN = 100
"""Problems kept word for word; the rest is a number. A share without permissions would otherwise fill memory and log."""

NOT_READ_TO_THE_END = "the listing was not read to its end"

_SPECIAL_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a device"),
)


def fingerprint(state: os.stat_result) -> str:
    """What changes whenever the content may have: size in bytes and modification time in nanoseconds."""
    return f"{state.st_size}:{state.st_mtime_ns}"


def check_root(root: Path) -> str:
    """The real path of the source's folder. Raises SystemFault when it is not there, is no folder or cannot be looked at."""
    try:
        real = os.path.realpath(root, strict=True)
        if real == "/":
            problem, fix = "is the whole machine", "set `root` to the folder that holds the documents"
        elif stat.S_ISDIR(Path(real).stat().st_mode):
            return real
        else:
            problem, fix = "is not a folder", "set `root` to the folder that holds the documents"
    except FileNotFoundError:
        problem, fix = "does not exist", "mount or create it, or correct `root`"
    except OSError as error:
        problem, fix = f"cannot be looked at ({error.strerror})", "let Primer's user read it, or correct `root`"
    raise SystemFault(f"source folder {root} {problem}; {fix} in the source's settings")


def describe_kind(mode: int) -> str:
    """What a thing that is neither file, folder nor link is, for people."""
    return next((text for is_kind, text in _SPECIAL_KINDS if is_kind(mode)), "no regular file")


def is_beneath(real: str, root: str) -> bool:
    """Whether a real path is `root` or below it."""
    return real == root or real.startswith(f"{root}/")


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder under way. `place` is its path below the root as the system gave it, `real` where it truly lies, absolute.
    `access` is that of the files that lie in it."""

    place: str
    real: str
    access: Access
    entries: Iterator[os.DirEntry[str]]


@dataclass(frozen=True, slots=True)
class _Found:
    """What an entry is: a folder to enter, or a document to list, perhaps with a fault. `real` is where it truly lies, absolute."""

    real: str
    state: os.stat_result | None
    access: Access
    is_folder: bool = False
    fault: Reason | None = None
    error: str = ""


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


class DriveListing:
    """One listing of one drive. Memory holds the names of the folders on the way down, so the widest folder is what counts."""

    def __init__(self, root: Path, rules: AccessRules, access_file: Path, include_hidden: bool) -> None:
        self._root = root
        self._root_absolute = absolute_path(root)
        self._rules = rules
        self._access_file = f"{os.path.realpath(access_file.parent)}/{access_file.name}"
        self._include_hidden = include_hidden
        self._begin()

    def _begin(self) -> None:
        self._finished = False
        self._problems: list[str] = []
        self._more_problems = 0
        self._skipped: Counter[str] = Counter()
        self._linked: set[str] = set()
        self._scopes: set[str] = set()

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be listed. Empty only after a listing that was read to its end and saw everything."""
        more = (f"and {self._more_problems} more folders",) if self._more_problems else ()
        return (*self._problems, *more, *(() if self._finished else (NOT_READ_TO_THE_END,)))

    @property
    def cursor(self) -> None:
        """Folders have no feed."""

    @property
    def skipped(self) -> Mapping[str, int]:
        """What was left out on purpose: rule → number of names."""
        return dict(self._skipped)

    @property
    def notices(self) -> tuple[str, ...]:
        """Worth a person's eye after the end: folders that the access file names and the drive does not have.

        A misspelt name protects nothing.
        """
        if self.problems:
            return ()
        return tuple(
            f"the access file names folder {place!r}, which is not on the drive: misspelt, or gone"
            for place in sorted(set(self._rules.folders) - self._scopes)
        )

    def __iter__(self) -> Iterator[ListedItem]:
        """Walk from the start, in the order of the names' bytes, a folder's contents at its own place.

        Raises SystemFault when the root is not there or cannot be read.
        """
        self._begin()
        self._root_real = check_root(self._root)
        before = Path(self._root_real).stat()
        top = self._enter("", self._root_real)
        if top is None:
            raise SystemFault(f"source folder {self._root} cannot be listed ({self._problems[0]}); let Primer's user read it")
        stack = [top]
        while stack:
            folder = stack[-1]
            entry = next(folder.entries, None)
            if entry is None:
                stack.pop()
                continue
            found = self._look(entry, folder, stack)
            if found is None:
                continue
            place = _below(folder.place, entry.name)
            if not found.is_folder:
                yield self._item(place, found)
                continue
            entered = self._enter(place, found.real)
            if entered is not None:
                stack.append(entered)
        self._check_same_root(before)
        self._finished = True

    def find(self, path: str) -> ListedItem | None:
        """The item that a listing shows under this path now. Raises Transient where it cannot tell, SystemFault as a listing does."""
        native = unshow_name(path)
        self._begin()
        self._root_real = check_root(self._root)
        if native is None:
            return None
        *folders, name = native.split("/")
        stack = [_Folder("", self._root_real, self._access_in(self._root_real), iter(()))]
        for part in folders:
            found = self._find_in(stack, part)
            if found is None or not found.is_folder:
                return None
            if found.real != f"{stack[-1].real}/{part}":
                return self._find_by_walk(path)
            stack.append(_Folder(_below(stack[-1].place, part), found.real, self._access_in(found.real), iter(())))
        found = self._find_in(stack, name)
        return None if found is None or found.is_folder else self._item(native, found)

    def _find_in(self, stack: list[_Folder], name: str) -> _Found | None:
        """What stands under a name in the last folder. The folder is read, since a file system may open a name in other letters than
        those that it lists."""
        folder = stack[-1]
        try:
            with os.scandir(folder.real) as scan:
                entry = next((entry for entry in scan if entry.name == name), None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Transient(f"{show_name(folder.place) or self._root} cannot be looked into ({error.strerror})") from error
        found = None if entry is None else self._look(entry, folder, stack)
        if self._problems:
            raise Transient(f"{self._problems[0]}; it is looked at again")
        return found

    def _find_by_walk(self, path: str) -> ListedItem | None:
        """The same behind a link to a folder: only a walk tells whether an earlier link leads there too, and takes its documents."""
        found = next((item for item in self if item.path == path), None)
        if found is None and self.problems:
            raise Transient(f"{path} was not found, and the listing is incomplete ({self.problems[0]})")
        return found

    def _problem(self, text: str) -> None:
        if len(self._problems) < PROBLEMS_SHOWN:
            self._problems.append(text)
        else:
            self._more_problems += 1

    def _check_same_root(self, before: os.stat_result) -> None:
        """A share that was unmounted under the walk leaves another folder under the same name."""
        try:
            after = Path(self._root_real).stat()
        except OSError as error:
            self._problem(f"{self._root}: gone at the end of the listing ({error.strerror})")
            return
        if (after.st_dev, after.st_ino) != (before.st_dev, before.st_ino):
            self._problem(f"{self._root}: another folder stood there at the end of the listing")

    def _enter(self, place: str, real: str) -> _Folder | None:
        try:
            with os.scandir(real) as scan:
                entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            self._problem(f"{show_name(place) or self._root}: {error.strerror}")
            return None
        access = self._access_in(real)
        self._scopes.add(access.scope)
        return _Folder(place, real, access, iter(entries))

    def _beneath_root(self, real: str) -> str:
        return real[len(self._root_real) + 1 :]

    def _access_in(self, real_folder: str) -> Access:
        return self._rules.find(show_name(self._beneath_root(real_folder)))

    def _look(self, entry: os.DirEntry[str], folder: _Folder, stack: list[_Folder]) -> _Found | None:
        """What an entry is, or None when it is left out."""
        real = f"{folder.real}/{entry.name}"
        junk = find_junk(entry.name, self._include_hidden)
        if junk is None and real == self._access_file:
            junk = "access file"
        if junk is not None:
            self._skipped[junk] += 1
            return None
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError as error:
            return self._unknown(entry, folder, error)
        if stat.S_ISLNK(state.st_mode):
            return self._look_behind(real, state, folder, stack)
        if stat.S_ISDIR(state.st_mode):
            return _Found(real, state, folder.access, is_folder=True)
        return self._file(real, state, folder.access)

    def _file(self, real: str, state: os.stat_result, access: Access) -> _Found:
        if stat.S_ISREG(state.st_mode):
            return _Found(real, state, access)
        kind = describe_kind(state.st_mode)
        return _Found(real, state, access, fault=Reason.UNREADABLE, error=f"{kind}, not a regular file; it was not opened")

    def _unknown(self, entry: os.DirEntry[str], folder: _Folder, error: OSError) -> _Found | None:
        """An entry whose state cannot be read. Where its folder's own record says that it is a folder, documents are missing."""
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
        except OSError:
            is_folder = True
        if not is_folder and error.errno == errno.ENOENT:
            self._skipped["vanished while listed"] += 1
            return None
        if is_folder:
            self._problem(f"{show_name(_below(folder.place, entry.name))}: {error.strerror}")
            return None
        unknown = f"its state cannot be read: {error.strerror}"
        return _Found(f"{folder.real}/{entry.name}", None, folder.access, fault=Reason.UNREADABLE, error=unknown)

    def _look_behind(self, path: str, link: os.stat_result, folder: _Folder, stack: list[_Folder]) -> _Found | None:
        """What the link at `path`, whose own state is `link`, leads to."""

        def fault(reason: Reason, error: str) -> _Found:
            return _Found(path, link, folder.access, fault=reason, error=error)

        real = os.path.realpath(path)
        if not is_beneath(real, self._root_real):
            return fault(Reason.OUTSIDE_ROOT, "the link leads out of the source's folder")
        try:
            state = Path(path).stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                return fault(Reason.SYMLINK_LOOP, "the link leads to itself")
            return fault(Reason.UNREADABLE, f"the link leads to nothing that can be read: {error.strerror}")
        if not stat.S_ISDIR(state.st_mode):
            return self._file(real, state, self._access_in(real.rpartition("/")[0]))
        if any(is_beneath(above.real, real) for above in stack):
            return fault(Reason.SYMLINK_LOOP, "the link leads back to a folder that it stands in")
        if real in self._linked:
            # Its documents are listed at their own place and behind the first link: following every link could take for ever.
            self._skipped["folder reached by an earlier link"] += 1
            return None
        self._linked.add(real)
        return _Found(real, state, folder.access, is_folder=True)

    def _item(self, place: str, found: _Found) -> ListedItem:
        fault, error = found.fault, found.error
        if fault is None and not is_utf8(place):
            fault, error = Reason.NAME_NOT_UTF8, "a name in the path is not UTF-8; the bytes are shown as \\xNN"
        state = found.state
        return ListedItem(
            path=show_name(place),
            native_path=self._beneath_root(found.real),
            uri=file_uri(f"{self._root_absolute}/{place}"),
            title=show_name(place.rpartition("/")[2]),
            fingerprint=fingerprint(state) if state is not None else "",
            modified_ns=state.st_mtime_ns if state is not None else 0,
            size=state.st_size if state is not None and stat.S_ISREG(state.st_mode) else 0,
            access=found.access,
            fault=fault,
            error=error,
        )
