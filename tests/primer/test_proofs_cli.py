"""`primer prove` and `primer purge` as an operator types them: where a document is, and that it is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from primer.workspace import Workspace
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


def test_purging_with_nothing_to_do_says_so(place: Deployment) -> None:
    before = objects(place.workspace)
    code, said = primer("purge")
    assert (code, said.strip()) == (0, "0 proofs, 0 objects, 0 bytes freed, 0 vectors")
    assert objects(place.workspace) == before
