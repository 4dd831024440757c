"""`primer doctor`: what is wrong with the deployment and its surroundings, each check with what to do about it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from primer.workspace import Workspace
from primer_core.failures import PrimerError
from primer_core.freshness import Severity as Late
from primer_core.recipe import recipe_difference
from primer_core.stored_states import DriveKind
from primer_resources.connectors.drive import DriveSettings
from primer_resources.connectors.registry import kind_of
from primer_resources.document_store.opening import probe
from primer_resources.settings import load_settings, unknown_variables

LEAST_FREE_GB = 2


class Severity(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


_SEVERITIES = {Late.OK: Severity.OK, Late.WARN: Severity.WARNING, Late.ERROR: Severity.ERROR}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding, with a remedy where there is something to do."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""


def diagnose() -> list[Check]:
    """All checks. One that cannot be made is an error of its own and does not stop the others."""
    try:
        workspace = Workspace(load_settings())
    except PrimerError as error:
        return [Check("settings", Severity.ERROR, str(error))]
    checks: list[Callable[[Workspace], Iterator[Check]]] = [
        _python,
        _settings,
        _home,
        _catalog,
        _tenants,
        _model,
        _recipe,
        _cache,
        _ocr,
        _instance,
        _sources,
        _queue,
    ]
    found: list[Check] = []
    said: set[str] = set()
    try:
        for check in checks:
            try:
                found.extend(check(workspace))
            except PrimerError as error:
                if str(error) in said:
                    continue  # what is missing for one check is missing for others too
                said.add(str(error))
                found.append(Check(check.__name__.strip("_"), Severity.ERROR, str(error)))
    finally:
        workspace.close()
    return found


def _python(_workspace: Workspace) -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    fits = sys.version_info[:2] == (3, 11)
    yield Check("python", Severity.OK if fits else Severity.ERROR, version, "" if fits else "use Python 3.11")


def _settings(_workspace: Workspace) -> Iterator[Check]:
    for name, meant in unknown_variables(os.environ).items():
        remedy = f"did you mean {meant}?" if meant else "unset it, unless another program set it for itself"
        yield Check("settings", Severity.WARNING, f"{name} is no setting and has no effect", remedy)


def _home(workspace: Workspace) -> Iterator[Check]:
    home = workspace.settings.home.resolve()
    if not home.is_dir():
        yield Check("home", Severity.ERROR, f"{home} does not exist", "run `primer init`")
        return
    free = shutil.disk_usage(home).free / 2**30
    low = free < LEAST_FREE_GB
    yield Check("home", Severity.WARNING if low else Severity.OK, f"{home}, {free:.1f} GiB free", "free some disk" if low else "")


def _catalog(workspace: Workspace) -> Iterator[Check]:
    where = workspace.catalog.database.url.render_as_string(hide_password=True)
    version = workspace.catalog.deployments.live()
    yield Check("catalog", Severity.OK, f"{where}, {workspace.settings.buckets} buckets, live index version {version.name}")


def _tenants(workspace: Workspace) -> Iterator[Check]:
    for tenant in workspace.catalog.tenants.all():
        name = f"tenant {tenant.tenant_id}"
        if not tenant.active:
            yield Check(name, Severity.WARNING, "inactive: its sources are not read", f"`primer tenant activate {tenant.tenant_id}`")
            continue
        for kind in DriveKind:
            try:
                drive = workspace.drives.of(tenant.tenant_id, kind)
                keeps_deleted = probe(drive)
            except PrimerError as error:
                yield Check(name, Severity.ERROR, f"{kind} drive: {error}")
                continue
            if keeps_deleted:
                remedy = "turn versioning off there, or let noncurrent versions expire soon"
                yield Check(name, Severity.WARNING, f"{kind} drive {drive.place} keeps what is deleted", remedy)
            else:
                yield Check(name, Severity.OK, f"{kind} drive {drive.place}")


def _model(workspace: Workspace) -> Iterator[Check]:
    from primer_resources.embedder.model import check_model

    for warning in check_model(workspace.settings):
        yield Check("model", Severity.WARNING, warning)
    tools = workspace.toolkit.of(workspace.catalog.deployments.live())
    shape = tools.embedder.embed_query("Does the model answer?").shape
    yield Check("model", Severity.OK, f"{tools.embedder.spec.version} answers with {shape[0]} dimensions")


def _recipe(workspace: Workspace) -> Iterator[Check]:
    live, wanted = workspace.catalog.deployments.live(), workspace.toolkit.recipe
    if live.recipe == wanted:
        yield Check("recipe", Severity.OK, f"index version {live.name} is what the settings make")
        return
    difference = recipe_difference(live.recipe, wanted, "the settings make")
    remedy = "an index version keeps what it was made with: set it back, or make a new index version"
    yield Check("recipe", Severity.WARNING, f"index version {live.name} was made with {difference}", remedy)


def _cache(workspace: Workspace) -> Iterator[Check]:
    size = workspace.toolkit.of(workspace.catalog.deployments.live()).cache.size()
    yield Check("embedding cache", Severity.OK, f"{size.vectors} vectors, {size.bytes / 2**20:.1f} MiB")


def _ocr(workspace: Workspace) -> Iterator[Check]:
    from primer_resources.parser.ocr.installation import ORIENTATION, check_languages, installed_languages

    installed, languages = installed_languages(), workspace.settings.ocr_languages
    if installed is None:
        remedy = "scans and pictures end as ocr_unavailable; `apt-get install tesseract-ocr`, then `primer dlq retry`"
        yield Check("ocr", Severity.WARNING, "Tesseract is not installed", remedy)
        return
    check_languages(languages)
    yield Check("ocr", Severity.OK, f"Tesseract reads {'+'.join(languages)} of {len(installed - {ORIENTATION})} languages installed")


def _instance(workspace: Workspace) -> Iterator[Check]:
    from primer_assets.partitions import INDEX_VERSION

    version = workspace.catalog.deployments.live().name
    known = workspace.instance.get_dynamic_partitions(INDEX_VERSION)
    if version in known:
        yield Check("dagster", Severity.OK, f"{workspace.settings.dagster_home}, index versions {', '.join(sorted(known))}")
    else:
        yield Check(
            "dagster", Severity.ERROR, f"{workspace.settings.dagster_home} does not know index version {version}", "run `primer init`"
        )


def _sources(workspace: Workspace) -> Iterator[Check]:
    sources = workspace.catalog.sources.all()
    if not sources:
        yield Check("sources", Severity.WARNING, "none", "add one with `primer source add PATH --groups GROUP`")
    health = {each.source_id: each for each in workspace.catalog.pulses.sources(workspace.settings.pulse_limits.stalled)}
    for source in sources:
        stands = health.get(source.source_id)
        root = str(source.settings.get("root", ""))
        if kind_of(source.type, root).settings is DriveSettings and not Path(root).is_dir():
            remedy = f"mount it, or `primer source set {source.source_id} --location FOLDER`"
            yield Check(f"source {source.source_id}", Severity.ERROR, f"its folder {root} is not there", remedy)
        elif stands is None:
            yield Check(f"source {source.source_id}", Severity.OK, f"not read: its tenant {source.tenant_id} is inactive")
        elif stands.severity is not Late.OK:
            yield Check(f"source {source.source_id}", _SEVERITIES[stands.severity], f"{stands.health}: {stands.reason}")
        elif source.held_count:
            message = f"{source.held_count} deletes are held"
            yield Check(
                f"source {source.source_id}",
                Severity.WARNING,
                message,
                "see that the source is whole; `primer deletes list` shows them, `primer deletes approve` lets them through",
            )
        else:
            yield Check(f"source {source.source_id}", Severity.OK, f"{stands.health}, last synced {source.last_synced_at or 'never'}")


def _queue(workspace: Workspace) -> Iterator[Check]:
    dead = len(workspace.catalog.lookup.dead_letters())
    waiting = workspace.catalog.queue.unfinished()
    message = f"{waiting} jobs not finished, {dead} dead letters"
    yield Check("queue", Severity.WARNING if dead else Severity.OK, message, "`primer dlq list` says why" if dead else "")
    settings, version = workspace.settings, workspace.catalog.deployments.live().name
    for lane in workspace.catalog.pulses.take(version, settings.freshness_window, settings.pulse_limits).lanes:
        if lane.severity is not Late.OK:
            remedy = "see that the daemon runs and what its runs say (`primer status --freshness`), or run `primer sync`"
            yield Check("freshness", _SEVERITIES[lane.severity], lane.words, remedy)
