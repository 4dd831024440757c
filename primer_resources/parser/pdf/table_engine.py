"""The table-structure engine: grids that the rules found, as Docling's table cells."""

from collections.abc import Sequence
from pathlib import Path

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import Page, Table, TableStructurePrediction
from docling.datamodel.document import ConversionResult
from docling.models.base_table_model import BaseTableStructureModel
from docling_core.types.doc import TableCell

from primer_resources.parser.pdf.cells import docling_box
from primer_resources.parser.pdf.clusters import GridCluster
from primer_resources.parser.pdf.options import RuleTableOptions


class RuleTableModel(BaseTableStructureModel):
    """Writes each grid as a table."""

    def __init__(
        self,
        options: RuleTableOptions,
        enabled: bool = True,
        artifacts_path: Path | None = None,
        accelerator_options: AcceleratorOptions | None = None,
        enable_remote_services: bool = False,
    ) -> None:
        """No model is loaded: what Docling passes besides `options` and `enabled` is of no use here."""
        self.options = options
        self.enabled = enabled

    @classmethod
    def get_options_type(cls) -> type[RuleTableOptions]:
        """The options that choose this engine."""
        return RuleTableOptions

    def predict_tables(self, conv_res: ConversionResult, pages: Sequence[Page]) -> Sequence[TableStructurePrediction]:
        """The tables of each page, by their cluster."""
        return [TableStructurePrediction(table_map={table.id: table for table in _tables(page)}) for page in pages]


def _tables(page: Page) -> list[Table]:
    if page.predictions.layout is None:
        return []
    return [_table(cluster, page.page_no) for cluster in page.predictions.layout.clusters if isinstance(cluster, GridCluster)]


def _table(cluster: GridCluster, page_no: int) -> Table:
    grid = cluster.grid
    cells = [
        TableCell(
            bbox=docling_box(cell.box),
            row_span=cell.row_span,
            col_span=cell.column_span,
            start_row_offset_idx=cell.row,
            end_row_offset_idx=cell.row + cell.row_span,
            start_col_offset_idx=cell.column,
            end_col_offset_idx=cell.column + cell.column_span,
            text=cell.text,
            column_header=cell.row < grid.header_rows,
        )
        for cell in grid.cells
    ]
    return Table(
        label=cluster.label,
        id=cluster.id,
        page_no=page_no,
        cluster=cluster,
        otsl_seq=[],
        num_rows=grid.rows,
        num_cols=grid.columns,
        table_cells=cells,
    )
