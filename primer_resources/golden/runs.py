"""The golden set of a deployment and its runs: what the settings name, asked of any index version. Commands and checks come in here."""

from collections.abc import Sequence
from functools import cached_property

from primer_core.failures import PrimerError
from primer_core.golden.canaries import CanaryReport
from primer_core.golden.paths import PathMap
from primer_core.golden.report import Report
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.document_store import DocumentStore
from primer_resources.golden.canaries import check_canaries
from primer_resources.golden.evaluation import evaluate
from primer_resources.golden.evidence import Tracer
from primer_resources.golden.files import GoldenSet, load_golden
from primer_resources.golden.targets import Targets
from primer_resources.reader import Reader
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


class GoldenRuns:
    """Asks the questions and the canaries that the settings name; `paths` go before the map of the settings where any are given."""

    def __init__(
        self, settings: Settings, catalog: Catalog, store: DocumentStore, toolkit: Toolkit, paths: Sequence[str] | None = None
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._toolkit = toolkit
        self._targets = Targets(catalog, settings.tenant, PathMap.parse(paths or settings.golden_map))

    @cached_property
    def golden(self) -> GoldenSet:
        """The questions and canaries; none where neither a setting nor the home names any. Raises PrimerError for files that cannot be
        used."""
        return load_golden(self._settings.golden_places)

    def report(self, version: IndexVersion, k: int = 10) -> Report:
        """Ask an index version all questions. Raises PrimerError where there are none."""
        if not self.golden.questions:
            home = self._settings.home / "golden"
            raise PrimerError(f"there is no golden set: put questions into {home}, or set PRIMER_GOLDEN to where they are")
        tracer = Tracer(self._catalog, self._store, version)
        return evaluate(self._reader(version), self.golden.questions, self._targets, tracer, k)

    def canaries(self, version: IndexVersion, k: int = 10) -> CanaryReport:
        """Search an index version for all canaries; a deployment without any has a report that passes."""
        return check_canaries(self._reader(version), self.golden.canaries, self._targets, k)

    def _reader(self, version: IndexVersion) -> Reader:
        return Reader(self._catalog, self._store, version, self._toolkit.of(version))
