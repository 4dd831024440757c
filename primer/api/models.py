"""The shapes of the HTTP API: what is sent and what is answered. Field names are the contract."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from primer_core.backfills import BackfillReason, BackfillState
from primer_core.coherence import DriveCoherence
from primer_core.freshness import Severity
from primer_core.index_versions import NAME
from primer_core.outcomes import Outcome
from primer_resources.catalog.sources import Source

MOST_EVENTS = 1000
"""Events in one batch: what one transaction takes within a second."""
SOURCE_ID = r"^[a-z0-9][a-z0-9._\-]{0,62}$"
_PRINTED = r"^[^\x00-\x1f\x7f]+$"

MOST_REPLAYED = 10_000
"""Documents that one replay may name."""

DocId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
SourceId = Annotated[str, StringConstraints(pattern=SOURCE_ID)]
Name = Annotated[str, StringConstraints(pattern=_PRINTED, max_length=200)]
Path = Annotated[str, StringConstraints(pattern=_PRINTED, max_length=4096)]


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no calendar has this time in UTC") from error


Moment = Annotated[AwareDatetime, AfterValidator(_to_utc)]
_ONE_SELECTOR: list[JsonValue] = [
    {"required": [name], "properties": {name: {"minItems": 1} if name == "doc_ids" else {"type": "string"}}}
    for name in ("doc_ids", "source_id", "since", "until", "outcome", "index_version")
]
"""What says of a body that it names something."""


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(_Shape):
    """Why a request was not done."""

    detail: str


class SourceIn(_Shape):
    """A source to add."""

    tenant_id: Name
    type: Literal["drive", "wiki", "tickets", "object_store"]
    credentials_ref: Name | None = None
    """Where its secret is: env:NAME or file:/PATH."""
    sync: Literal["webhook", "poll"] = "poll"
    poll_interval_s: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    webhook_secret_ref: Name | None = None
    """Where the secret is that signs its events; needed for sync = webhook."""
    name: SourceId | None = None
    """The last part of its location when left out."""
    library: Name | None = None
    settings: dict[str, Any]
    """What a source of its type takes: `root` or `url`, `groups`, `access_file` and so on."""


class SourceOut(_Shape):
    """A source as it is. Secrets are only named."""

    source_id: str
    tenant_id: str
    type: str
    library: str
    settings: dict[str, Any]
    credentials_ref: str | None
    sync: str
    poll_interval_s: int
    webhook_secret_ref: str | None
    last_synced_at: datetime | None
    last_reconciled_at: datetime | None
    last_error: str | None

    @classmethod
    def of(cls, source: Source) -> "SourceOut":
        """A source of the catalog."""
        names = [name for name in cls.model_fields if name != "settings"]
        return cls(settings=dict(source.settings), **{name: getattr(source, name) for name in names})


class SyncMode(StrEnum):
    """`incremental` follows the change feed where there is one; `full` lists all documents."""

    INCREMENTAL = "incremental"
    FULL = "full"


class SyncIn(_Shape):
    """Which sync."""

    mode: SyncMode = SyncMode.INCREMENTAL


class SyncOut(_Shape):
    """The sync that was asked for; the next tick of the sensor starts it."""

    source_id: str
    mode: SyncMode
    asked_at: datetime


class EventOp(StrEnum):
    """What happened."""

    UPSERT = "upsert"
    DELETE = "delete"
    ACL = "acl"


class EventIn(_Shape):
    """What happened to a document. It is a hint: the source is asked, and what it shows counts."""

    source_id: SourceId
    doc_id: Path
    """A doc_id that Primer gave, or the document's path in its source."""
    op: EventOp
    source_version: Name
    event_time: AwareDatetime
    event_id: Name | None = None
    """One event, one id: told again under it, it changes nothing. Made of all the other fields when left out."""
    acl_groups: Annotated[list[Name], Field(max_length=1000)] | None = None
    """Who may read the document, for op = acl, and with an upsert where it says so, too. An empty list is nobody; null with op = acl hands
    the document back to its source's own rules."""
    content_uri: Path | None = None
    """Where the content is, inside the source's own location. It is checked and never fetched."""


class EventsIn(_Shape):
    """A batch. Each event is taken or refused by itself."""

    events: Annotated[list[EventIn], Field(min_length=1, max_length=MOST_EVENTS)]


class Verdict(_Shape):
    """What became of one event, in the order of the batch."""

    accepted: bool
    duplicate: bool = False
    event_id: str | None = None
    error: str | None = None


