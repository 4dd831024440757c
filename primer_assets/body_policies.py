"""`body_policies`: bodies that a deployment chose not to keep. Source bytes after they are indexed, parse outputs that nothing uses."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from primer_assets.stage_run import plain_errors
from primer_core.body_policies import KeepSources
from primer_resources.catalog.body_policies import PolicyPage
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings


@dg.asset(
    group_name="store",
    kinds={"python", "sql"},
    description="Deletes source bytes that every open index version has taken in (PRIMER_KEEP_SOURCES=until_indexed), and parse outputs "
    "older than PRIMER_RETENTION that no open index version uses. Neither is on unless it is set. Hashes and sizes stay.",
)
def body_policies(catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]) -> dg.MaterializeResult[None]:
    """Go through all contents and states once, page by page, as far as the settings say."""
    figures: dict[str, dg.MetadataValue] = {
        "keep_sources": dg.MetadataValue.text(settings.keep_sources.value),
        "retention": dg.MetadataValue.text("for ever" if settings.retention is None else str(settings.retention)),
    }
    with plain_errors():
        policies, retention = catalog.body_policies, settings.retention
        if settings.keep_sources is KeepSources.UNTIL_INDEXED:
            figures |= _run("sources", ("", ""), policies.settle)
        if retention is not None:
            figures |= _run("outputs", "", lambda after: policies.retain(retention, after))
    return dg.MaterializeResult(metadata=figures)


def _run(name: str, first: Any, step: Callable[[Any], PolicyPage]) -> dict[str, dg.MetadataValue]:
    objects = size = 0
    after: Any = first
    while after is not None:
        page = step(after)
        after, objects, size = page.after, objects + page.objects, size + page.size
    return {f"{name}_deleted": dg.MetadataValue.int(objects), f"{name}_bytes": dg.MetadataValue.int(size)}
