"""What a sync found, in the words that people see everywhere; each listed document is counted under one of them."""

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class SyncReport:
    """scanned = new + changed + unchanged + acl_only. `renamed` is the part of unchanged and acl_only that has a new path;
    `deleted` and `held` are documents that the listing no longer showed. `unreadable` became dead letters since they could not be read,
    `still_unreadable` were so before and could not be read again."""

    scanned: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    acl_only: int = 0
    renamed: int = 0
    deleted: int = 0
    held: int = 0
    unreadable: int = 0
    still_unreadable: int = 0
    bytes_read: int = 0

    def to_json(self) -> dict[str, int]:
        """The figures by name."""
        return asdict(self)
