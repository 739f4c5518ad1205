"""The processes, open files and cgroups of a Linux machine, as tables.

>>> import fastproc
>>> table = fastproc.processes("pid,comm,rss,time", top=10)
>>> table.shape
(10, 4)

processes()  one table of all processes, a column for each field, by any name that ``ps -o`` takes
exits()      the processes that exit within some seconds
files()      their open files
sockets()    their sockets
cgroups()    the cgroups
system()     the counters of the machine
history()    what ``fastproc record`` wrote
Collector    stays open, and computes differences over time
fields()     the names of all fields, with a line of help
psutil       the module ``fastproc.psutil`` has the interface of psutil

``table.columns``, ``table.shape`` and ``table.head()`` are as in data frames; ``to_polars()`` and ``to_pandas()`` make these.
Sizes are in bytes and times in nanoseconds, as the names of the columns show. Unknown values are null, never zero.
"""

from __future__ import annotations

import os
from _collections_abc import Sequence  # as in collections.abc, which takes longer to import
from _thread import allocate_lock

from fastproc import _native
from fastproc._native import Column, Error, FilterError, Forked, Row, ServiceError, Table, UnknownField, fields

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastproc._cgroups import Cgroups, cgroups
    from fastproc._collector import Collector, Watch, exits
    from fastproc._files import files, sockets
    from fastproc._history import history
    from fastproc._system import CpuTimes, LoadAverage, System, system

__all__ = [
    "Cgroups",
    "Collector",
    "Column",
    "CpuTimes",
    "Error",
    "FilterError",
    "Forked",
    "LoadAverage",
    "Row",
    "ServiceError",
    "System",
    "Table",
    "UnknownField",
    "Watch",
    "cgroups",
    "exits",
    "fields",
    "files",
    "history",
    "processes",
    "sockets",
    "system",
]

__version__ = _native.VERSION

# A row is the sequence of its values, like a named tuple; pandas requires that.
Sequence.register(Row)

#: The default fields of a table: those of ``fastproc ps``.
DEFAULT_FIELDS = ("pid", "user", "state", "pcpu", "pmem", "rss", "vsize", "num_threads", "etime", "time", "comm")
#: The default fields of exited processes: those of ``fastproc exits``.
EXIT_FIELDS = ("ended", "pid", "ppid", "user", "etime", "time", "vmhwm", "status", "cmdline")

# Imported on demand, since importing fastproc should be fast.
_LATER = {
    "Cgroups": "_cgroups",
    "cgroups": "_cgroups",
    "Collector": "_collector",
    "Watch": "_collector",
    "exits": "_collector",
    "files": "_files",
    "sockets": "_files",
    "history": "_history",
    "CpuTimes": "_system",
    "LoadAverage": "_system",
    "System": "_system",
    "system": "_system",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'fastproc' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"fastproc.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


# Readers that stay open for the next call, by their arguments; the last one was used most recently.
_open: dict[tuple[object, ...], Any] = {}
_lock = allocate_lock()
_MOST_OPEN = 4


def _forget() -> None:
    """In a forked child: it opens its own readers, and the parent's lock may have been held."""
    global _lock  # noqa: PLW0603
    _open.clear()
    _lock = allocate_lock()


os.register_at_fork(after_in_child=_forget)


def _names(fields: str | Iterable[str]) -> list[str]:
    return fields.split(",") if isinstance(fields, str) else list(fields)


def processes(
    fields: str | Iterable[str] = DEFAULT_FIELDS,
    *,
    source: str | None = None,
    max_age: float = 0.0,
    threads: bool = False,
    filter: str | None = None,
    sort: str | None = None,
    top: int | None = None,
    text: bool = True,
) -> Table:
    """Read the processes: one table, a column for each field.

    Args:
        fields: Names of fields as ``ps -o`` takes them, in one string or several. ``fastproc.fields()`` has all.
        source: ``service``, ``bpf``, ``bpf-iter`` or ``procfs``. Default: the first of them that works.
        max_age: How old the snapshot may be, in seconds, if a service shares it.
        threads: A row for each thread instead of each process.
        filter: A condition, as in ``"rss > 100M && user != root"``.
        sort: Fields to sort by, as in ``"-rss,pid"``. Default: by process id; with ``top``, ``"-pcpu"`` as in ps.
        top: No more rows than this.
        text: Whether texts are ``str`` (decoded by ``os.fsdecode`` if they are not UTF-8) rather than ``bytes``.

    The reader stays open for the next call with the same arguments. ``fastproc doctor`` shows what the sources need;
    ``procfs``, the last of them, needs nothing.

    Raises:
        UnknownField: A field does not exist.
        Error: The source cannot be used.
    """
    names = _names(fields)
    key = (tuple(names), source, max_age, threads, filter, sort, top, text)

    def open() -> _native.Collector:
        return _native.Collector(
            names,
            source=source,
            max_age=max_age,
            threads=threads,
            filter=filter,
            sort=sort,
            top=top,
            text=text,
            reuse_opening=True,
        )

    return _kept(key, open)


def _kept(key: tuple[object, ...], open: Callable[[], Any]) -> Table:
    """A snapshot of the reader with these arguments, which is opened if it is not open."""
    with _lock:
        reader = _open.pop(key, None)
        table: Table | None = None
        if reader is None:
            # The walk of opening is not older than this call. Nobody else's call gets it, because this one has the lock.
            reader = open()
            table = reader.snapshot()
        _open[key] = reader
        while len(_open) > _MOST_OPEN:
            del _open[next(iter(_open))]
    return reader.snapshot() if table is None else table
