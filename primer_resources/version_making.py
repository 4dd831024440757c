"""New index versions from the settings of the deployment and what is to be another way: sealed, opened for writing, and filled.

What the command line, the HTTP API and the job in Dagster's UI do when a backfill is begun.
"""

from dataclasses import dataclass, replace
from typing import Any

from primer_core.backfills import BackfillReason, check_reason
from primer_core.buckets import bucket_names
from primer_core.failures import PrimerError
from primer_core.index_versions import VersionState, check_name
from primer_core.recipe import ChunkerKind, Recipe
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.catalog import Catalog
from primer_resources.recipes import present_parser, present_recipe, vary
from primer_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class RecipeChange:
    """What a new version has in another way than the live one; None stays as it is. `model` is the bundled one, a folder's path, or the
    name of a folder in PRIMER_MODELS_FOLDER."""

    model: str | None = None
    chunker: ChunkerKind | None = None
    max_tokens: int | None = None
    overlap_percent: int | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What is another way."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill would do: the recipes, whether the version is there already, and how many documents it would look at."""

    target: str
    reason: BackfillReason
    live: Recipe
    recipe: Recipe
    is_new: bool
    documents: int


def make_recipe(settings: Settings, live: Recipe, change: RecipeChange, reason: BackfillReason | None = None) -> Recipe:
    """The live recipe with a change, and with the parser of this process where the reason is the parser; where nothing is given, the recipe
    that the settings make. Raises PrimerError for what is not here, such as a model."""
    if not change.given and reason is not BackfillReason.PARSER:
        return present_recipe(settings)
    changed = vary(live, settings, **change.given) if change.given else live
    return replace(changed, parser=present_parser(settings)) if reason is BackfillReason.PARSER else changed


def make_version(catalog: Catalog, settings: Settings, name: str, change: RecipeChange) -> None:
    """Seal the recipe of the settings with a change under a name, and open it for writing. Raises PrimerError where the name is taken or
    cannot be one, and where an open version has that recipe."""
    check_name(name)
    known = {version.name: version for version in catalog.deployments.versions()}
    if name in known:
        raise PrimerError(f"index version {name} is there already ({known[name].state}); give the new one another name")
    catalog.deployments.add_version(
        name, make_recipe(settings, catalog.deployments.live().recipe, change), VersionState.BUILDING, settings.buckets
    )


def plan_backfill(catalog: Catalog, settings: Settings, target: str, reason: BackfillReason, change: RecipeChange) -> BackfillPlan:
    """What `begin_backfill` would do; changes nothing. Raises PrimerError as that does, as far as can be told without doing it."""
    check_name(target)
    live = catalog.deployments.live()
    version = {each.name: each for each in catalog.deployments.versions()}.get(target)
    if version is not None and change.given:
        raise PrimerError(
            f"index version {target} is there already, and a recipe never changes; leave {', '.join(sorted(change.given))} out, or name "
            "another target"
        )
    recipe = make_recipe(settings, live.recipe, change, reason) if version is None else version.recipe
    if version is None or version.state is VersionState.BUILDING:
        same = [each for each in catalog.deployments.open_versions() if each.recipe.digest == recipe.digest and each.name != target]
        if same:
            raise PrimerError(f"index version {same[0].name} has the recipe that {target} would have; change a part of it")
        check_reason(reason, live.recipe, recipe, target)
    return BackfillPlan(target, reason, live.recipe, recipe, version is None, catalog.backfills.count_living())


def begin_backfill(
    catalog: Catalog,
    settings: Settings,
    target: str,
    reason: BackfillReason,
    change: RecipeChange,
    max_docs_per_s: float | None,
) -> Backfill:
    """Make the version where it is not there yet, and begin to fill it: it is open for writing before the first document is looked at.

    Raises PrimerError where the recipe does not fit the reason, where the version is none that is being built, and where it is being
    filled already. Repeating it after a crash goes on.
    """
    plan = plan_backfill(catalog, settings, target, reason, change)
    if plan.is_new:
        catalog.deployments.add_version(target, plan.recipe, VersionState.BUILDING, settings.buckets)
    return catalog.backfills.begin(catalog.deployments.version(target), reason, max_docs_per_s, bucket_names(settings.buckets))
