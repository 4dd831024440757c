"""Stages: the states a job passes through, and the three that each stage names."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a job stands. `indexed`, `superseded` and `dead` are terminal."""

    PENDING_PARSE = "pending_parse"
    PARSING = "parsing"
    PENDING_CHUNK = "pending_chunk"
    CHUNKING = "chunking"
    PENDING_EMBED = "pending_embed"
    EMBEDDING = "embedding"
    PENDING_WRITE = "pending_write"
    WRITING = "writing"
    INDEXED = "indexed"
    SUPERSEDED = "superseded"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage claims jobs from `entry`, holds them in `holding` and completes them to `done`."""

    name: str
    entry: State
    holding: State
    done: State


PARSE = Stage("parse", State.PENDING_PARSE, State.PARSING, State.PENDING_CHUNK)
CHUNK = Stage("chunk", State.PENDING_CHUNK, State.CHUNKING, State.PENDING_EMBED)
EMBED = Stage("embed", State.PENDING_EMBED, State.EMBEDDING, State.PENDING_WRITE)
WRITE = Stage("write", State.PENDING_WRITE, State.WRITING, State.INDEXED)
STAGES = (PARSE, CHUNK, EMBED, WRITE)

FETCH = "fetch"
"""Stage name of a dead letter that never got as far as its bytes."""

TERMINAL = frozenset({State.INDEXED, State.SUPERSEDED, State.DEAD})
WAITING = tuple(stage.entry for stage in STAGES)
HELD = tuple(stage.holding for stage in STAGES)


class Operation(StrEnum):
    """What a job is to do to its document."""

    UPSERT = "upsert"
    DELETE = "delete"
    ACL = "acl"
    COPY = "copy"


def entry_of(operation: Operation) -> State:
    """The state a new job starts in: deletes, permission changes and copies of an indexed content have nothing to parse, chunk or embed."""
    return State.PENDING_PARSE if operation is Operation.UPSERT else State.PENDING_WRITE


def stage_of(state: State) -> Stage:
    """The stage that claims from or holds `state`. Raises ValueError for a terminal state."""
    for stage in STAGES:
        if state in (stage.entry, stage.holding):
            return stage
    raise ValueError(f"state {state} belongs to no stage")
