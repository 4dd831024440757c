"""Micro-batches: how long an item waits for company. No clock inside: the time is passed in, in seconds of one monotonic clock."""

from typing import Generic, TypeVar

Item = TypeVar("Item")


class MicroBatcher(Generic[Item]):
    """Collects items and gives them out `size` at a time, or all of them once the oldest has waited `wait` seconds.

    Order is kept and no item is given out twice. Raises ValueError for a size under 1 or a negative wait.
    """

    def __init__(self, size: int, wait: float) -> None:
        if size < 1 or wait < 0:
            raise ValueError(f"micro-batch of {size} items or {wait} s; the size must be at least 1 and the wait not negative")
        self._size = size
        self._wait = wait
        self._items: list[tuple[float, Item]] = []

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    @property
    def deadline(self) -> float | None:
        """When the oldest item has waited long enough; None when nothing waits."""
        return self._items[0][0] + self._wait if self._items else None

    def add(self, item: Item, now: float) -> list[Item]:
        """Take an item in. Returns the batch that it filled, or nothing."""
        self._items.append((now, item))
        return self.flush() if len(self._items) >= self._size else []

    def take_due(self, now: float) -> list[Item]:
        """All waiting items if the oldest has waited long enough, or nothing."""
        deadline = self.deadline
        return self.flush() if deadline is not None and now >= deadline else []

    def flush(self) -> list[Item]:
        """All waiting items, without waiting any longer."""
        items = [item for _, item in self._items]
        self._items.clear()
        return items
