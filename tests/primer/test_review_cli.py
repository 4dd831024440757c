"""`primer review` as a person types it; every mistake is one line that names the fix."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from primer.workspace import Workspace
from primer_core.ids import content_hash, doc_id
from primer_core.lanes import Lane
from primer_resources.catalog.contents import NewContent
from primer_resources.catalog.documents import VersionFacts
from primer_resources.catalog.reviews import SeenPage
from tests.deployment import Deployment, primer, primer_json, workspace
from tests.primer_resources.catalog.world import place

FAX = content_hash(b"fax")
LISTED = {"doc_id", "uri", "source", "path", "page", "region", "confidence", "state"}
SHOWN = LISTED | {"text", "image", "parser_version", "decided_at", "decided_by"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A deployment with one document, `docs/fax.pdf`, of which pages 2 and 5 wait; page 5 in two regions."""
    monkeypatch.setenv("PRIMER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRIMER_BUCKETS", "1")
    with workspace(tmp_path / "home", buckets=1) as space:
        Deployment(space, tmp_path / "docs", "docs")
        catalog = space.catalog
        catalog.contents.add(NewContent("default", FAX, 3, "application/pdf", Lane.SLOW, "fax"))
        store = space.store.of("default")
        pictures = {
            (page, region): store.put_picture(FAX, "p", page, region, b"PNG %d %d" % (page, region), "run")
            for page, region in ((2, 0), (5, 0), (5, 1))
        }
        seen = [SeenPage(page, region, 0.25, f"wurds of {page}.{region}", key) for (page, region), key in pictures.items()]
        facts = VersionFacts("1", 1, FAX, "application/pdf", "00", "indexed", None)
        with catalog.database.begin() as connection:
            catalog.documents.add(connection, catalog.sources.get("docs"), doc_id("docs", "fax.pdf"), place("fax.pdf"), facts)
            catalog.reviews.record(connection, "default", FAX, "p", {"p"}, seen)
        yield space


def refused(*words: str) -> str:
    """What a command says when it refuses."""
    from primer_core.failures import PrimerError

    with pytest.raises(PrimerError) as caught:
        primer(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_list_and_show_have_their_fields(made: Workspace) -> None:
    listed = primer_json("review", "list")
    assert [set(row) for row in listed] == [LISTED] * 3
    assert [(row["path"], row["page"], row["region"], row["state"]) for row in listed] == [
        ("fax.pdf", 2, 0, "open"),
        ("fax.pdf", 5, 0, "open"),
        ("fax.pdf", 5, 1, "open"),
    ]
    (shown,) = primer_json("review", "show", "docs/fax.pdf", "2")
    assert set(shown) == SHOWN
    assert (shown["text"], shown["confidence"]) == ("wurds of 2.0", 0.25)
    assert Path(shown["image"]).read_bytes() == b"PNG 2 0"
    code, words = primer("review", "list", "--source", "docs")
    assert code == 0
    assert "docs/fax.pdf" in words
    assert "25%" in words
    assert "wurds of 5.1" in primer("review", "show", "docs/fax.pdf")[1]
    assert json.loads(primer("status", "docs/fax.pdf", "--json")[1])["pages_to_review"] == 2


def test_a_decision_is_listed_with_who_made_it_and_makes_the_document_again(made: Workspace) -> None:
    assert primer_json("review", "reject", "docs/fax.pdf", "2") == {
        "doc_id": doc_id("docs", "fax.pdf"),
        "state": "rejected",
        "pages": [2],
        "made_again": [],
    }
    accepted = primer_json("review", "accept", "docs/fax.pdf")
    assert (accepted["pages"], accepted["made_again"]) == ([5], [doc_id("docs", "fax.pdf")])
    assert primer_json("review", "list") == []
    assert [row["state"] for row in primer_json("review", "list", "--all")] == ["rejected", "accepted", "accepted"]
    shown: list[Any] = primer_json("review", "show", "docs/fax.pdf", "5")
    assert all(row["decided_by"] and row["decided_at"] for row in shown)
    assert primer_json("status", "docs/fax.pdf")["stage"] == "pending_parse"
    assert [row.jobs for row in made.catalog.queue.waiting_slow()] == [1]


def test_a_picture_is_written_where_it_is_wanted(made: Workspace, tmp_path: Path) -> None:
    assert primer("review", "show", "docs/fax.pdf", "2", "--image", str(tmp_path / "page.png"))[0] == 0
    assert (tmp_path / "page.png").read_bytes() == b"PNG 2 0"
    assert "name one page" in refused("review", "show", "docs/fax.pdf", "--image", str(tmp_path / "all.png"))
    assert "can be written" in refused("review", "show", "docs/fax.pdf", "2", "--image", str(tmp_path / "nowhere" / "p.png"))


def test_mistakes_are_named(made: Workspace) -> None:
    assert "page 3 is not under review; pages that wait: 2,5" in refused("review", "accept", "docs/fax.pdf", "3")
    assert "no such page under review" in refused("review", "show", "docs/fax.pdf", "3")
    assert "is unknown" in refused("review", "show", "docs/none.pdf")
    assert "source 'none' is unknown" in refused("review", "list", "--source", "none")
    primer("review", "reject", "docs/fax.pdf")
    assert "no page of this document waits" in refused("review", "accept", "docs/fax.pdf")
