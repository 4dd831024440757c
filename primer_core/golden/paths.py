"""Where a path of the golden set lies: in which source, and at which path there."""

from collections.abc import Iterable
from dataclasses import dataclass

from primer_core.failures import PrimerError


@dataclass(frozen=True, slots=True)
class PathMap:
    """Folders of the golden set → places in sources, as (folder, source, folder there).

    The longest folder that holds a path decides; without one the first part of the path is the source's name.
    """

    entries: tuple[tuple[str, str, str], ...] = ()

    @staticmethod
    def parse(entries: Iterable[str]) -> "PathMap":
        """The map that entries FOLDER=SOURCE or FOLDER=SOURCE/FOLDER make; an empty FOLDER before the sign stands for every path.

        Raises PrimerError for an entry that is none, and for a folder that is named twice.
        """
        found: dict[str, tuple[str, str]] = {}
        for entry in entries:
            folder, sign, place = entry.partition("=")
            source, _, below = place.strip().strip("/").partition("/")
            if not sign or not source:
                raise PrimerError(f"golden map entry {entry!r} is not FOLDER=SOURCE; write it as drive=SOURCE or tickets/web=SOURCE/folder")
            name = folder.strip().strip("/")
            if name in found:
                raise PrimerError(f"golden map entry {entry!r}: folder {name!r} stands twice; keep one of them")
            found[name] = (source, below)
        return PathMap(tuple((folder, *place) for folder, place in found.items()))

    def place(self, path: str) -> tuple[str, str]:
        """(source, path in the source); the second is empty where the path names no more than the source."""
        for folder, source, below in sorted(self.entries, key=lambda entry: -len(entry[0])):
            if not folder or path.startswith(f"{folder}/"):
                rest = path.removeprefix(folder).lstrip("/") if folder else path
                return source, f"{below}/{rest}" if below else rest
        source, _, rest = path.partition("/")
        return source, rest
