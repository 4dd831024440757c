"""Runs through Dagster's own materialisation, in this process: what `primer sync` is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from primer.dead_runs import PROCESS_TAG, close_dead_runs, process_tag
from primer.definitions import build_defs
from primer_assets.access_rows import access_rows
from primer_assets.purged_documents import purged_documents
from primer_assets.run_tags import ACCESS_TAG, BACKFILL_TAG, SLOW_SWEEP_TAG, SWEEP_TAG
from primer_assets.slow_parsed_elements import slow_parsed_elements
from primer_core.failures import PrimerError
from primer_sensors.index_sweep_sensor import GRID_ASSETS
from primer_sensors.runs import PURGE_TAG, SOURCE_TAG, sweep_tags
from primer_sensors.sweeps import Sweep

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""What a run prints here: its errors are told once, by the command."""


@dataclass(frozen=True, slots=True)
class Materialiser:
    """Materialises assets on an instance; `overrides` replace resources."""

    instance: dg.DagsterInstance
    overrides: Mapping[str, Any]

    def source(self, source_id: str) -> dict[str, Any]:
        """One sync of a source. Returns the metadata of `source_documents`. Raises PrimerError with the step's own words."""
        return self._run([dg.AssetKey("source_documents")], {SOURCE_TAG: source_id}, source_id)

    def sweep(self, sweep: Sweep) -> None:
        """One sweep of a range of buckets. Raises PrimerError with the failed step's own words."""
        self._run([key for asset in GRID_ASSETS for key in asset.keys], sweep_tags(SWEEP_TAG, sweep), None)

    def backfill(self, sweep: Sweep) -> None:
        """One run that fills a range of buckets of an index version. Raises PrimerError with the failed step's own words."""
        keys = [key for asset in (*GRID_ASSETS, slow_parsed_elements) for key in asset.keys]
        self._run(keys, sweep_tags(BACKFILL_TAG, sweep), None)

    def slow_parse(self, sweep: Sweep) -> None:
        """One run of the slow lane over a range of buckets. Raises PrimerError with the failed step's own words."""
        self._run(list(slow_parsed_elements.keys), sweep_tags(SLOW_SWEEP_TAG, sweep), None)

    def access(self, sweep: Sweep) -> None:
        """One run of the access lane over a range of buckets. Raises PrimerError with the failed step's own words."""
        self._run(list(access_rows.keys), sweep_tags(ACCESS_TAG, sweep), None)

    def purge(self) -> dict[str, Any]:
        """One run of the purge. Returns its metadata. Raises PrimerError with the step's own words."""
        return self._run(list(purged_documents.keys), {PURGE_TAG: "by hand"}, None)

    def close_dead_runs(self) -> None:
        """Give back what runs hold that have died: a step waits for a place in its pool as long as one of them has it."""
        close_dead_runs(self.instance, self.overrides["catalog"], self.overrides["settings"].lease)

    def _run(self, keys: list[dg.AssetKey], tags: Mapping[str, str], partition: str | None) -> dict[str, Any]:
        self.close_dead_runs()
        job = build_defs(self.overrides).resolve_implicit_global_asset_job_def()
        # No checks: what they say is for those who watch, and a sync ends without them.
        result = job.get_subset(asset_selection=set(keys), asset_check_selection=set()).execute_in_process(
            run_config=_QUIET,
            instance=self.instance,
            tags={**tags, PROCESS_TAG: process_tag()},
            partition_key=partition,
            raise_on_error=False,
        )
        if not result.success:
            raise PrimerError(_first_failure(result))
        metadata: dict[str, Any] = {}
        for event in result.get_asset_materialization_events():
            metadata.update({name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()})
        return metadata


def _first_failure(result: dg.ExecuteInProcessResult) -> str:
    """The words of the error that failed the run, without Dagster's wrapping."""
    names = _names_of(PrimerError)
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data is not None and data.user_failure_data.description:
                return str(data.user_failure_data.description)
            chain = [data.error] if data.error is not None else []
            while chain and chain[-1].cause is not None:
                chain.append(chain[-1].cause)
            told = next((error for error in chain if error.cls_name in names), None)
            if told is not None:  # its text is written for people; Dagster puts the class's name before it
                return told.message.strip().split(": ", 1)[-1]
            if chain:
                return f"step {event.step_key} failed: {chain[-1].message.strip().splitlines()[-1]}"
    return f"run {result.run_id} failed; see it in Dagster's UI"


def _names_of(kind: type[PrimerError]) -> set[str]:
    """The names of a class of errors and of all below it: Dagster keeps no more of an error than the name of its class."""
    return {kind.__name__, *(name for below in kind.__subclasses__() for name in _names_of(below))}
