"""A reader that stays open."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fastproc import DEFAULT_FIELDS, EXIT_FIELDS, Error, Table, _names, _native

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from typing_extensions import Self


class Collector(_native.Collector):
    """Reads the processes repeatedly, and computes what they did in between.

    It opens its source once: a service, a BPF program, or the files of ``/proc``. Threads may share it; while one
    reads, the others run. A forked process must open its own: in it every call raises ``Forked``.

    The arguments are those of ``processes()``, and: ``socket``, the socket of the service; ``exits``, whether to record
    exited processes, by the service or as root (``CAP_BPF`` and ``CAP_PERFMON``).
    """

    def __new__(
        cls,
        fields: str | Iterable[str] = DEFAULT_FIELDS,
        *,
        source: str | None = None,
        max_age: float = 0.0,
        socket: str | os.PathLike[str] | None = None,
        threads: bool = False,
        exits: bool = False,
        filter: str | None = None,
        sort: str | None = None,
        top: int | None = None,
        text: bool = True,
    ) -> Self:
        return super().__new__(
            cls,
            _names(fields),
            source=source,
            max_age=max_age,
            socket=socket,
            threads=threads,
            exits=exits,
            filter=filter,
            sort=sort,
            top=top,
            text=text,
        )

    def difference(self, seconds: float) -> Table:
        """The processes after this many seconds, with shares of CPU time and rates over that time.

        ``pcpu`` and the fields that end in ``_per_second`` are over the interval; for a process that started in it,
        since its start.
        """
        if not seconds >= 0:
            raise ValueError(f"a difference is over a number of seconds that is not below 0: {seconds}")
        self.mark()
        time.sleep(seconds)
        return self.since_mark()

    def exits(self) -> Table:
        """The processes that have exited since the last ``mark``, ``difference`` or call of this, with their final values.

        It has even the shortest-lived ones. ``pcpu`` and rates are over that time. The table of a difference has the same in
        ``exited``.

        Raises:
            Error: The collector was not opened with ``exits=True``, or exits cannot be recorded here.
        """
        exited = self.since_mark().exited
        if exited is None and self.exits_refused is not None:
            raise Error(self.exits_refused)
        if exited is None:
            raise Error("nothing is recorded: open the collector with exits=True, and mark a beginning")
        return exited

    def watch(self, interval: float, count: int | None = None) -> Watch:
        """Tables of differences, one every ``interval`` seconds, ``count`` of them or endlessly.

        Supports ``for`` and ``async for``. Missed intervals are skipped.
        """
        return Watch(self, interval, count)


def exits(
    fields: str | Iterable[str] = EXIT_FIELDS,
    *,
    seconds: float = 1.0,
    filter: str | None = None,
    sort: str | None = None,
    top: int | None = None,
    text: bool = True,
) -> Table:
    """Record for some seconds which processes exit: one table, with their final values.

    The arguments are those of ``processes()``; with ``top`` and without ``sort``, those that used most CPU time. It needs root
    or the service, like ``Collector(exits=True)``, which records without end.
    """
    if sort is None and top is not None:
        sort = "-time"
    collector = Collector(fields, exits=True, filter=filter, sort=sort, top=top, text=text)
    if collector.exits_refused is not None:
        raise Error(collector.exits_refused)
    collector.mark()
    time.sleep(seconds)
    return collector.exits()


class Watch:
    """Tables of differences, as an iterator and as an asynchronous iterator. The first comes after one interval."""

    def __init__(self, collector: Collector, interval: float, count: int | None) -> None:
        if not interval > 0:
            raise ValueError("an interval is longer than 0 s")
        self._collector = collector
        self._interval = interval
        self._left = count
        self._due: float | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Table:
        if not self._one_more():
            raise StopIteration
        if self._due is None:
            self._collector.mark()
        time.sleep(self._wait())
        return self._collector.since_mark()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Table:
        if not self._one_more():
            raise StopAsyncIteration
        if self._due is None:
            await asyncio.to_thread(self._collector.mark)
        await asyncio.sleep(self._wait())
        return await asyncio.to_thread(self._collector.since_mark)

    def _one_more(self) -> bool:
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def _wait(self) -> float:
        """Seconds until the next table is due: a whole number of intervals after the first."""
        now = time.monotonic()
        due = now if self._due is None else self._due
        missed = max(0, int((now - due) / self._interval))
        self._due = due + (missed + 1) * self._interval
        return max(0.0, self._due - now)
