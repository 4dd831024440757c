from hypothesis import given
from hypothesis import strategies as st

from primer_core.buckets import bucket_names
from primer_sensors.sweeps import Sweep, plan_sweeps

NAMES = bucket_names(8)
VERSIONS = ("v1", "v2", "v3")
waiting_maps = st.dictionaries(st.sampled_from(VERSIONS), st.sets(st.sampled_from(NAMES)), max_size=3)


def _sweep(version: str, one: str, two: str) -> Sweep:
    return Sweep(version, min(one, two), max(one, two))


running = st.lists(st.builds(_sweep, st.sampled_from(VERSIONS), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=3)


def cells(sweeps: list[Sweep]) -> list[tuple[str, str]]:
    return [(sweep.index_version, name) for sweep in sweeps for name in NAMES if sweep.first <= name <= sweep.last]


@given(waiting_maps, running, st.integers(0, 6))
def test_sweeps_share_no_bucket_and_stay_within_the_limit(waiting: dict[str, set[str]], under_way: list[Sweep], most: int) -> None:
    planned = plan_sweeps(waiting, under_way, NAMES, most)
    assert len(planned) <= max(0, most - len(under_way))
    assert len(cells(planned)) == len(set(cells(planned)))
    assert set(cells(planned)).isdisjoint(cells(under_way))


@given(waiting_maps, running, st.integers(0, 6))
def test_all_that_waits_is_swept_unless_every_place_is_taken(waiting: dict[str, set[str]], under_way: list[Sweep], most: int) -> None:
    planned = plan_sweeps(waiting, under_way, NAMES, most)
    left = {(v, name) for v, names in waiting.items() for name in names} - set(cells(under_way)) - set(cells(planned))
    assert not left or len(planned) + len(under_way) >= most


@given(waiting_maps, running, st.integers(0, 6))
def test_no_run_is_launched_over_buckets_where_nothing_waits(waiting: dict[str, set[str]], under_way: list[Sweep], most: int) -> None:
    for sweep in plan_sweeps(waiting, under_way, NAMES, most):
        assert any((sweep.index_version, name) in cells([sweep]) for name in waiting[sweep.index_version])


@given(waiting_maps, running, st.integers(0, 6))
def test_a_version_gets_a_second_place_only_when_all_have_one(waiting: dict[str, set[str]], under_way: list[Sweep], most: int) -> None:
    planned = plan_sweeps(waiting, under_way, NAMES, most)
    free = {version for version, names in waiting.items() if {(version, name) for name in names} - set(cells(under_way))}
    served = [sweep.index_version for sweep in planned]
    if len(served) > len(set(served)):
        assert set(served) == free


def test_changes_coalesce_into_a_run_that_is_queued() -> None:
    assert plan_sweeps({"v1": {"01", "02"}}, [Sweep("v1", "00", "03")], NAMES, 4) == []


def test_a_range_is_cut_where_another_run_is_on_a_bucket() -> None:
    planned = plan_sweeps({"v1": {"02", "04"}}, [Sweep("v1", "03", "03")], NAMES, 3)
    assert planned == [Sweep("v1", "02", "02"), Sweep("v1", "04", "04")]


def test_one_run_of_another_version_does_not_cover_this_one() -> None:
    assert plan_sweeps({"v2": {"01"}}, [Sweep("v1", "00", "07")], NAMES, 2) == [Sweep("v2", "01", "01")]


def test_nothing_waiting_launches_nothing() -> None:
    assert plan_sweeps({}, [], NAMES, 2) == plan_sweeps({"v1": set()}, [], NAMES, 2) == []
