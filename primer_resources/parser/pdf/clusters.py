"""Docling's clusters with what the rules know of them besides."""

from docling.datamodel.base_models import Cluster
from pydantic import ConfigDict

from primer_core.layout.grids import Grid


class TextCluster(Cluster):
    """Lines of one block, one cell a line, and how they are set. `in_figure`: inside a drawing."""

    size: float = 0.0
    bold: bool = False
    italic: bool = False
    mono: bool = False
    in_figure: bool = False


class GridCluster(Cluster):
    """A table with its grid."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    grid: Grid
