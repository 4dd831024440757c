"""Which drives can be, and which would take each other's objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.drives import DriveSpec, check_spec, find_overlap
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind

PARTS = st.lists(st.sampled_from("abc"), max_size=4)
KEYS = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (DriveSpec(""), "needs a place"),
        (DriveSpec("s3://"), "no name of a bucket"),
        (DriveSpec("s3://AB"), "no name of a bucket"),
        (DriveSpec("s3://bucket/a//b"), "empty part"),
        (DriveSpec("s3://bucket/a/../b"), "empty part"),
        (DriveSpec("s3://bucket", endpoint="localhost:9000"), "is no address"),
        (DriveSpec("gs://bucket"), "kind of place is unknown"),
        (DriveSpec("/folder", region="eu-central-1"), "is a folder, which has no region"),
        (DriveSpec("/folder", credentials_ref="env:A"), "is a folder, which has no region"),
    ],
)
def test_what_can_be_no_drive_is_told(spec: DriveSpec, told: str) -> None:
    with pytest.raises(PrimerError, match=told):
        check_spec(spec)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://my.bucket-1/a/b/", "/folder", "store/intake"])
def test_what_can_be_a_drive_passes(url: str) -> None:
    assert check_spec(DriveSpec(url)).url == url


@given(PARTS, PARTS, KEYS, KEYS, st.sampled_from(["s3://bucket", "/root"]))
def test_drives_that_do_not_overlap_share_no_object(one: list[str], two: list[str], key: list[str], other: list[str], root: str) -> None:
    first, second = (DriveSpec("/".join([root, *parts])) for parts in (one, two))
    assert first.overlaps(second) == second.overlaps(first)
    if not first.overlaps(second):
        assert [*one, *key] != [*two, *other]
    else:
        shorter, longer = sorted((one, two), key=len)
        assert longer[: len(shorter)] == shorter


def test_parts_are_compared_whole_and_stores_are_kept_apart() -> None:
    assert not DriveSpec("s3://bucket/a").overlaps(DriveSpec("s3://bucket/ab"))
    assert DriveSpec("s3://bucket").overlaps(DriveSpec("s3://bucket/ab"))
    assert not DriveSpec("s3://bucket/a").overlaps(DriveSpec("s3://another/a"))
    assert not DriveSpec("s3://bucket/a").overlaps(DriveSpec("s3://bucket/a", endpoint="http://h:1"))
    assert DriveSpec("s3://bucket/a", endpoint="http://h:1/").overlaps(DriveSpec("s3://bucket/a/", "eu", "http://h:1", "env:A"))


def test_the_same_place_has_other_keys_and_regions_but_no_other_endpoint() -> None:
    spec = DriveSpec("s3://bucket/a", "us-east-1", "http://h:1", "env:A")
    assert spec.is_same_place(DriveSpec("s3://bucket/a/", "eu", "http://h:1/", "env:B"))
    for other in (DriveSpec("s3://bucket/a"), DriveSpec("s3://bucket/b", endpoint="http://h:1"), DriveSpec("/bucket/a")):
        assert not spec.is_same_place(other)
    assert DriveSpec("/a/b").is_same_place(DriveSpec("/a/b/"))


def test_a_tenants_own_two_drives_may_not_overlap_either() -> None:
    wanted = {DriveKind.INTAKE: DriveSpec("s3://bucket/a"), DriveKind.PIPELINE: DriveSpec("s3://bucket/a/b")}
    assert find_overlap(wanted, [], "t") == (
        "drive t:pipeline at s3://bucket/a/b would share objects with drive t:intake at s3://bucket/a; choose another place"
    )
    apart = {**wanted, DriveKind.PIPELINE: DriveSpec("s3://bucket/b")}
    assert find_overlap(apart, [], "t") is None
    assert "drive other:intake" in (find_overlap(apart, [("other", DriveKind.INTAKE, DriveSpec("s3://bucket"))], "t") or "")
