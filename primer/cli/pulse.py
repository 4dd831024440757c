"""`primer status --freshness`: how long changes take, what waits, and how the sources stand."""

from datetime import timedelta

from pydantic import TypeAdapter, ValidationError

from primer.cli.output import out, print_json, print_table, visible
from primer.workspace import Workspace
from primer_core.failures import PrimerError
from primer_core.freshness import Severity, in_words
from primer_core.source_health import Health, SourceHealth
from primer_resources.catalog.pulse import HISTORY, Pulse
from primer_resources.settings import Duration

COLOURS = {Severity.OK: "green", Severity.WARN: "yellow", Severity.ERROR: "red"}


def show_freshness(workspace: Workspace, window: str | None, json: bool) -> None:
    """Print the pulse over a window (the setting's when None)."""
    pulse = take_pulse(workspace, window)
    if json:
        print_json(pulse.to_json())
        return
    out.print(f"changes that reached the indexes in the last {in_words(pulse.window.total_seconds())}, index version {pulse.index_version}")
    print_table(
        ["source", "lane", "changes", "p50", "p95", "longest", "p95 by the source's clock"],
        [
            [
                *(row.source_id, row.lane, row.to_rows.changes, in_words(row.to_rows.p50), in_words(row.to_rows.p95)),
                *(in_words(row.to_rows.longest), in_words(row.by_source_clock.p95)),
            ]
            for row in pulse.freshness
        ],
    )
    print_table(
        ["lane", "state", "jobs", "oldest"],
        [[row.lane, row.state, row.jobs, in_words((pulse.at - row.oldest).total_seconds())] for row in pulse.queue],
    )
    for lane in pulse.lanes:
        colour = COLOURS[lane.severity]
        out.print(f"[{colour}]{lane.severity}[/{colour}] {lane.words}")
    show_sources(pulse.sources)


def take_pulse(workspace: Workspace, window: str | None = None) -> Pulse:
    """The pulse of the live index version. Raises PrimerError for a window that is none."""
    settings = workspace.settings
    span = settings.freshness_window if window is None else _span(window)
    return workspace.catalog.pulses.take(workspace.catalog.deployments.live().name, span, settings.pulse_limits)


def show_sources(sources: tuple[SourceHealth, ...]) -> None:
    """Print the sources that are not simply in step, each with its reason."""
    for source in sources:
        if source.health is not Health.GOOD:
            colour = COLOURS[source.severity]
            out.print(f"[{colour}]{source.health}[/{colour}] {source.source_id}: ", end="")
            out.print(visible(source.reason), markup=False)


def _span(window: str) -> timedelta:
    try:
        span = TypeAdapter(Duration).validate_python(window)
    except ValidationError as error:
        raise PrimerError(f"--window {window!r} is no duration; write it as 90s, 30m, 2h or 3d") from error
    if not timedelta(0) < span <= HISTORY:
        raise PrimerError(f"--window {window!r}: finished changes are kept {HISTORY.days} days; give more than nothing and at most that")
    return span
