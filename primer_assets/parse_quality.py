"""`parse_quality`: how well the parser reads a folder of documents with known truths. A report: nothing depends on it."""

import dagster as dg

from primer_assets.stage_run import plain_errors
from primer_core.failures import PrimerError
from primer_core.quality.figures import DocumentQuality
from primer_core.routing import PARSED
from primer_resources.quality.folder import Selection, formats_named
from primer_resources.settings import Settings

FOLDER = "reports"
"""Where in PRIMER_HOME reports are kept."""
TOLD_EVERY = 50
"""Documents between two lines in the run's log."""


class ParseQualityConfig(dg.Config):
    """What of the folder is read."""

    limit: int | None = None
    """Of the documents without a truth, how many of each format; all when none is given."""
    formats: list[str] = sorted(format_.value for format_ in PARSED)


@dg.asset(
    group_name="reports",
    kinds={"python", "docling"},
    description="How well each format is read, engine by engine: reading order and tables against known truths, character error rate of "
    "OCR, share of the words kept, pages a CPU second; and the worst ten pages in pictures. Reads the folder in PRIMER_QUALITY_CORPUS. "
    "Materialize it by hand, before and after a change of the parser; no sensor runs it.",
)
def parse_quality(
    context: dg.AssetExecutionContext, config: ParseQualityConfig, settings: dg.ResourceParam[Settings]
) -> dg.MaterializeResult[None]:
    """Measure, and keep the JSON and the page under PRIMER_HOME/reports."""
    from primer_resources.quality.bench import run_bench

    with plain_errors():
        if settings.quality_corpus is None:
            raise PrimerError(
                "PRIMER_QUALITY_CORPUS is not set: name a folder of documents, with truths as NAME.truth.md or NAME.truth.txt beside them"
            )
        done = 0

        def tell(_row: DocumentQuality) -> None:
            nonlocal done
            done += 1
            if done % TOLD_EVERY == 0:
                context.log.info(f"{done} documents read")

        report = run_bench(settings, Selection(settings.quality_corpus, (), formats_named(config.formats), config.limit), tell)
        data, page = report.write(settings.home.resolve() / FOLDER)
    worst = [f"{page.read.name}, page {page.picture.page}: {page.read.score:.3f}" for page in report.worst]
    return dg.MaterializeResult(
        metadata={
            "figures": dg.MetadataValue.md(report.to_markdown()),
            "documents": dg.MetadataValue.int(len(report.documents)),
            "not_read": dg.MetadataValue.int(sum(not row.is_read for row in report.documents)),
            "worst_pages": dg.MetadataValue.json(worst),
            "page": dg.MetadataValue.path(page),
            "data": dg.MetadataValue.path(data),
            "parser_version": dg.MetadataValue.text(report.parser_version),
        }
    )
