"""Pages below the bar on their way through the whole job: out of the index until a person lets them in, and never asked twice."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from primer.workspace import Workspace
from primer_core.lanes import Lane
from primer_core.reviews import ReviewState
from primer_resources.catalog.lookup import DocumentStatus
from primer_resources.parser.base import ParseRequest
from tests.deployment import Deployment, workspace
from tests.page_reader import PICTURE, PageReader, ReadingToolkit, scan

GOOD, BLURRED = "The harbour master signs the book of tides.", "Zeppelin moorings are let by the pier office."


@dataclass
class Place(Deployment):
    """A source of scans, read by doubles."""

    fast: PageReader = field(default_factory=PageReader)
    slow: PageReader = field(default_factory=PageReader)

    def log(self, *more: tuple[float, str]) -> str:
        """A document with a good page, a blurred one and more; no other test's, since a decision reaches every source."""
        return scan((0.9, f"{GOOD} It is volume {self.name}."), (0.3, BLURRED), *more)

    def run(self) -> dict[str, int]:
        return self.sync(toolkit=ReadingToolkit(self.workspace.toolkit, self.fast, self.slow)).counts

    def finds(self, query: str) -> set[str]:
        """The documents that hold this word, quoted by the reader."""
        return {hit.path for hit in self.search(query) if query in hit.text}

    def open_pages(self) -> list[tuple[str, int]]:
        listed = self.workspace.catalog.reviews.listed([ReviewState.OPEN], source_id=self.name)
        return [(review.path, review.page) for review in listed]

    def decide(self, path: str, state: ReviewState, *pages: int) -> tuple[str, ...]:
        catalog = self.workspace.catalog
        doc_id = catalog.lookup.find_document(f"{self.name}/{path}")[0]
        content = catalog.documents.by_id([doc_id])[doc_id].content_hash or ""
        return catalog.reviews.decide("default", content, pages, state, "ann").doc_ids

    def status(self, path: str) -> DocumentStatus:
        lookup = self.workspace.catalog.lookup
        return lookup.status(lookup.find_document(f"{self.name}/{path}")[0], "v1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with workspace(tmp_path_factory.mktemp("reviews") / "home", buckets=1) as made:
        yield made


@pytest.fixture
def place(shared: Workspace, tmp_path: Path) -> Place:
    made = Place.__new__(Place)
    made.fast, made.slow = PageReader(), PageReader()
    Deployment.__init__(made, shared, tmp_path / "docs", f"scans{len(shared.catalog.sources.all())}")
    return made


def test_a_page_below_the_bar_is_listed_not_indexed_and_joins_the_index_once_accepted(place: Place) -> None:
    place.write("log.txt", place.log())
    assert place.run()["indexed"] == 1
    assert (place.finds("harbour"), place.finds("Zeppelin")) == ({"log.txt"}, set())
    assert place.open_pages() == [("log.txt", 2)]
    assert place.status("log.txt").pages_to_review == 1
    (review,) = place.workspace.catalog.reviews.listed([ReviewState.OPEN], source_id=place.name)
    assert (review.text, review.confidence) == (BLURRED, 0.3)
    assert place.workspace.store.of("default").get_picture(review.object) == PICTURE % 2
    assert Path(place.workspace.store.of("default").locate(review.object)).read_bytes() == PICTURE % 2

    assert len(place.decide("log.txt", ReviewState.ACCEPTED)) == 1
    assert place.finds("harbour") == {"log.txt"}, "until the sweep, readers quote what the rows were written from"
    counts = place.run()
    assert (counts["unchanged"], counts["parsed"], counts["embedded"]) == (1, 1, 1)
    assert (place.finds("harbour"), place.finds("Zeppelin")) == ({"log.txt"}, {"log.txt"})
    assert place.status("log.txt").pages_to_review == 0
    assert place.reconcile().agrees

    place.decide("log.txt", ReviewState.REJECTED, 2)
    assert place.run()["chunks_gone"] == 1, "a change of mind is a change of content"
    assert place.finds("Zeppelin") == set()
    assert place.reconcile().agrees


def test_a_document_of_bad_pages_only_is_a_dead_letter_until_one_is_accepted(place: Place) -> None:
    place.write("fax.txt", scan((0.1, "nothing to see"), (0.5, BLURRED)))
    assert place.run()["failed"] == 1
    assert place.dead() == {"fax.txt": "ocr_below_bar"}
    assert place.open_pages() == [("fax.txt", 1), ("fax.txt", 2)]
    place.decide("fax.txt", ReviewState.ACCEPTED, 2)
    assert place.run()["indexed"] == 1
    assert place.dead() == {}
    assert (place.finds("Zeppelin"), place.finds("nothing")) == ({"fax.txt"}, set())
    assert place.open_pages() == [("fax.txt", 1)]
    assert place.status("fax.txt").stage == "indexed"


def test_a_decision_is_on_the_content_so_copies_follow_it_and_later_ones_ask_nothing(place: Place) -> None:
    for path in ("a.txt", "b.txt"):
        place.write(path, place.log())
    place.write("r.txt", place.log((0.9, "An index of ships follows.")))
    place.run()
    assert place.open_pages() == [("a.txt", 2), ("b.txt", 2), ("r.txt", 2)]
    assert len(place.decide("a.txt", ReviewState.ACCEPTED)) == 1, "one of the two has the rows that stand for both"
    assert place.decide("r.txt", ReviewState.REJECTED) == ()
    place.write("late.txt", place.log())
    place.write("r-late.txt", (place.folder / "r.txt").read_text())
    counts = place.run()
    assert (counts["indexed"], counts["parsed"]) == (3, 1), "one parse with the page, none for the copies and the rejected one"
    assert [len(place.finds(word)) for word in ("Zeppelin", "ships")] == [1, 1], "a content is found once, whoever has it"
    assert place.finds("Zeppelin") < {"a.txt", "b.txt", "late.txt"}
    assert place.finds("ships") < {"r.txt", "r-late.txt"}
    assert place.open_pages() == []
    assert place.reconcile().agrees


def test_a_decision_made_while_the_document_is_parsed_counts(place: Place) -> None:
    place.write("log.txt", place.log((0.2, "Gondola hire by the hour.")))
    place.run()
    place.decide("log.txt", ReviewState.ACCEPTED, 3)
    read: list[frozenset[int]] = []

    def change_mind(request: ParseRequest) -> None:
        read.append(request.accepted_pages)
        if len(read) == 1:
            place.decide("log.txt", ReviewState.REJECTED, 3)
            place.decide("log.txt", ReviewState.ACCEPTED, 2)

    place.fast.during = change_mind
    place.run()
    assert read == [frozenset({3}), frozenset({2})]
    assert (place.finds("Zeppelin"), place.finds("Gondola")) == ({"log.txt"}, set())
    assert place.workspace.catalog.queue.unfinished([place.name]) == 0
    assert place.dead() == {}
    assert place.reconcile().agrees


def test_a_long_document_is_left_to_the_slow_lane_and_the_others_are_indexed_before_it(place: Place) -> None:
    place.fast.most_pages = 2
    place.write("a-long.txt", scan(*[(0.9, f"Atlas plate {n} shows the coast.") for n in range(3)]))
    place.write("b-wiki.txt", scan((0.9, GOOD)))
    seen: list[set[str]] = []
    place.slow.during = lambda _request: seen.append(place.finds("harbour"))
    counts = place.run()
    assert (counts["indexed"], counts["parsed"]) == (2, 2)
    assert seen == [{"b-wiki.txt"}], "when the slow parse begins, the other document is found already"
    assert [request.pages for request in place.slow.read] == [3]
    assert place.finds("Atlas") == {"a-long.txt"}
    place.write("c-copy.txt", (place.folder / "a-long.txt").read_text())
    assert place.run()["parsed"] == 0
    (content,) = {row.content_hash for row in place.workspace.catalog.documents.by_path(place.name, ["a-long.txt"]).values()}
    assert place.workspace.catalog.contents.lanes("default", [content]) == {content: Lane.SLOW}
