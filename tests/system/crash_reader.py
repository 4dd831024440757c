"""A reader in a process of its own: reads the whole of both indexes through the gate, over and over, and logs what it was shown."""

import json
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

from primer.workspace import Workspace
from primer_core.visibility import TwoFlips
from primer_resources.index_base import Hit, Scope
from primer_resources.settings import load_settings
from tests.system.crash_documents import COMMON_WORD

GROUPS = ("readers",)
EVERYTHING = 5_000
"""More rows than the indexes ever hold, dead ones included."""
SHOWN_RESULTS = 200
BREATH_S = 0.02
"""Between two reads, so that the processes under test get some of the machine."""
MARK = re.compile(r"mark\d+x\d+x\d+")


@dataclass(frozen=True, slots=True)
class Pace:
    """How a reader reads: its pauses between the indexes and the gate, seconds, in turn, and every which read is a search (0: none)."""

    pauses: tuple[float, ...]
    search_every: int = 0


QUICK = Pace((0.0, 0.05), search_every=4)
SLOW = Pace((2.5,))
"""Longer than a write takes from its first row to its flip: a whole write falls between what the indexes say and what the gate says."""


def poll(environment: Mapping[str, str], pace: Pace, log: Path, ready: Event, stop: Event) -> None:
    """Read until told to stop, a line of JSON a read."""
    warnings.filterwarnings("ignore")
    os.environ.update(environment)
    workspace = Workspace(load_settings())
    looking = Looking(workspace)
    with log.open("w", encoding="utf-8") as out:
        number = 0
        while not stop.is_set():
            number += 1
            if pace.search_every and number % pace.search_every == 0:
                read = looking.search()
            else:
                read = looking.look(stop, pace.pauses[number % len(pace.pauses)])
            out.write(json.dumps(read) + "\n")
            if number > pace.search_every:
                ready.set()  # the model is loaded
            stop.wait(BREATH_S)
    workspace.close()


class Looking:
    """The two ways to read: each index for itself through the gate, and the reader's hybrid search."""

    def __init__(self, workspace: Workspace) -> None:
        self._catalog = workspace.catalog
        self._version = self._catalog.deployments.live()
        self._tools = workspace.toolkit.of(self._version)
        self._tenant = workspace.settings.tenant
        self._reader = workspace.reader
        self._vector = np.ones(self._version.recipe.embedding.dims, dtype=np.float32)  # any will do where all rows are asked for

    def look(self, stop: Event, pause: float) -> dict[str, Any]:
        """One read of each index, both held against one gate."""
        scope = Scope(self._tenant, self._catalog.acls.open_to(self._tenant, GROUPS))
        while True:
            began = self._catalog.now()
            hits = {
                "vector": self._tools.vectors.search(self._vector, scope, EVERYTHING),
                "keyword": self._tools.keywords.search(COMMON_WORD, scope, EVERYTHING),
            }
            if pause:
                stop.wait(pause)
            every = [hit for found in hits.values() for hit in found]
            gate = self._catalog.gate.look(self._version.name, {h.doc_id for h in every}, {h.row_id for h in every}, GROUPS, began)
            try:
                shown = {
                    name: _by_document(hit for hit in found if gate.shown_as(hit.doc_id, hit.row_id, hit.added_gen, began))
                    for name, found in hits.items()
                }
            except TwoFlips:
                continue
            ended = self._catalog.now()
            found = {name: _by_document(each) for name, each in hits.items()}
            return {"began": began.timestamp(), "ended": ended.timestamp(), "shown": shown, "found": found}

    def search(self) -> dict[str, Any]:
        """One search as people make it. Raises AssertionError where a passage is quoted that is not the hit's own."""
        began = self._catalog.now()
        results = self._reader.search(COMMON_WORD, self._tenant, GROUPS, SHOWN_RESULTS)
        ended = self._catalog.now()
        shown: dict[str, list[str]] = defaultdict(list)
        for result in results:
            section = result.heading_path[-1].removeprefix("Section ")
            marks = MARK.findall(result.text)
            if len(marks) != 1 or f"x{section}x" not in marks[0]:
                raise AssertionError(f"passage {result.chunk_id} of section {section} quotes {marks}")
            shown[result.doc_id].append(result.chunk_id)
        return {"began": began.timestamp(), "ended": ended.timestamp(), "shown": {"search": shown}, "found": {}}


def _by_document(hits: Iterable[Hit]) -> dict[str, list[str]]:
    chunks: dict[str, list[str]] = defaultdict(list)
    for hit in hits:
        chunks[hit.doc_id].append(hit.chunk_id)
    return chunks
