"""A snapshot, with the values of each process in psutil's form."""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

from psutil import _ntuples as _ntp
from psutil import _pslinux, _psposix

from fastproc import _native
from fastproc.psutil import _files

if TYPE_CHECKING:
    from collections.abc import Callable

_TICKS = _pslinux.CLOCK_TICKS
_TICK_NS = 1_000_000_000 // _TICKS
_STATUSES = _pslinux.PROC_STATUSES

#: The fields that each method needs.
NEEDS = {
    "cpu_num": ("processor",),
    "cpu_percent": ("utime", "stime", "cutime", "cstime", "delayacct_blkio"),
    "cpu_times": ("utime", "stime", "cutime", "cstime", "delayacct_blkio"),
    "create_time": (),
    "gids": ("rgid", "egid", "sgid"),
    "io_counters": ("syscr", "syscw", "read_bytes", "write_bytes", "rchar", "wchar"),
    "memory_info": ("rss", "vsize", "shr", "trs", "size"),
    "memory_percent": ("rss", "vsize", "shr", "trs", "size"),
    "name": ("comm", "kthread"),
    "net_connections": ("fds", "sockets", "state"),
    "nice": ("nice",),
    "num_ctx_switches": ("nvcsw", "nivcsw"),
    "num_fds": ("fds", "sockets", "state"),
    "num_threads": ("num_threads",),
    "open_files": ("fds", "sockets", "state"),
    "pid": (),
    "ppid": ("ppid",),
    "status": ("state",),
    "terminal": ("tty_nr",),
    "uids": ("ruid", "euid", "suid"),
    "username": ("ruid", "euid", "suid"),
}
_ALWAYS = ("pid", "starttime")


def _instances(kind: Any, lists: list[list[Any]]) -> list[Any]:
    """A named tuple for each row of the values; None if one of them is unknown."""
    if len(kind._fields) != len(lists):
        raise TypeError(f"psutil's {kind.__name__} has not {len(lists)} fields: this version of psutil is not known")
    # What calling ``kind`` does internally, without a call of a Python function for each.
    new = tuple.__new__
    if any(None in values for values in lists):
        return [None if None in values else new(kind, values) for values in zip(*lists)]
    return list(map(new, repeat(kind), zip(*lists)))


