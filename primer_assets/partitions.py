"""Partitions: the grid of bucket × index version that documents move through, and the sources."""

import warnings
from collections.abc import Sequence

import dagster as dg

from primer_core.buckets import bucket_names
from primer_core.failures import PrimerError
from primer_resources.settings import load_settings

# `backfill_policy` has been marked as beta since 1.4 and is what range runs rest on; its warning would stand in every log six times.
warnings.filterwarnings("ignore", message="Parameter `backfill_policy`", category=dg.BetaWarning)

warnings.filterwarnings("ignore", message="Class `MultiToSingle", category=dg.BetaWarning)

BUCKET, INDEX_VERSION, SOURCE = "bucket", "index_version", "source"

SOURCES = dg.DynamicPartitionsDefinition(name=SOURCE)
VERSIONS = dg.DynamicPartitionsDefinition(name=INDEX_VERSION)
GRID = dg.MultiPartitionsDefinition(
    {BUCKET: dg.StaticPartitionsDefinition(list(bucket_names(load_settings().buckets))), INDEX_VERSION: VERSIONS}
)
BY_VERSION = dg.MultiToSingleDimensionPartitionMapping(INDEX_VERSION)
"""A version is made of all of its buckets."""


def grid_key(bucket: str, index_version: str) -> str:
    """The partition key of a bucket in an index version (dimensions stand in alphabetical order)."""
    return f"{bucket}|{index_version}"


def grid_scope(keys: Sequence[str]) -> tuple[str, list[str]]:
    """(index version, buckets) of a run's partition keys. Raises PrimerError where they span two index versions."""
    pairs = [key.split("|", 1) for key in keys]
    names = sorted({version for _, version in pairs})
    if len(names) != 1:
        raise PrimerError(f"one run takes one index version, not {', '.join(names)}; launch them one after the other")
    return names[0], sorted({bucket for bucket, _ in pairs})
