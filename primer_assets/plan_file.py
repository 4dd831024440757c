"""The plan's file: JSON, versioned, checked when it is read."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from primer_core.failures import PrimerError
from primer_core.sync_plan import SyncPlan

_ADAPTER = TypeAdapter(SyncPlan)


def write_plan(path: Path, plan: SyncPlan) -> None:
    """Write a plan. Raises PrimerError where the file cannot be written."""
    try:
        path.write_bytes(_ADAPTER.dump_json(plan, indent=1))
    except OSError as error:
        raise PrimerError(f"--out {path}: {error.strerror}; name a file in a folder that can be written") from error


def read_plan(path: Path) -> SyncPlan:
    """Read a plan. Raises PrimerError for a file that is none."""
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        raise PrimerError(f"--plan {path}: {error.strerror}; make it with `primer plan SOURCE --out {path}`") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise PrimerError(f"--plan {path} is no plan of this Primer: {where}: {first['msg']}; make it anew with `primer plan`") from error
