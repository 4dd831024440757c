"""`primer prove` and `primer purge` as an operator types them: where a document is, and that it is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from primer.workspace import Workspace
from primer_assets import purged_documents
from primer_assets.stage_run import Tally
from tests.deployment import Deployment, primer, primer_json, workspace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setenv("PRIMER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRIMER_BUCKETS", "1")
    monkeypatch.setenv("PRIMER_PURGE_GRACE", "0s")
    with workspace(tmp_path / "home", buckets=1, purge_grace="0s") as space:
        made = Deployment(space, tmp_path / "docs", "docs")
        made.write("a.md", "# Ferries\n\nThe ferry leaves at noon.\n")
        made.write("b.md", "# Trains\n\nThe train leaves at dawn.\n")
        assert made.sync().counts["indexed"] == 2
        yield made


def objects(space: Workspace) -> list[Path]:
    return [path for path in (space.settings.home / "store").rglob("*") if path.is_file()]


def test_every_piece_of_a_living_document_is_shown_and_looked_for(place: Deployment) -> None:
    shown = primer_json("prove", "docs/a.md")
    assert (shown["state"], shown["is_whole"], shown["proofs"]) == ("living", True, [])
    assert {(piece["part"], piece["state"]) for piece in shown["pieces"]} == {
        ("blobs", "present"), ("chunks", "present"), ("core", "empty"), ("parsed", "present")
    }  # fmt: skip
    assert all(piece["is_there"] for piece in shown["pieces"] if piece["state"] == "present")
    assert shown["rows"] == {"v1": {"vector": {"expected": 1, "found": 1}, "keyword": {"expected": 1, "found": 1}}}
    code, said = primer("prove", "docs/a.md")
    assert code == 0
    assert "is living" in said
    missing = next(piece for piece in shown["pieces"] if piece["part"] == "chunks")
    (Path(missing["drive"]) / missing["object_key"]).unlink()
    code, said = primer("prove", "docs/a.md")
    assert code == 1
    assert "MISSING" in said


def test_a_deleted_document_is_proved_gone_once_its_purge_has_ended(place: Deployment) -> None:
    (place.folder / "a.md").unlink()
    place.sync()
    first = primer_json("prove", "docs/a.md")
    assert first["state"] in ("deleted", "purged"), "a sync purges what is due at its end"
    figures = primer_json("purge")
    assert figures["states_left"] == figures["objects_left"] == 0
    shown = primer_json("prove", "docs/a.md")
    assert (shown["state"], shown["pieces"], shown["is_whole"]) == ("purged", [], True)
    (proof,) = shown["proofs"]
    figures = {"vector_rows": 1, "keyword_rows": 1, "objects": 4, "elements": 2, "cached_vectors": 1, "unread_chunk_sets": 0}
    assert proof["looked_at"] == figures
    assert [content["bytes"] for content in proof["contents"]] == ["gone"]
    code, said = primer("prove", "docs/a.md")
    assert code == 0
    assert "is purged" in said
    assert "looked for and not found: 1 vector rows" in said
    assert place.search("ferry at noon", k=1)[0].path == "b.md"
    place.write("a.md", "# Ferries\n\nThe ferry leaves at noon.\n")
    assert place.sync().counts["embedded"] == 1, "its vector was forgotten with it"
    assert primer_json("prove", "docs/a.md")["state"] == "living"


def test_bytes_that_are_still_to_go_are_shown_whatever_was_proved_of_an_earlier_life(
    place: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "a.md").unlink()
    place.sync()
    primer("purge")
    place.write("a.md", "# Ferries\n\nThe ferry leaves at night.\n")
    place.sync()
    (place.folder / "a.md").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(purged_documents._Purging, "finish", lambda *_: None)  # the process dies when the catalog has let go
        place.sync()
        primer("purge")
    shown = primer_json("prove", "docs/a.md")
    assert (shown["state"], len(shown["proofs"])) == ("deleted", 1)
    assert {(piece["owner"], piece["is_there"]) for piece in shown["pieces"]} == {("freed", True)}
    assert sorted(piece["part"] for piece in shown["pieces"]) == ["blobs", "chunks", "parsed", "parsed"]
    assert "its purge has yet to end" in primer("prove", "docs/a.md")[1]
    primer("purge")
    shown = primer_json("prove", "docs/a.md")
    assert (shown["state"], shown["pieces"], len(shown["proofs"])) == ("purged", [], 2)


def test_what_a_document_held_before_an_edit_is_shown_as_long_as_it_is_kept(place: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(purged_documents, "purge", lambda *_: Tally())  # what is due stays
        place.write("a.md", "# Ferries\n\nThe ferry leaves at night.\n")
        place.sync()
    shown = primer_json("prove", "docs/a.md")
    assert [piece["owner"] for piece in shown["pieces"] if piece["part"] == "blobs"] == ["present", "earlier"]
    assert len({piece["object_key"] for piece in shown["pieces"] if piece["is_there"]}) == 8
    assert shown["is_whole"]


def test_a_document_that_nothing_was_stored_of_is_not_called_purged(place: Deployment) -> None:
    (place.folder / "nowhere.md").symlink_to("/nonexistent/file")
    place.sync()
    (place.folder / "nowhere.md").unlink()
    place.sync()
    shown = primer_json("prove", "docs/nowhere.md")
    assert (shown["state"], shown["pieces"], shown["proofs"]) == ("unstored", [], [])
    assert "nothing was stored of it" in primer("prove", "docs/nowhere.md")[1]


def test_the_proof_of_an_earlier_life_says_nothing_of_a_later_one(place: Deployment) -> None:
    (place.folder / "a.md").unlink()
    place.sync()
    primer("purge")
    assert primer_json("prove", "docs/a.md")["state"] == "purged"
    (place.folder / "a.md").symlink_to("/nonexistent/file")
    place.sync()
    (place.folder / "a.md").unlink()
    place.sync()
    shown = primer_json("prove", "docs/a.md")
    assert (shown["state"], len(shown["proofs"])) == ("unstored", 1)


def test_purging_with_nothing_to_do_says_so(place: Deployment) -> None:
    before = objects(place.workspace)
    code, said = primer("purge")
    assert (code, said.strip()) == (0, "0 proofs, 0 objects, 0 bytes freed, 0 vectors")
    assert objects(place.workspace) == before
