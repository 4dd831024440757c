"""What a listing did not show is found whatever the order and the number of ids, and a rename is taken out of it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources import id_spool
from primer_resources.seen_ids import SeenIds

IDS = st.sets(st.integers(0, 40).map(lambda number: f"{number * 0x07000000000000000000000000000001 % (1 << 128):032x}"))


@given(IDS, st.lists(IDS, max_size=4), st.integers(0, 200))
def test_missing_is_known_less_seen_in_order(
    tmp_path_factory: pytest.TempPathFactory, known: set[str], seen: list[set[str]], kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_spool, "BUFFERED_BYTES", kept)
        spool = SeenIds(tmp_path_factory.mktemp("seen") / "spool")
        for ids in seen:
            spool.add(ids)
        missing = spool.missing_of(sorted(known))
    wanted = sorted(known - set().union(*seen))
    assert (list(missing), len(missing), missing.known) == (wanted, len(wanted), len(known))
    assert [ids for page in missing.pages(3) for ids in page] == wanted
    assert all((doc_id in missing) is (doc_id in wanted) for doc_id in known)
    for doc_id in wanted[::2]:
        missing.take_out(doc_id)
        assert doc_id not in missing
    assert list(missing) == wanted[1::2]
    assert len(missing) == len(wanted[1::2])


@pytest.mark.parametrize("ids", [["ff" * 16, "00" * 16], ["ab" * 16, "ab" * 16]])
def test_known_ids_out_of_order_or_repeated_are_refused(tmp_path: Path, ids: Any) -> None:
    with pytest.raises(ValueError, match="must ascend"):
        SeenIds(tmp_path / "spool").missing_of(ids)
