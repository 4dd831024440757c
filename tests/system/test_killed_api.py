"""The API killed with SIGKILL between the commit of events and the start of a run: the next tick starts it, nothing is lost or twice."""

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import httpx2
import pytest
from sqlalchemy import select

from primer.definitions import build_defs
from primer_resources.catalog.schema import documents, events, jobs
from primer_resources.catalog.sources import WEBHOOK
from primer_sensors.source_sync_sensor import source_sync_sensor
from tests.conftest import PROJECT
from tests.deployment import Deployment, workspace
from tests.sensor_ticks import tick
from tests.signing import signature_header
from tests.system.test_live_sync import wait_until

SECRET = "of the docs"

pytestmark = pytest.mark.system


@contextmanager
def serving(deployment: Deployment, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`primer api` as a process, and its address; killed at the end, if it still runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = deployment.workspace.settings
    environment = {
        **os.environ, "PRIMER_HOME": str(settings.home), "PRIMER_BUCKETS": str(settings.buckets), "DOCS_SECRET": SECRET,
        "PYTHONPATH": str(PROJECT),
    }  # fmt: skip
    command = [sys.executable, "-m", "primer.cli.launch", "api", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as file, subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process:
        try:
            wait_until(lambda: _answers(url), "the API answers")
            yield process, url
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def _batch(*told: tuple[str, str]) -> bytes:
    at = datetime.now(UTC).isoformat()
    made = [{"source_id": "docs", "doc_id": path, "op": op, "source_version": at, "event_time": at} for op, path in told]
    return json.dumps({"events": made}).encode()


def _send(url: str, body: bytes) -> list[dict[str, Any]]:
    answer = httpx2.post(
        f"{url}/internal/events", content=body, headers={"X-Primer-Signature": signature_header(SECRET, int(time.time()), body)}
    )
    assert answer.status_code == 202, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


def _run_by_sensor(deployment: Deployment) -> dict[str, Any]:
    """What the next tick asks for, run as the daemon runs it. Returns the figures of the run."""
    made = deployment.workspace
    result = tick(source_sync_sensor, made)
    [request] = result.run_requests
    assert request.partition_key == "docs"
    resources = {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}
    job = build_defs(resources).resolve_implicit_global_asset_job_def()
    ended = job.execute_in_process(
        instance=made.instance,
        asset_selection=[dg.AssetKey("source_documents")],
        partition_key="docs",
        tags={**request.tags, "dagster/sensor_name": source_sync_sensor.name},
    )
    [materialised] = ended.get_asset_materialization_events()
    return {name: value.value for name, value in materialised.step_materialization_data.materialization.metadata.items()}


def test_events_that_were_committed_are_settled_by_the_next_tick_and_once(tmp_path: Path) -> None:
    with workspace(tmp_path / "home", buckets=2) as made:
        docs = Deployment(made, tmp_path / "docs", "docs")
        catalog = made.catalog
        catalog.sources.change(replace(catalog.sources.get("docs"), sync=WEBHOOK, webhook_secret_ref="env:DOCS_SECRET"))
        for name in ("a", "b", "c"):
            docs.write(f"{name}.md", f"# {name}\n\nThe first text of {name}.")
        assert _run_by_sensor(docs)["learned_by"].startswith("full listing")
        docs.write("a.md", "# a\n\nThe second text of a, which is longer.")
        docs.write("d.md", "# d\n\nNew.")
        (docs.folder / "c.md").unlink()
        kept, perhaps = _batch(("upsert", "a.md"), ("delete", "c.md")), _batch(("upsert", "d.md"))
        log = tmp_path / "api.log"
        with serving(docs, log) as (process, url):
            assert all(each["accepted"] for each in _send(url, kept))
            sender = Thread(target=lambda: _try(url, perhaps))
            sender.start()
            process.kill()
            process.wait()
            sender.join()
        with serving(docs, log) as (_, url):
            # A sender that got no answer sends again, and one that is not sure sends everything again.
            assert all(each["duplicate"] for each in _send(url, kept))
            assert _send(url, perhaps)[0]["accepted"]
        assert _run_by_sensor(docs)["learned_by"] == "events"
        with catalog.database.read() as connection:
            living = {row.path for row in connection.execute(select(documents.c.path).where(documents.c.deleted_at.is_(None)))}
            rows = connection.execute(select(documents.c.path, jobs.c.operation).join(documents, documents.c.doc_id == jobs.c.doc_id))
            made_jobs = Counter(f"{row.operation} {row.path}" for row in rows)
            states = connection.execute(select(events.c.state)).scalars().all()
        assert living == {"a.md", "b.md", "d.md"}
        assert made_jobs == {"upsert a.md": 2, "upsert b.md": 1, "upsert c.md": 1, "delete c.md": 1, "upsert d.md": 1}
        assert states == ["done"] * 3
        assert isinstance(tick(source_sync_sensor, made), dg.SkipReason)


def _try(url: str, body: bytes) -> None:
    """Send, whatever becomes of it."""
    try:
        _send(url, body)
    except httpx2.TransportError:
        return
