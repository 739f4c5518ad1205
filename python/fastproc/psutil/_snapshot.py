"""A snapshot, with the values of each process as psutil gives them."""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property
from typing import Any

from psutil import _ntuples as _ntp
from psutil import _pslinux, _psposix

from fastproc import _native

_TICKS = _pslinux.CLOCK_TICKS
_TICK_NS = 1_000_000_000 // _TICKS
_STATUSES = _pslinux.PROC_STATUSES

#: The fields that each method is made of.
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
    "nice": ("nice",),
    "num_ctx_switches": ("nvcsw", "nivcsw"),
    "num_threads": ("num_threads",),
    "pid": (),
    "ppid": ("ppid",),
    "status": ("state",),
    "terminal": ("tty_nr",),
    "uids": ("ruid", "euid", "suid"),
    "username": ("ruid", "euid", "suid"),
}
_ALWAYS = ("pid", "starttime")


def _where_known(make: Any, lists: list[list[Any]]) -> list[Any]:
    """What ``make`` makes of the values of each process; None where one is not known."""
    return [None if None in values else make(*values) for values in zip(*lists)]


def _seconds(column: list[Any]) -> list[Any]:
    """Nanoseconds as proc(5) shows them: in whole clock ticks."""
    return [None if ns is None else ns // _TICK_NS / _TICKS for ns in column]


class Snapshot:
    """The columns of a snapshot as lists, and a method for each of psutil's that they answer.

    A method gives None where the value is not known, or was not asked for.
    """

    def __init__(self, table: _native.Table) -> None:
        self._table = table
        self.taken = time.monotonic()
        self.pids: list[int] = table["pid"].to_list()
        self.start_ticks = [start // _TICK_NS for start in table["starttime"].to_list()]

    def has(self, name: str) -> bool:
        """Whether the columns for it are there."""
        return all(field in self._table for field in NEEDS[name])

    def _lists(self, name: str) -> list[list[Any]] | None:
        return [self._table[field].to_list() for field in NEEDS[name]] if self.has(name) else None

    def lacks(self, name: str) -> bool:
        """Whether a value that it is made of is not known of some process."""
        return any(self._table[field].null_count for field in NEEDS[name])

    def _made(self, name: str, make: Any, lists: list[list[Any]]) -> list[Any]:
        return _where_known(make, lists) if self.lacks(name) else list(map(make, *lists))

    def _tuples(self, name: str, make: Any) -> list[Any] | None:
        lists = self._lists(name)
        return None if lists is None else self._made(name, make, lists)

    @cached_property
    def cpu_times_of_all(self) -> list[Any] | None:
        lists = self._lists("cpu_times")
        if lists is None:
            return None
        # Few have had children, or waited for a disk.
        nothing = [0.0] * len(self.pids)
        zeros = [0] * len(self.pids)
        seconds = [nothing if column == zeros else _seconds(column) for column in lists]
        return self._made("cpu_times", _ntp.pcputimes, seconds)

    @cached_property
    def memory_info_of_all(self) -> list[Any] | None:
        lists = self._lists("memory_info")
        if lists is None:
            return None
        nothing = [0] * len(self.pids)
        return self._made("memory_info", _ntp.pmem, [*lists[:4], nothing, lists[4], nothing])

    @cached_property
    def io_counters_of_all(self) -> list[Any] | None:
        return self._tuples("io_counters", _ntp.pio)

    @cached_property
    def uids_of_all(self) -> list[Any] | None:
        return self._tuples("uids", _ntp.puids)

    @cached_property
    def gids_of_all(self) -> list[Any] | None:
        return self._tuples("gids", _ntp.pgids)

    @cached_property
    def num_ctx_switches_of_all(self) -> list[Any] | None:
        return self._tuples("num_ctx_switches", _ntp.pctxsw)

    @cached_property
    def status_of_all(self) -> list[Any] | None:
        return self._tuples("status", lambda letter: _STATUSES.get(letter, "?"))

    @cached_property
    def terminal_of_all(self) -> list[Any] | None:
        lists = self._lists("terminal")
        if lists is None:
            return None
        names = _psposix.get_terminal_map()
        # A process without one has None by psutil as well, which then looks for itself.
        return [names.get(number) for number in lists[0]]

    @cached_property
    def _single(self) -> dict[str, list[Any] | None]:
        """Those that are a column as it is."""
        plain = {"cpu_num": "processor", "name": "comm", "nice": "nice", "num_threads": "num_threads", "ppid": "ppid"}
        return {name: self._table[field].to_list() if field in self._table else None for name, field in plain.items()}

    @cached_property
    def kthread_of_all(self) -> list[bool]:
        kernel: list[bool] = self._table["kthread"].to_list()
        return kernel

    def of_all(self, name: str) -> list[Any] | None:
        """The values of all processes, None where one is not known."""
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


_collectors: dict[tuple[str, ...], _native.Collector] = {}
_lock = threading.Lock()
_MOST = 4


def _forget() -> None:
    """In the child of a fork: it opens its own."""
    global _lock  # noqa: PLW0603
    _collectors.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def take(names: set[str]) -> Snapshot:
    """A snapshot with what these methods are made of."""
    fields = {field for name in names for field in NEEDS[name]}
    key = (*_ALWAYS, *sorted(fields))
    with _lock:
        collector = _collectors.pop(key, None) or _native.Collector(list(key))
        _collectors[key] = collector
        while len(_collectors) > _MOST:
            del _collectors[next(iter(_collectors))]
    return Snapshot(collector.snapshot())
