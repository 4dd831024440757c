"""Index versions judged and swapped, as the commands do it."""

from primer.workspace import Workspace
from primer_core.index_versions import CheckResult
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.golden.runs import GoldenRuns
from primer_resources.version_checks import Compared, measure


def check_version(workspace: Workspace, name: str) -> list[CheckResult]:
    """Measure a version against the live one, and keep the results. Raises PrimerError for a version that nobody made."""
    catalog, toolkit = workspace.catalog, workspace.toolkit
    version, live = catalog.deployments.version(name), catalog.deployments.live()
    golden = GoldenRuns(workspace.settings, catalog, workspace.store, toolkit)
    return measure(Compared(catalog, version, toolkit.of(version), live, toolkit.of(live)), golden)


def promote_version(workspace: Workspace, name: str) -> tuple[IndexVersion, list[CheckResult]]:
    """Measure a version now, and make it the live one. Returns the version that was live before, and the results.

    Raises PromotionRefused, with every reason.
    """
    results = check_version(workspace, name)
    settings = workspace.settings
    return workspace.catalog.promotions.promote(name, settings.promote_lag, settings.retire_after), results
