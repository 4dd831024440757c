"""Secrets are named, never kept, and never shown."""

from pathlib import Path

import pytest

from primer_core.failures import PrimerError
from primer_resources.connectors.registry import check_source
from primer_resources.credentials import check_reference, read_secret

SECRET = "s3cr3t-token"


def test_a_secret_is_read_where_the_reference_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_TOKEN", SECRET)
    (tmp_path / "token").write_text(f"{SECRET}\n")
    assert read_secret("env:WIKI_TOKEN") == read_secret(f"file:{tmp_path / 'token'}") == SECRET
    assert read_secret(None) is None


def test_a_secret_given_as_such_is_refused_and_not_repeated() -> None:
    with pytest.raises(PrimerError, match="by reference") as caught:
        check_reference(SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "settings"),
    [
        ("wiki", {"url": f"https://me:{SECRET}@wiki.example.org/pages.git"}),
        ("wiki", {"url": f"https://{SECRET}@wiki.example.org/pages.git"}),
        ("wiki", {"url": f"ssh://git:{SECRET}@wiki.example.org/pages.git"}),
        ("tickets", {"url": f"https://{SECRET}@wiki.example.org/repos/a/b"}),
        ("object_store", {"url": "s3://bucket", "endpoint": f"https://me:{SECRET}@wiki.example.org"}),
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(type_: str, settings: dict[str, str]) -> None:
    with pytest.raises(PrimerError, match=r"wiki\.example\.org has a user or password .*--credentials") as caught:
        check_source(type_, settings, None)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["ssh://git@wiki.example.org/pages.git", "git@wiki.example.org:pages.git", "/srv/wiki@home.git"])
def test_the_user_of_ssh_is_no_secret(url: str) -> None:
    check_source("wiki", {"url": url}, None)


@pytest.mark.parametrize("reference", ["env:NOBODY_SET_THIS", "file:/does/not/exist"])
def test_a_reference_to_nothing_is_named(reference: str) -> None:
    with pytest.raises(PrimerError, match=reference):
        read_secret(reference)


def test_a_file_without_a_secret_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(PrimerError, match="are empty"):
        read_secret(f"file:{tmp_path / 'token'}")
