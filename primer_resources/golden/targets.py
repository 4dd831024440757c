"""The documents that paths of the golden set name, and who may read them."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from primer_core.golden.paths import PathMap
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.documents import KnownDocument


@dataclass(frozen=True, slots=True)
class Target:
    """A living document by a path of the golden set."""

    source: str
    document: KnownDocument

    @property
    def name(self) -> str:
        """SOURCE/path, as people write it."""
        return f"{self.source}/{self.document.path}"


class Targets:
    """Finds the documents of one tenant that paths name."""

    def __init__(self, catalog: Catalog, tenant_id: str, paths: PathMap) -> None:
        self._catalog = catalog
        self._paths = paths
        self.tenant_id = tenant_id

    def find(self, paths: Collection[str]) -> dict[str, Target]:
        """path → the living document there; paths that name none are left out.

        A document is named by its exact path, or else by that path without its ending: a ticket has none in its tracker.
        """
        places = {path: self._paths.place(path) for path in paths}
        wanted: dict[str, set[str]] = defaultdict(set)
        for source, rest in places.values():
            wanted[source].update(_names(rest))
        there = {source: self._catalog.documents.by_path(source, names) for source, names in wanted.items()}
        found = {}
        for path, (source, rest) in places.items():
            for name in _names(rest):
                document = there[source].get(name)
                if document is not None and document.tenant_id == self.tenant_id:
                    found[path] = Target(source, document)
                    break
        return found

    def expected(self, path: str) -> str:
        """SOURCE/path that a path of the golden set stands for, whether or not there is such a document."""
        return "/".join(part for part in self._paths.place(path) if part)

    def contents(self, doc_ids: Collection[str]) -> dict[str, str | None]:
        """doc_id → hash of the document's content."""
        return {doc_id: document.content_hash for doc_id, document in self._catalog.documents.by_id(doc_ids).items()}

    def readers(self, documents: Iterable[KnownDocument]) -> tuple[str, ...]:
        """The groups that may read any of the documents, in alphabetical order."""
        groups: set[str] = set()
        for document in documents:
            access = self._catalog.access.of_document(document.doc_id)
            if access.readable:
                groups.update(*(scope.groups for scope in access.scopes if scope.acl_id == document.acl_id))
        return tuple(sorted(groups))


def _names(path: str) -> tuple[str, ...]:
    bare = str(PurePosixPath(path).with_suffix("")) if PurePosixPath(path).name else path
    return tuple(dict.fromkeys(name for name in (path, bare) if name))
