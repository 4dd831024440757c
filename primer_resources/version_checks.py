"""What is measured of an index version before it may become the live one; every result with its numbers."""

from dataclasses import dataclass
from random import Random

from primer_core.golden.comparison import compare
from primer_core.index_versions import CheckResult, Gate
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.golden.runs import GoldenRuns
from primer_resources.reconciling import reconcile
from primer_resources.toolkit import Tools

UNINDEXED_SHARE = 0.10
"""Of the rows, at most, that stand outside an index which the vector table has: they are searched one by one."""
SAMPLE = 20
SEED = 0
"""Of the bootstrap, so that one comparison always gives the same interval."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A version and the live one, each with its tools."""

    catalog: Catalog
    version: IndexVersion
    tools: Tools
    live: IndexVersion
    live_tools: Tools


def measure(compared: Compared, golden: GoldenRuns) -> list[CheckResult]:
    """All checks of a version, measured now and kept: what a promotion reads. Raises PrimerError for a golden set that cannot be used."""
    results = [
        _indexes_agree(compared),
        _documents_agree(compared),
        _rows_indexed(compared),
        _index_size(compared),
        _golden_recall(compared, golden),
        _canaries(compared, golden),
    ]
    compared.catalog.promotions.keep(compared.version.name, results)
    return results


def _indexes_agree(compared: Compared) -> CheckResult:
    began = compared.catalog.now()
    report = reconcile(compared.catalog, compared.version, compared.tools)
    counts = {name: len(found) for name, found in report.differences.items()}
    wrong = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
    sample = {name: found[:SAMPLE] for name, found in report.differences.items() if found}
    figures = {
        "chunks": report.expected,
        "vector_rows": report.vector_rows,
        "keyword_rows": report.keyword_rows,
        "passing": report.passing,
        **counts,
        "sample": sample,
    }
    words = wrong or f"catalog and both indexes hold the same {report.expected} rows"
    return CheckResult(Gate.INDEXES_AGREE.value, report.agrees, words, figures, began)


def _documents_agree(compared: Compared) -> CheckResult:
    began = compared.catalog.now()
    found = compared.catalog.promotions.agreement(compared.version.name, compared.live.name)
    figures = {
        "documents": found.here,
        "documents_live": found.live,
        "missing": found.missing,
        "only_here": found.more,
        "sample": list(found.sample),
    }
    if found.missing:
        words = (
            f"{found.missing} of {found.live} documents that {compared.live.name} has do not stand here in the same version, "
            f"such as {found.sample[0]}; `primer dlq list` says which died"
        )
    else:
        words = f"all {found.live} documents of {compared.live.name} stand here, and {found.more} more"
    return CheckResult(Gate.DOCUMENTS_AGREE.value, found.missing == 0, words, figures, began)


def _rows_indexed(compared: Compared) -> CheckResult:
    began = compared.catalog.now()
    found = compared.tools.vectors.figures(began)
    share = found.unindexed_rows / found.rows if found.rows else 0.0
    figures = {"rows": found.rows, "unindexed_rows": found.unindexed_rows, "unindexed_share": round(share, 4), "bar": UNINDEXED_SHARE}
    words = f"{found.unindexed_rows} of {found.rows} rows stand outside an index of the vector table"
    return CheckResult(Gate.ROWS_INDEXED.value, share <= UNINDEXED_SHARE, words, figures, began)


def _index_size(compared: Compared) -> CheckResult:
    began = compared.catalog.now()
    here, there = compared.tools.vectors.figures(began), compared.live_tools.vectors.figures(began)
    keywords, live_keywords = compared.tools.keywords.size(), compared.live_tools.keywords.size()
    figures = {
        "vector_rows": here.rows,
        "vector_rows_live": there.rows,
        "vector_bytes": here.bytes,
        "vector_bytes_live": there.bytes,
        "keyword_bytes": keywords,
        "keyword_bytes_live": live_keywords,
    }
    mb, live_mb = (here.bytes + keywords) / 1e6, (there.bytes + live_keywords) / 1e6
    words = f"{here.rows} rows in {mb:.1f} MB; live has {there.rows} in {live_mb:.1f} MB"
    return CheckResult(Gate.INDEX_SIZE.value, here.rows > 0 or there.rows == 0, words, figures, began)


def _golden_recall(compared: Compared, golden: GoldenRuns) -> CheckResult:
    """No format of the golden set is answered worse than by the live version; a deployment without one has nothing to be worse in."""
    began = compared.catalog.now()
    if not golden.golden.questions:
        return CheckResult(
            Gate.GOLDEN_RECALL.value, True, "there is no golden set (PRIMER_GOLDEN): nothing was asked", {"questions": 0}, began
        )
    here, there = golden.report(compared.version), golden.report(compared.live)
    comparison = compare(here.outcomes, there.outcomes, Random(SEED))
    figures = {
        "questions": len(here.outcomes),
        **{f"recall_{row.format}": row.recall_at_k for row in here.figures},
        **{f"recall_{row.format}_live": row.recall_at_k for row in there.figures},
        **comparison.to_json(),
        "table": comparison.to_markdown(),
        "misses": [f"{miss.question_id}: {miss.cause.value}" for miss in here.misses],
    }
    words = (
        "; ".join(comparison.reasons) or f"{len(here.outcomes)} questions are answered as well as by {compared.live.name}, in every format"
    )
    return CheckResult(Gate.GOLDEN_RECALL.value, comparison.passes, words, figures, began)


def _canaries(compared: Compared, golden: GoldenRuns) -> CheckResult:
    """Documents with known permissions, searched as known people: who must find them does, who must not does not."""
    began = compared.catalog.now()
    count = len(golden.golden.canaries)
    if not count:
        return CheckResult(
            Gate.CANARIES.value, True, "there are no canaries (PRIMER_GOLDEN): nobody was searched as", {"canaries": 0}, began
        )
    report = golden.canaries(compared.version)
    figures = {"canaries": count, "reasons": list(report.reasons)}
    words = "; ".join(report.reasons) or f"{count} canaries are found by those who must find them, and by nobody else"
    return CheckResult(Gate.CANARIES.value, report.passes, words, figures, began)
