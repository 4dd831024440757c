import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.content_roots import path_under


@pytest.mark.parametrize(
    ("root", "uri", "path"),
    [
        ("file:///docs", "file:///docs/a/b.md", "a/b.md"),
        ("file:///docs/", "file:///docs/with%20blank.md", "with blank.md"),
        ("s3://bucket/docs", "s3://bucket/docs/a.md", "a.md"),
        ("s3://bucket", "s3://bucket/a.md", "a.md"),
        ("https://host/repos/o/n", "HTTPS://Host:443/repos/o/n/issues/5", "issues/5"),
        ("file:///docs", "file:///docs/100%25.md", "100%.md"),
        ("file:///docs", "file:///docs/v1.2.md", "v1.2.md"),
    ],
)
def test_an_address_inside_its_root(root: str, uri: str, path: str) -> None:
    assert path_under(root, uri) == path


@pytest.mark.parametrize(
    "uri",
    [
        "https://host/repos/o/n",
        "https://host/repos/o/name",
        "https://host/repos/other",
        "http://host/repos/o/n/1",
        "https://host:8443/repos/o/n/1",
        "https://host.evil.example/repos/o/n/1",
        "https://host@evil.example/repos/o/n/1",
        "https://user:secret@host/repos/o/n/1",
        "https://evil.example\\@host/repos/o/n/1",
        "https://evil.example#@host/repos/o/n/1",
        "https://host/repos/o/n/../../../etc",
        "https://host/repos/o/n/%2e%2e/x",
        "https://host/repos/o/n/%2E./x",
        "https://host/repos/o/n/a%2fb",
        "https://host/repos/o/n/a%5cb",
        "https://host/repos/o/n/%252e%252e/x",
        "https://host/repos/o/n/a%252fb",
        "https://host/repos/o/n/a%00b",
        "https://host/repos/o/n/a//b",
        "https://host/repos/o/n/a b",
        "https://host/repos/o/n/a\nb",
        "https://host/repos/o/n/a?x=1",
        "//host/repos/o/n/a",
        "/repos/o/n/a",
        "https:/host/repos/o/n/a",
        "https:host/repos/o/n/a",
        "file:///repos/o/n/a",
        "https://host:port/repos/o/n/a",
        "https://[host/repos/o/n/a",
        "",
    ],
)
def test_an_address_that_leaves_its_root_or_may_be_read_in_two_ways_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        path_under("https://host/repos/o/n", uri)


@given(st.text(max_size=60))
def test_whatever_is_behind_the_root_the_path_stays_below_it(tail: str) -> None:
    try:
        path = path_under("file:///docs", f"file:///docs/{tail}")
    except ValueError:
        return
    assert path
    assert not {"", ".", ".."} & set(path.split("/"))
    assert "\\" not in path
