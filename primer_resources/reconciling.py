"""Reconcile: do the catalog and the two indexes hold the same rows? By id sets, not by counts."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.toolkit import Tools


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """Row counts, and the ids that differ, by kind; all lists empty means agreement. `passing` rows wait for their purge or flip."""

    index_version: str
    expected: int
    vector_rows: int
    keyword_rows: int
    passing: int
    differences: dict[str, list[str]]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return not any(self.differences.values())

    def to_json(self) -> dict[str, Any]:
        """The report with stable field names."""
        return {
            "agrees": self.agrees,
            "index_version": self.index_version,
            "chunks": self.expected,
            "vector_rows": self.vector_rows,
            "keyword_rows": self.keyword_rows,
            "passing": self.passing,
            "differences": self.differences,
        }


def reconcile(catalog: Catalog, version: IndexVersion, tools: Tools) -> ReconcileReport:
    """Compare the three id sets. A row that waits for its purge or its flip may be in an index and need not be."""
    vector = Counter(tools.vectors.row_ids())
    keyword = Counter(tools.keywords.row_ids())
    passing = set(catalog.lookup.passing_rows(version.name))
    expected = set(catalog.lookup.live_rows(version.name))
    differences = {
        "missing_in_vector": sorted(expected - vector.keys()),
        "missing_in_keyword": sorted(expected - keyword.keys()),
        "orphans_in_vector": sorted(vector.keys() - expected - passing),
        "orphans_in_keyword": sorted(keyword.keys() - expected - passing),
        "doubled_in_vector": sorted(row for row, n in vector.items() if n > 1),
        "doubled_in_keyword": sorted(row for row, n in keyword.items() if n > 1),
    }
    return ReconcileReport(version.name, len(expected), vector.total(), keyword.total(), len(passing), differences)
