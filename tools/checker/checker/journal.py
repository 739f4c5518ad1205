"""The journal of a storm: when each of its states began."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

HEAD = struct.Struct("QQ")
ENTRY = struct.Struct("QQQ")
# Entries about to be overwritten are not trusted.
MARGIN = 4096


class Journal:
    """The memory that the storm writes to."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def _entry(self, index: int, capacity: int) -> tuple[int, int, int]:
        begin, end, state = ENTRY.unpack_from(self._map, HEAD.size + index % capacity * ENTRY.size)
        return begin, end, state

    def states(self, began_ns: int, ended_ns: int, count: int) -> tuple[set[int], bool]:
        """The states, of `count`, that may have been in force at some time between the two.

        Also returns whether a change from one to another may have been under way.
        """
        written, capacity = HEAD.unpack_from(self._map)
        everything = set(range(count))
        if written == 0:
            return everything, True
        oldest = max(0, written - capacity + MARGIN) if written > capacity - MARGIN else 0
        # The last entry that began before the end.
        low, high = oldest, written
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle, capacity)[0] <= ended_ns:
                low = middle + 1
            else:
                high = middle
        found: set[int] = set()
        for index in range(low - 1, oldest - 1, -1):
            _, end, state = self._entry(index, capacity)
            found.add(state)
            if end and end <= began_ns:
                return found, len(found) > 1
            if found == everything:
                return found, True
        return (everything if oldest else found), True

    def close(self) -> None:
        """Releases the memory."""
        self._map.close()