class EventsOut(_Shape):
    """A verdict an event."""

    events: list[Verdict]


class EventsRefused(Problem):
    """No event of the batch could be taken."""

    events: list[Verdict] = []


class WebhookOut(_Shape):
    """What a service's webhook came to, and why some of it was left out."""

    accepted: int
    duplicates: int
    ignored: list[str]


class StatusOut(_Shape):
    """Where a document stands."""

    doc_id: str
    source_id: str
    stage: str
    source_version: str
    outcome: Outcome | None
    """How the newest attempt to index it ended; null where none has."""
    indexed_version: str | None
    """What stands in the indexes, which a dead letter of a newer version does not change."""
    chunks: int
    indexed_at: datetime | None
    reason: str | None
    error: str | None


class DeadLetterOut(_Shape):
    """A document, or an event, that needs a person."""

    id: str
    kind: Literal["document", "event"]
    source_id: str
    doc_id: str | None
    path: str
    stage: str
    reason: str
    error: str
    attempts: int
    next_action: str


class DeadLettersOut(_Shape):
    """A page; `next_cursor` asks for the one after it, null on the last."""

    items: list[DeadLetterOut]
    next_cursor: str | None


class RetryOut(_Shape):
    """`waits_for` says what takes it up again."""

    id: str
    waits_for: Literal["sweep", "sync"]


class ObjectsOut(_Shape):
    """Objects of one kind: how many, their bytes, and the keys of the first 50."""

    count: int
    bytes: int
    sample: list[str]


class MissingObjectOut(_Shape):
    """An object that the catalog owns and that was not there."""

    object_key: str
    content_hash: str
    part: str
    sub_key: str
    doc_id: str | None
    """One of the documents that have the content."""


class DriveCoherenceOut(_Shape):
    """The newest look at a drive."""

    drive: Literal["intake", "pipeline"]
    place: str
    checked_at: datetime
    objects: int
    bytes: int
    checked: int
    """Objects that the catalog owns."""
    missing: int
    missing_sample: list[MissingObjectOut]
    orphans: ObjectsOut
    """Objects that nothing owns, at least an hour old."""
    reclaimed: ObjectsOut
    """Those of the orphans that this look deleted."""
    too_young: ObjectsOut
    """Objects without an owner that may be of a save under way."""
    freed: ObjectsOut
    """Objects that the purge is to remove."""
    foreign: ObjectsOut
    """Objects whose names Primer cannot have given; they are left alone."""
    fault: str | None
    """Why the drive could not be looked at; the figures mean nothing then."""

    @classmethod
    def of(cls, look: DriveCoherence) -> "DriveCoherenceOut":
        """A look that the catalog keeps."""
        plain = look.to_json()
        del plain["tenant_id"]
        return cls.model_validate({"drive": plain.pop("kind"), **plain})


class CoherenceOut(_Shape):
    """How the drives of a tenant agree with the catalog, by the newest look at each."""

    tenant_id: str
    severity: Severity
    reasons: list[str]
    """Why it is not ok."""
    present_share: float
    """The share (0 to 1) of the objects that the catalog owns that were there."""
    drives: list[DriveCoherenceOut]
    """Empty where nobody has looked yet."""


class ReplayIn(_Shape):
    """Which documents are to go through a stage again: those that meet all that is given. `since` and `until` are of the time when the
    newest attempt on a document ended."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _ONE_SELECTOR})

    to_stage: Literal["parse", "chunk", "embed", "write"]
    doc_ids: Annotated[list[DocId], Field(max_length=MOST_REPLAYED)] = []
    source_id: SourceId | None = None
    since: Moment | None = None
    until: Moment | None = None
    outcome: Outcome | None = None
    index_version: Name | None = None
    """The live one when left out."""
    dry_run: bool = True


class BackfillIn(_Shape):
    """An index version that is to be filled, and which part of its recipe is another one than the live version's."""

    reason: BackfillReason
    target_index: Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]
    max_docs_per_s: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """No bound when left out."""


class BackfillOut(_Shape):
    """A backfill, and how far it is, in documents."""

    backfill_id: int
    reason: BackfillReason
    target_index: str
    state: BackfillState
    max_docs_per_s: float | None
    total: int
    done: int
    failed: int
    asked: int
    """Of those done: their bytes are not kept, so their source is asked for them."""
    eta_s: float | None
    """None where nothing has come to its end yet."""
    begun_at: datetime
    ended_at: datetime | None


class HealthOut(_Shape):
    """Whether the catalog answers."""

    status: Literal["ok"]