def _seconds(column: list[Any]) -> list[Any]:
    """Nanoseconds in the form of proc(5): whole clock ticks."""
    return [None if ns is None else ns // _TICK_NS / _TICKS for ns in column]


def terminals(numbers: list[Any]) -> dict[int, str]:
    """The paths of all terminals by their numbers.

    psutil lists them once, and lacks those that are made later: so again if one of ``numbers`` is not among them.
    """
    listed: Any = _psposix.get_terminal_map
    if not listed().keys() >= set(filter(None, numbers)):
        listed.cache_clear()
    names: dict[int, str] = listed()
    return names


class Snapshot:
    """The columns of a snapshot as lists, and a method for each of psutil's that they can answer.

    A method returns None if the value is unknown, or was not requested.
    """

    def __init__(self, table: _native.Table, before: Snapshot | None = None) -> None:
        self._table = table
        #: An earlier snapshot with the same fields.
        self._before = before
        self.taken = time.monotonic()
        self.pids: list[int] = table["pid"].to_list()
        self.start_ticks = [start // _TICK_NS for start in table["starttime"].to_list()]

    def has(self, name: str) -> bool:
        """Whether its columns are present."""
        return all(field in self._table for field in NEEDS[name])

    def _lists(self, name: str) -> list[list[Any]] | None:
        return [self._table[field].to_list() for field in NEEDS[name]] if self.has(name) else None

    def lacks(self, name: str) -> bool:
        """Whether one of its values is unknown for some process."""
        return any(self._table[field].null_count for field in NEEDS[name])

    def _tuples(self, name: str, make: Callable[[list[list[Any]]], list[Any]]) -> list[Any] | None:
        """The results of ``make``; for a process with the same values as in the snapshot before, the same object."""
        lists = self._lists(name)
        if lists is None:
            return None
        before = self._before
        # Only if it was requested there.
        earlier = before.__dict__.get(f"{name}_of_all") if before is not None else None
        if before is None or earlier is None:
            return make(lists)
        rows = self._table.rows_before(before._table, [*_ALWAYS, *NEEDS[name]])
        changed = [at for at, row in enumerate(rows) if row is None]
        made = iter(make([[values[at] for at in changed] for values in lists]))
        return [next(made) if row is None else earlier[row] for row in rows]

    @cached_property
    def cpu_times_of_all(self) -> list[Any] | None:
        return self._tuples("cpu_times", lambda lists: _instances(_ntp.pcputimes, [_seconds(column) for column in lists]))

    @cached_property
    def memory_info_of_all(self) -> list[Any] | None:
        def make(lists: list[list[Any]]) -> list[Any]:
            nothing = [0] * len(lists[0])
            return _instances(_ntp.pmem, [*lists[:4], nothing, lists[4], nothing])

        return self._tuples("memory_info", make)

    @cached_property
    def io_counters_of_all(self) -> list[Any] | None:
        return self._tuples("io_counters", lambda lists: _instances(_ntp.pio, lists))

    @cached_property
    def uids_of_all(self) -> list[Any] | None:
        return self._tuples("uids", lambda lists: _instances(_ntp.puids, lists))

    @cached_property
    def gids_of_all(self) -> list[Any] | None:
        return self._tuples("gids", lambda lists: _instances(_ntp.pgids, lists))

    @cached_property
    def num_ctx_switches_of_all(self) -> list[Any] | None:
        return self._tuples("num_ctx_switches", lambda lists: _instances(_ntp.pctxsw, lists))

    @cached_property
    def status_of_all(self) -> list[Any] | None:
        lists = self._lists("status")
        return None if lists is None else [None if letter is None else _STATUSES.get(letter, "?") for letter in lists[0]]

    @cached_property
    def terminal_of_all(self) -> list[Any] | None:
        lists = self._lists("terminal")
        if lists is None:
            return None
        names = terminals(lists[0])
        return [names.get(number) for number in lists[0]]

    @cached_property
    def num_fds_of_all(self) -> list[Any] | None:
        lists = self._lists("num_fds")
        if lists is None:
            return None
        # psutil shows no files of a process whose leader has ended, and raises an exception for one that hides them.
        return [None if sockets is None or state in "ZX" else fds for fds, sockets, state in zip(*lists)]

    def _by_process(self, read: Callable[[], dict[int, list[Any]]]) -> list[Any] | None:
        shown = self.num_fds_of_all
        if shown is None:
            return None
        found = read()
        return [None if fds is None else found.get(pid, []) for pid, fds in zip(self.pids, shown)]

    @cached_property
    def open_files_of_all(self) -> list[Any] | None:
        return self._by_process(_files.files_by_process)

    @cached_property
    def net_connections_of_all(self) -> list[Any] | None:
        return self._by_process(_files.connections_by_process)

    @cached_property
    def _single(self) -> dict[str, list[Any] | None]:
        """The methods that return a column unchanged."""
        plain = {"cpu_num": "processor", "name": "comm", "nice": "nice", "num_threads": "num_threads", "ppid": "ppid"}
        return {name: self._table[field].to_list() if field in self._table else None for name, field in plain.items()}

    @cached_property
    def kthread_of_all(self) -> list[bool]:
        kernel: list[bool] = self._table["kthread"].to_list()
        return kernel

    def of_all(self, name: str) -> list[Any] | None:
        """The values of all processes, None if unknown."""
        if name in self._single:
            return self._single[name]
        values: list[Any] | None = getattr(self, f"{name}_of_all")
        return values

    def _at(self, name: str, at: int) -> Any:
        values = self.of_all(name)
        return None if values is None else values[at]

    def cpu_num(self, at: int) -> Any:
        return self._at("cpu_num", at)

    def cpu_times(self, at: int) -> Any:
        return self._at("cpu_times", at)

    def gids(self, at: int) -> Any:
        return self._at("gids", at)

    def io_counters(self, at: int) -> Any:
        return self._at("io_counters", at)

    def memory_info(self, at: int) -> Any:
        return self._at("memory_info", at)

    def name(self, at: int) -> Any:
        return self._at("name", at)

    def nice_get(self, at: int) -> Any:
        return self._at("nice", at)

    def num_ctx_switches(self, at: int) -> Any:
        return self._at("num_ctx_switches", at)

    def num_fds(self, at: int) -> Any:
        return self._at("num_fds", at)

    def open_files(self, at: int) -> Any:
        return self._at("open_files", at)

    def net_connections(self, at: int) -> Any:
        return self._at("net_connections", at)

    def num_threads(self, at: int) -> Any:
        return self._at("num_threads", at)

    def ppid(self, at: int) -> Any:
        return self._at("ppid", at)

    def status(self, at: int) -> Any:
        return self._at("status", at)

    def terminal(self, at: int) -> Any:
        return self._at("terminal", at)

    def uids(self, at: int) -> Any:
        return self._at("uids", at)


#: The collector for each set of fields, and its last snapshot.
_collectors: dict[tuple[str, ...], tuple[_native.Collector, Snapshot | None]] = {}
_lock = threading.Lock()
_MOST = 4


def _forget() -> None:
    """In a forked child: it opens its own."""
    global _lock  # noqa: PLW0603
    _collectors.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def take(names: set[str]) -> Snapshot:
    """A snapshot with the fields of these methods."""
    fields = {field for name in names for field in NEEDS[name]}
    key = (*_ALWAYS, *sorted(fields))
    with _lock:
        opened = _collectors.pop(key, None)
        # The walk of opening is not older than this call.
        collector, before = opened or (_native.Collector(list(key), reuse_opening=True), None)
        snapshot = Snapshot(collector.snapshot(), before)
        if before is not None:
            # Otherwise each would keep all earlier ones.
            before._before = None
        _collectors[key] = (collector, snapshot)
        while len(_collectors) > _MOST:
            del _collectors[next(iter(_collectors))]
    return snapshot
