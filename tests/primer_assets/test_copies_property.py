"""Whatever documents of few contents go through, in whichever order and with runs killed in their midst: people find what they may see
and nothing else, at every moment, and in the end the rows are those of an index that was built afresh."""

import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st

from primer_core.visibility import TwoFlips
from tests.copies_bench import SPOILT, CopiesBench, passages

TEXTS = ("alpha|beta", "alpha|gamma", "delta", SPOILT)
PATHS = ("a/1.md", "a/2.md", "b/1.md")
GROUPS = ("red", "blue")
BOUNDARIES = ("claimed", "intended", "vectors_written", "keywords_written", "flipped")

names = st.sampled_from(["north", "south"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), names, st.sampled_from(PATHS), st.sampled_from(TEXTS)),
        st.tuples(st.just("put"), names, st.sampled_from(PATHS), st.sampled_from(TEXTS[:2])),
        st.tuples(st.just("remove"), names, st.sampled_from(PATHS), st.none()),
        st.tuples(st.just("rename"), names, st.sampled_from(PATHS), st.sampled_from(PATHS)),
        st.tuples(st.just("share"), names, st.sampled_from("ab"), st.sampled_from([(), ("red",), ("blue",), GROUPS, None])),
        st.tuples(st.just("sync"), names, st.none(), st.booleans()),
        st.tuples(st.just("sync"), names, st.none(), st.booleans()),
        st.tuples(st.just("sweep"), st.none(), st.none(), st.none()),
        st.tuples(st.just("kill"), st.none(), st.sampled_from(BOUNDARIES), st.integers(1, 2)),
        st.tuples(st.just("meanwhile"), names, st.sampled_from(BOUNDARIES), st.integers(1, 2)),
        st.tuples(st.just("mend"), st.none(), st.none(), st.none()),
    ),
    max_size=30,
)


class Killed(Exception):
    """The run is over, as if its process had been killed."""


class Story:
    """A bench, and what a person of each group must and may find in it."""

    def __init__(self, home: Path) -> None:
        self.bench = CopiesBench(f"sqlite:///{home / 'catalog.sqlite'}", home)
        self.bench.make()
        self.had: dict[str, set[str]] = defaultdict(set)
        self.begun: dict[str, Callable[[], list[tuple[str, str]]]] = {}

    def tell(self, kind: str, name: str, what: str, value: object) -> None:
        """One step of the story."""
        if kind == "sweep":
            self.bench.sweep(checkpoint=lambda _name: self.look())
        elif kind == "kill":
            self.sweep_until(what, value, self._die)
        elif kind == "meanwhile":
            self.sweep_until(what, value, lambda: self.bench.sync(name))
        elif kind == "mend":
            self.bench.is_mended = True
            self.bench.catalog.dead_letters.retry([letter.job_id for letter in self.bench.catalog.lookup.dead_letters()])
        elif kind == "sync":
            self.bench.sync(name, full=bool(value))
        else:
            self.change(kind, name, what, value)
        assert self.bench.broken_links() == []
        self.look()

    def change(self, kind: str, name: str, what: str, value: object) -> None:
        """Something happens at a source."""
        source = self.bench.sources[name]
        if kind == "put":
            self.bench.put(name, what, str(value))
        elif kind == "share" and value is None:
            self.bench.share(name, what, error="403")
        elif kind == "share":
            assert isinstance(value, tuple)
            self.bench.share(name, what, *value)
        elif kind == "remove" and what in source.items:
            source.remove(what)
        elif kind == "rename" and what in source.items and value not in source.items:
            source.rename(what, str(value))

    def sweep_until(self, boundary: str, hit: object, then: Callable[[], None]) -> None:
        """A sweep in which something happens when it passes a boundary for the n-th time."""
        passed = 0

        def checkpoint(name: str) -> None:
            nonlocal passed
            self.look()
            passed += name == boundary
            if name == boundary and passed == hit:
                then()
                self.look()

        try:
            self.bench.sweep(checkpoint=checkpoint)
        except Killed:
            self.bench.tools["v1"].keywords.close()

    @staticmethod
    def _die() -> None:
        raise Killed

    def look(self) -> None:
        """Nobody is shown a document that he may not see, nor anything but all the passages of one content that the document had."""
        rows = {row.doc_id: row for row in self.bench.living()}
        for row in rows.values():
            if row.content_hash is not None:
                self.had[row.doc_id].add(row.content_hash)
        for group in GROUPS:
            results = self.bench.search(group)
            for result in results:
                row = rows[result.doc_id]
                assert (result.source, result.path, result.uri) == (row.source_id, row.path, row.uri)
            self.judge(group, [(result.doc_id, result.text) for result in results])
            if group in self.begun:  # a search that asked the indexes when this was looked at last, and asks the gate now
                try:
                    self.judge(group, self.begun[group]())
                except TwoFlips:
                    event("two flips during a search")
            self.begun[group] = self.bench.begin(group)

    def judge(self, group: str, found: list[tuple[str, str]]) -> None:
        """What a search found: (doc_id, passage)."""
        shown: dict[str, list[str]] = defaultdict(list)
        for doc_id, passage in found:
            shown[doc_id].append(passage)
        allowed = self.open_to(group)
        for doc_id, texts in shown.items():
            assert doc_id in allowed, "a document is shown to whom it is not open"
            whole = [sorted(chunk.text for chunk in passages(self.bench.contents[each])) for each in self.had[doc_id]]
            assert sorted(texts) in whole, "a document is shown in part, twice, or mixed"

    def open_to(self, group: str) -> set[str]:
        """The living documents whose permissions the catalog knows and that are open to the group."""
        acls = {acl_id: row for name in self.bench.names for acl_id, row in self.bench.catalog.acls.of_source(name).items()}
        return {
            row.doc_id
            for row in self.bench.living()
            if row.acl_error is None and row.acl_id in acls and group in acls[row.acl_id].allow_groups
        }

    def end(self) -> None:
        """All is read and indexed: everybody finds all that is open to him, once a document that he may see."""
        for name in self.bench.names:
            self.bench.sync(name, full=True)
        self.bench.drain()
        assert self.bench.broken_links() == []
        assert self.bench.row_sets() == self.bench.fresh_row_sets()
        assert self.bench.reconcile().agrees
        for group in GROUPS:
            open_to = self.open_to(group)
            hashes = {row.content_hash for row in self.bench.living() if row.doc_id in open_to} - {None}
            texts = {content for content in map(self.bench.contents.__getitem__, hashes) if self.is_readable(content)}
            assert self.bench.texts(group) == {chunk.text for content in texts for chunk in passages(content)}
        for row in self.bench.living():
            if row.content_hash is not None:
                good = self.is_readable(self.bench.contents[row.content_hash])
                assert row.status == ("indexed" if good else "dead_letter"), "every document is covered, a copy too"
        self.bench.catalog.close()

    def is_readable(self, content: bytes) -> bool:
        return self.bench.is_mended or SPOILT not in content.decode()


@settings(max_examples=25)
@given(steps)
def test_whatever_happens_to_documents_with_few_contents_the_index_is_as_if_built_afresh(story: list[tuple[str, str, str, object]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        told = Story(Path(home))
        for step in story:
            told.tell(*step)
        told.end()
