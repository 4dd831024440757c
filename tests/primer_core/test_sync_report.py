import json
from dataclasses import fields

from primer_core.sync_report import SyncReport


def test_a_report_names_every_figure_and_starts_at_nothing() -> None:
    assert SyncReport().to_json() == {field.name: 0 for field in fields(SyncReport)}
    report = SyncReport(scanned=3, new=1, unchanged=2)
    assert json.loads(json.dumps(report.to_json()))["scanned"] == 3
