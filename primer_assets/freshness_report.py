"""`freshness_report`: how long changes take, what waits, and how the sources stand. A report: nothing depends on it."""

import dagster as dg

from primer_assets.markdown import markdown_table
from primer_assets.pulse_checks import take_pulse
from primer_assets.stage_run import plain_errors
from primer_core.freshness import in_words
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.pulse import Pulse
from primer_resources.settings import Settings


@dg.asset(
    group_name="reports",
    kinds={"python", "sql"},
    description="Freshness of each source and lane over the last hour (PRIMER_FRESHNESS_WINDOW), the queue by lane and state, and every "
    "source's last good sync. Made every hour; its figures over time are under Plots.",
)
def freshness_report(catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]) -> dg.MaterializeResult[None]:
    """Take the pulse once."""
    with plain_errors():
        pulse = take_pulse(catalog, settings)
    figures: dict[str, dg.MetadataValue] = {}
    for lane, spread in sorted(pulse.spreads.items()):
        figures[f"p50_{lane}_s"] = dg.MetadataValue.float(round(spread.p50, 1))
        figures[f"p95_{lane}_s"] = dg.MetadataValue.float(round(spread.p95, 1))
        figures[f"changes_{lane}"] = dg.MetadataValue.int(spread.changes)
    return dg.MaterializeResult(
        metadata={
            "report": dg.MetadataValue.md(to_markdown(pulse)),
            **figures,
            "waiting": dg.MetadataValue.int(sum(row.jobs for row in pulse.queue)),
            "oldest_waiting_s": dg.MetadataValue.float(
                round(max(((pulse.at - row.oldest).total_seconds() for row in pulse.queue), default=0.0), 1)
            ),
            "sources_late": dg.MetadataValue.int(sum(source.severity != "ok" for source in pulse.sources)),
        }
    )


def to_markdown(pulse: Pulse) -> str:
    """The pulse as three tables."""
    fresh = [
        (row.source_id, row.lane, row.to_rows.changes, *map(in_words, (row.to_rows.p50, row.to_rows.p95, row.by_source_clock.p95)))
        for row in pulse.freshness
    ]
    queue = [(row.lane, row.state, row.jobs, in_words((pulse.at - row.oldest).total_seconds())) for row in pulse.queue]
    sources = [
        (row.source_id, row.health, "never" if row.silent is None else f"{in_words(row.silent.total_seconds())} ago", row.reason)
        for row in pulse.sources
    ]
    return "\n\n".join(
        (
            f"Over the last {in_words(pulse.window.total_seconds())}, index version {pulse.index_version}",
            markdown_table(("source", "lane", "changes", "p50", "p95", "p95 by the source's clock"), fresh),
            markdown_table(("lane", "state", "jobs", "oldest"), queue),
            markdown_table(("source", "health", "last good sync", "reason"), sources),
        )
    )
