"""The asset over a folder of its own: what it says when it is not set, and what it keeps."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from primer_assets.parse_quality import parse_quality
from primer_resources.settings import Settings


def materialize(settings: Settings, **config: Any) -> dg.ExecuteInProcessResult:
    run_config = {"ops": {"parse_quality": {"config": config}}}
    return dg.materialize([parse_quality], resources={"settings": settings}, run_config=run_config, raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = result.get_step_failure_events()
    assert event.step_failure_data.user_failure_data is not None
    return event.step_failure_data.user_failure_data.description or ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(3):
        text = f"<!DOCTYPE html><html><body><p>Page {number} of the port's rules.</p></body></html>"
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
    (folder / "note.md").write_text("# Note\n\nWords.", encoding="utf-8")
    return folder


def test_without_the_setting_it_fails_with_one_line_that_names_it(tmp_path: Path) -> None:
    message = failure(materialize(Settings(home=tmp_path)))
    assert message.startswith("PRIMER_QUALITY_CORPUS is not set: name a folder")
    assert "\n" not in message


def test_a_format_that_is_not_parsed_is_named(tmp_path: Path, folder: Path) -> None:
    settings = Settings(home=tmp_path, quality_corpus=folder)
    assert failure(materialize(settings, formats=["docs"])).startswith("'docs' is no format that is parsed; choose from csv, docx")


def test_the_report_is_kept_in_the_home_and_its_figures_are_metadata(tmp_path: Path, folder: Path) -> None:
    result = materialize(Settings(home=tmp_path / "home", quality_corpus=folder), formats=["html"], limit=2)
    assert result.success
    (event,) = result.asset_materializations_for_node("parse_quality")
    metadata = {name: value.value for name, value in event.metadata.items()}
    assert metadata["documents"] == 2
    assert metadata["not_read"] == 0
    assert "| html | docling | 2 of 2 |" in str(metadata["figures"])
    reports = tmp_path / "home" / "reports"
    assert {Path(str(metadata[name])) for name in ("page", "data")} == set(reports.iterdir())
