"""Replays over a small deployment with the real parser, chunker, model and indexes, asked for on the command line."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import PrimerError
from primer_core.lanes import Lane
from primer_core.stages import Operation
from primer_core.stored_states import DeletedReason, Part
from primer_resources.catalog.jobs import NewJob
from tests.deployment import Deployment, primer, workspace

NOTHING_NEW = {"chunks_new": 0, "chunks_gone": 0, "embedded": 0, "failed": 0}
NAME, SAMPLE = "docs", ("page-1.md", "page-2.md")
LONG_AGO = 1_700_000_000
"""Seconds since the epoch: what was changed a moment ago is read again by each sync, and its bytes are held for that."""


def replay(*words: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run `primer replay --json`. Returns its candidates and its totals."""
    code, output = primer("replay", *words, "--json")
    assert code == 0, output
    *lines, last = [json.loads(line) for line in output.splitlines()]
    return lines, last["totals"]


def lose(place: Deployment, paths: Sequence[str], *parts: Part) -> None:
    """Parts of what was made of documents are gone by policy."""
    catalog = place.workspace.catalog
    tenant = place.workspace.settings.tenant
    for document in catalog.documents.by_path(NAME, paths).values():
        for state in catalog.states.of_content(tenant, document.content_hash or ""):
            with catalog.database.begin() as connection:
                left = state.manifest.without_bodies(parts, DeletedReason.POST_PARSE_POLICY, catalog.now())
                assert catalog.states.change(connection, state, left)


def parse_without_bytes(place: Deployment, path: str) -> None:
    """Have a document parsed of which nothing is kept, as another parser or a person's decision would."""
    catalog, tenant = place.workspace.catalog, place.workspace.settings.tenant
    lose(place, [path], Part.PARSED, Part.CHUNKS, Part.CORE)
    document = catalog.documents.by_path(NAME, [path])[path]
    content_hash, parser = document.content_hash or "", catalog.deployments.live().recipe.parser.version
    job = NewJob(
        document.doc_id, NAME, document.source_version, content_hash, document.bucket or "", Lane.FAST, Operation.UPSERT, catalog.now()
    )
    with catalog.database.begin() as connection:
        catalog.parses.forget(connection, tenant, content_hash, [parser])
        catalog.jobs.add(connection, [job], ["v1"])


def test_a_replay_through_parse_chunk_and_embed_gives_no_new_id_and_embeds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with workspace(tmp_path / "home", buckets=2) as made:
        monkeypatch.setenv("PRIMER_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("PRIMER_BUCKETS", "2")
        place = Deployment(made, tmp_path / "docs", NAME)
        for number in range(4):
            rules = "\n\n".join(f"Rule {number}.{n} of the harbour." for n in range(30))
            os.utime(place.write(f"page-{number}.md", f"# Page {number}\n\n{rules}"), (LONG_AGO, LONG_AGO))
        first = place.sync().counts
        assert (first["indexed"], first["failed"]) == (4, 0)
        assert first["embedded"] > 0
        rows = set(made.catalog.lookup.passing_rows("v1")), place.reconcile().expected

        with pytest.raises(PrimerError, match="refused; say which documents"):
            primer("replay", "--to-stage", "chunk")
        with pytest.raises(PrimerError, match="with its zone"):
            primer("replay", "--to-stage", "chunk", "--since", "2026-01-31")

        found, totals = replay("--to-stage", "chunk", "--source", NAME)
        assert [each["verdict"] for each in found] == ["replayable"] * 4
        assert (totals["applied"], totals["candidates"], made.catalog.queue.unfinished()) == (False, 4, 0)
        assert "dry run: --apply makes 4 jobs" in primer("replay", "--to-stage", "embed", "--source", NAME)[1]

        for stage, lost in (("chunk", [Part.CHUNKS]), ("parse", [Part.PARSED, Part.CHUNKS, Part.CORE])):
            lose(place, SAMPLE, *lost)
            docs = [word for path in SAMPLE for word in ("--doc", f"{NAME}/{path}")]
            chosen, totals = replay("--to-stage", stage, *docs, "--apply")
            assert (len(chosen), totals["actions"]["job"]) == (2, 2)
            again = place.sync().counts
            assert NOTHING_NEW.items() <= again.items()
            assert again["chunks_kept"] > 0
            assert again["parsed"] == (2 if stage == "parse" else 0)
            assert (set(made.catalog.lookup.passing_rows("v1")), place.reconcile().expected) == rows
            assert place.reconcile().agrees

        page = made.catalog.body_policies.settle()
        assert page.objects == 4
        for freed in made.catalog.states.freed(0, 100):
            made.store.of(freed.tenant_id).intake.delete([freed.object_key])
        parse_without_bytes(place, "page-3.md")
        place.sync()
        assert place.dead() == {"page-3.md": "bytes_deleted"}
        _, totals = replay("--to-stage", "parse", "--outcome", "dead", "--apply")
        assert totals["actions"]["fetch"] == 1
        asked = place.sync().counts
        assert NOTHING_NEW.items() <= asked.items()
        assert asked["parsed"] == 1
        assert place.dead() == {}
        assert place.reconcile().agrees
        assert place.search("Rule 3.7 of the harbour")
