from datetime import timedelta
from pathlib import Path

import pytest

from primer_core.failures import PrimerError
from primer_resources.settings import Settings, load_settings

DURATIONS = [name for name, field in Settings.model_fields.items() if field.annotation is timedelta]


def write_toml(home: Path, text: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "primer.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize("value", ["90", "1.5", "0"])
def test_a_bare_number_is_no_duration_and_the_setting_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PRIMER_{name.upper()}", value)
    with pytest.raises(PrimerError, match=f"setting PRIMER_{name.upper()} = '{value}' is not valid: duration '{value}' has no unit"):
        load_settings()


def test_a_bare_number_in_the_file_is_refused_too(primer_home: Path) -> None:
    write_toml(primer_home, "lease = 90\n")
    with pytest.raises(PrimerError, match=r"setting primer\.toml: lease = 90 is not valid: duration '90' has no unit"):
        load_settings()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("200ms", timedelta(milliseconds=200)),
        ("1.5m", timedelta(seconds=90)),
        (" 2 h ", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("PT90S", timedelta(seconds=90)),
    ],
)
def test_durations_carry_their_unit(written: str, meant: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_PURGE_GRACE", written)
    assert load_settings().purge_grace == meant


@pytest.mark.parametrize("written", ["", "s", "-5s", "5 weeks", "1m30s", "soon"])
def test_what_is_no_duration_is_refused(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_PURGE_GRACE", written)
    with pytest.raises(PrimerError, match="setting PRIMER_PURGE_GRACE"):
        load_settings()


def test_arguments_win_over_the_environment_and_that_over_the_file(primer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_toml(primer_home, 'lease = "10s"\nbuckets = 4\nlibrary = "filed"\n')
    monkeypatch.setenv("PRIMER_BUCKETS", "16")
    monkeypatch.setenv("PRIMER_LEASE", "20s")
    settings = load_settings(lease="30s")
    assert (settings.lease, settings.buckets, settings.library) == (timedelta(seconds=30), 16, "filed")
    assert (settings.home, settings.tenant) == (primer_home, "default")


def test_the_file_is_read_from_the_home_that_is_given(tmp_path: Path, primer_home: Path) -> None:
    write_toml(primer_home, 'library = "elsewhere"\n')
    write_toml(tmp_path / "given", 'library = "given"\n')
    assert load_settings(home=tmp_path / "given").library == "given"


def test_an_unknown_name_in_the_file_is_named(primer_home: Path) -> None:
    write_toml(primer_home, 'leese = "90s"\n')
    with pytest.raises(PrimerError, match=r"primer\.toml: 'leese' is no setting; did you mean 'lease'\?"):
        load_settings()


def test_a_file_that_is_no_toml_is_named_with_its_line(primer_home: Path) -> None:
    write_toml(primer_home, 'buckets = 4\nlease = "90s\n')
    with pytest.raises(PrimerError, match=r"primer\.toml in PRIMER_HOME is no valid TOML: .*line 2"):
        load_settings()


@pytest.mark.parametrize(("name", "value"), [("BUCKETS", "0"), ("BUCKETS", "257"), ("BUCKETS", "many"), ("CHUNK_OVERLAP_PERCENT", "51")])
def test_a_value_out_of_range_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PRIMER_{name}", value)
    with pytest.raises(PrimerError, match=f"setting PRIMER_{name} = '{value}'"):
        load_settings()


def test_the_catalog_is_a_file_in_the_home_unless_a_url_says_otherwise(primer_home: Path) -> None:
    assert load_settings().catalog_url == f"sqlite:///{primer_home.resolve() / 'catalog.sqlite'}"
    assert load_settings(database_url="postgresql://db/primer").catalog_url == "postgresql://db/primer"


def test_a_lease_too_short_to_beat_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_LEASE", "0s")
    with pytest.raises(PrimerError, match="PRIMER_LEASE"):
        load_settings()


@pytest.mark.parametrize("written", ["deu+eng", "deu,eng", " deu eng "])
def test_languages_are_written_as_tesseract_writes_them(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_OCR_LANGUAGES", written)
    assert load_settings().ocr_languages == ("deu", "eng")


@pytest.mark.parametrize("written", ["", "deu+", "--tessdata-dir /tmp", "eng;rm"])
def test_what_is_no_language_is_refused(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_OCR_LANGUAGES", written)
    with pytest.raises(PrimerError, match="PRIMER_OCR_LANGUAGES"):
        load_settings()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("60", "duration '60' has no unit"),
        ("PT1H", r"it is shorter than a day \(P1D\)"),
        ("23h", "it is shorter than a day"),
    ],
)
def test_a_retention_without_a_unit_or_under_a_day_is_refused_with_the_reason(
    value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIMER_RETENTION", value)
    with pytest.raises(PrimerError, match=f"setting PRIMER_RETENTION = '{value}' is not valid: {reason}"):
        load_settings()


@pytest.mark.parametrize("value", ["P1D", "24h", "30d"])
def test_a_retention_of_a_day_or_more_is_taken_and_none_is_for_ever(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().retention is None
    monkeypatch.setenv("PRIMER_RETENTION", value)
    retention = load_settings().retention
    assert retention is not None
    assert retention >= timedelta(days=1)


def test_source_bytes_are_kept_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().keep_sources == "keep"
    monkeypatch.setenv("PRIMER_KEEP_SOURCES", "never")
    with pytest.raises(PrimerError, match="PRIMER_KEEP_SOURCES = 'never' is not valid: input should be 'keep' or 'until_indexed'"):
        load_settings()


def test_the_golden_set_is_what_is_named_or_else_a_folder_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_HOME", str(tmp_path))
    assert load_settings().golden_places == ()
    (tmp_path / "golden").mkdir()
    assert load_settings().golden_places == (tmp_path / "golden",)
    monkeypatch.setenv("PRIMER_GOLDEN", 'a.jsonl, "b, c"')
    monkeypatch.setenv("PRIMER_GOLDEN_MAP", "drive=cloud,wiki=pages/en")
    assert load_settings().golden_places == (Path("a.jsonl"), Path("b, c"))
    assert load_settings().golden_map == ("drive=cloud", "wiki=pages/en")
