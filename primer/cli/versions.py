"""`primer version`, `primer promote` and `primer rollback`: which index versions there are, and which one searches are answered from."""

from typing import Annotated, Any
from uuid import uuid4

import typer

from primer.cli.backfills import Chunker, MaxTokens, Model, Overlap
from primer.cli.output import DIFFERENCE_EXIT, JsonOption, out, print_json, print_table
from primer.workspace import Workspace, open_workspace
from primer_core.index_versions import CheckResult
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.version_making import RecipeChange, make_version

app = typer.Typer(no_args_is_help=True, help="Index versions: sealed recipes, each with indexes of its own.")
Name = Annotated[str, typer.Argument(help="An index version, as `primer version list` names them.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is to be called, as in v2.")],
    model: Model = None,
    chunker: Chunker = None,
    max_tokens: MaxTokens = None,
    overlap: Overlap = None,
    json: JsonOption = False,
) -> None:
    """Seal the live recipe with what is given (the settings' recipe, where nothing is) under a name.

    Changes are written to it from now on; `primer backfill start` fills it with what is there already.
    """
    with open_workspace() as workspace:
        make_version(workspace.catalog, workspace.settings, name, RecipeChange(model, chunker, max_tokens, overlap))
        workspace.add_partitions()
        made = workspace.catalog.deployments.version(name)
    if json:
        print_json(_to_json(made))
    else:
        out.print(
            f"index version {name} is open: changes are written to it; `primer backfill start --target {name}` fills it", markup=False
        )


@app.command("list")
def list_versions(json: JsonOption = False) -> None:
    """All index versions, oldest first."""
    with open_workspace() as workspace:
        found = workspace.catalog.deployments.versions()
    if json:
        print_json([_to_json(version) for version in found])
        return
    rows = [
        [
            version.name,
            version.state,
            version.recipe.chunker.version,
            version.recipe.embedding.model,
            version.created_at.isoformat(timespec="seconds"),
            None if version.retire_at is None else version.retire_at.isoformat(timespec="seconds"),
        ]
        for version in found
    ]
    print_table(["version", "state", "chunker", "model", "made", "goes"], rows)


@app.command()
def show(name: Name, json: JsonOption = False) -> None:
    """A version's recipe, and what its checks found when they were made last."""
    with open_workspace() as workspace:
        version = workspace.catalog.deployments.version(name)
        results = workspace.catalog.promotions.results(name)
    if json:
        print_json({**_to_json(version), "checks": [_check_json(result) for result in results]})
        return
    out.print(f"{name} is {version.state}, recipe {version.recipe.digest}", markup=False)
    for part, fields in version.recipe.to_json().items():
        out.print(f"  {part}: " + ", ".join(f"{field}={value}" for field, value in fields.items()), markup=False)
    _print_checks(results)


@app.command()
def check(name: Name, json: JsonOption = False) -> None:
    """Measure a version against the live one. Exit 1 where a check fails."""
    from primer.promoting import check_version

    with open_workspace() as workspace:
        results = check_version(workspace, name)
    if json:
        print_json([_check_json(result) for result in results])
    else:
        _print_checks(results)
    if not all(result.passed for result in results):
        raise typer.Exit(DIFFERENCE_EXIT)


@app.command()
def retire(name: Name, json: JsonOption = False) -> None:
    """Drop a version that is not the live one, now: its indexes, its rows in the catalog, its partition. There is no way back."""
    with open_workspace() as workspace:
        workspace.catalog.promotions.retire(name)
        dropped = _drop(workspace)
    if json:
        print_json({"index_version": name, **dropped})
    elif dropped["busy"]:
        out.print(f"index version {name} is closed; a run still writes to it, so retired_versions_schedule drops it later")
    else:
        out.print(f"index version {name} is dropped, with {dropped['rows']} rows of the catalog")


def promote(name: Name, json: JsonOption = False) -> None:
    """Make a version the live one, if its checks pass now. The one before is kept, and written to, for PRIMER_RETIRE_AFTER."""
    from primer.promoting import promote_version

    with open_workspace() as workspace:
        before, results = promote_version(workspace, name)
    if json:
        print_json({"live": name, "before": before.name, "checks": [_check_json(result) for result in results]})
        return
    _print_checks(results)
    goes = "" if before.retire_at is None else f" until {before.retire_at:%Y-%m-%d %H:%M} UTC"
    out.print(f"{name} is live; {before.name} is kept{goes}, and `primer rollback` goes back to it")


def rollback(json: JsonOption = False) -> None:
    """Go back to the version that was live before. Searches are answered from it at once."""
    with open_workspace() as workspace:
        left = workspace.catalog.promotions.rollback()
        live = workspace.catalog.deployments.live()
    if json:
        print_json({"live": live.name, "before": left.name})
    else:
        out.print(f"{live.name} is live again; {left.name} is still written to, and can be promoted anew")


def _drop(workspace: Workspace) -> dict[str, int]:
    from primer_assets.partitions import INDEX_VERSION
    from primer_assets.retired_versions import drop_retired

    def forget(name: str) -> None:
        if name in workspace.instance.get_dynamic_partitions(INDEX_VERSION):
            workspace.instance.delete_dynamic_partition(INDEX_VERSION, name)

    owner = f"retire-{uuid4().hex}"
    tally = drop_retired(workspace.catalog, workspace.settings, workspace.toolkit, owner, forget, lambda _name: None)
    return {word: tally.counts[word] for word in ("dropped", "rows", "busy")}


def _print_checks(results: list[CheckResult]) -> None:
    for result in results:
        mark = "[green]passed[/green]" if result.passed else "[red]failed[/red]"
        out.print(f"{mark} {result.name} at {result.measured_at:%Y-%m-%d %H:%M:%S} UTC:", end=" ")
        out.print(result.words, markup=False)


def _check_json(result: CheckResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "passed": result.passed,
        "words": result.words,
        "figures": dict(result.figures),
        "measured_at": result.measured_at.isoformat(),
    }


def _to_json(version: IndexVersion) -> dict[str, Any]:
    return {
        "name": version.name,
        "state": version.state.value,
        "recipe": version.recipe.to_json(),
        "recipe_digest": version.recipe.digest,
        "created_at": version.created_at.isoformat(),
        "retire_at": None if version.retire_at is None else version.retire_at.isoformat(),
    }
