"""Whose fault an error is: a damaged file's, or the system's."""

import errno

from primer_core.failures import NEXT_ACTION, Reason, is_of_system


def test_a_full_disk_is_the_systems_and_damaged_data_is_the_documents() -> None:
    assert is_of_system(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_of_system(OSError("Invalid data stream"))
    assert not is_of_system(OSError(errno.EINVAL, "Invalid argument"))  # a seek to where a damaged directory points
    assert not is_of_system(ValueError("bad header"))


def test_every_reason_says_what_to_do() -> None:
    assert set(NEXT_ACTION) == set(Reason)
