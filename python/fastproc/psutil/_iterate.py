"""``process_iter``: every process, from one snapshot."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Union

import psutil as _psutil

from fastproc.psutil import _snapshot
from fastproc.psutil._files import elsewhere
from fastproc.psutil._process import Process, _adopted
from fastproc.psutil._snapshot import NEEDS, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Attributes = Union[list[str], tuple[str, ...], set[str], frozenset[str]]

#: psutil's function, which install() replaces.
_of_psutil = _psutil.process_iter
#: Private names of psutil.
_private: Any = _psutil

#: The processes of the last iteration, by pid: like psutil, this returns the same objects again.
_known: dict[int, Process] = {}

#: Attributes that may be unknown although their fields are known.
_MAY_LACK = {"name", "net_connections", "num_fds", "open_files"}

#: The attributes that oneshot() needs most often, for a process that was iterated over without attributes.
_USUAL = {"cpu_times", "memory_info", "name", "num_threads", "ppid", "status", "uids"}


def process_iter(attrs: Attributes | None = None, ad_value: Any = None) -> Iterator[Process]:
    """Every process in the order of the pids, as psutil returns it.

    With ``attrs`` each has these in ``info``, from one snapshot that is taken now; attributes that it lacks are read
    for each process, as by psutil. An empty list means all attributes.
    """
    global _known  # noqa: PLW0603
    if elsewhere():
        yield from map(_adopted, _of_psutil(attrs, ad_value))
        return
    names = _checked(attrs)
    served = names & NEEDS.keys()
    snapshot = _snapshot.take(served if attrs is not None else _USUAL)
    processes = _processes(snapshot)
    _known = {process.pid: process for process in processes}
    if attrs is None:
        yield from processes
        return
    others = names - served
    infos, gaps = _infos(snapshot, processes, served)
    for at, (process, info) in enumerate(zip(processes, infos)):
        try:
            missing = gaps.get(at, ())
            if others or missing:
                for name in missing:
                    del info[name]
                info.update(process.as_dict({*others, *missing}, ad_value))
            process.info = info
            yield process
        except _psutil.NoSuchProcess:
            _known.pop(process.pid, None)


process_iter.cache_clear = lambda: _known.clear()  # type: ignore[attr-defined]  # noqa: PLW0108


def _checked(attrs: Attributes | None) -> set[str]:
    """The requested names; raises an exception for invalid ones, as psutil does."""
    valid: set[str] = _private._as_dict_attrnames
    if attrs is None:
        return set()
    if not isinstance(attrs, (list, tuple, set, frozenset)):
        raise TypeError(f"invalid attrs type {type(attrs)}")
    wrong = set(attrs) - valid
    if wrong:
        raise ValueError(f"invalid attr name{'s' if len(wrong) > 1 else ''} {', '.join(map(repr, wrong))}")
    return set(attrs) or set(valid)


def _processes(snapshot: Snapshot) -> list[Process]:
    """An object for each process: the same as last time if the process existed then."""
    processes = []
    ticks_per_second = _snapshot._TICKS
    for at, (pid, ticks) in enumerate(zip(snapshot.pids, snapshot.start_ticks)):
        process = _known.get(pid)
        if process is None or process._ident[1] != ticks / ticks_per_second or process._gone or process._pid_reused:
            process = Process._found(pid, ticks)
        process._proc.found = (snapshot, at)
        processes.append(process)
    return processes


@lru_cache(maxsize=16)
def _info_of(names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """Returns a function that makes the dictionary of a process: a literal takes half the time of ``dict(zip(…))``."""
    items = ", ".join(f"{name!r}: {name}" for name in names)
    make: Callable[..., dict[str, Any]] = eval(f"lambda {', '.join(names)}: {{{items}}}")
    return make


def _infos(
    snapshot: Snapshot, processes: list[Process], names: set[str]
) -> tuple[Iterable[dict[str, Any]], dict[int, list[str]]]:
    """The attributes of each process that the snapshot has; and by index the names of those that psutil must find."""
    columns: dict[str, list[Any]] = {}
    gaps: dict[int, list[str]] = {}
    for name in names:
        make = _MAKERS.get(name)
        values = make(snapshot, processes) if make else snapshot.of_all(name)
        columns[name] = values if values is not None else [None] * len(processes)
        # psutil is asked for a truncated name, and for the files of a process whose leader has ended.
        if values is None or name in _MAY_LACK or snapshot.lacks(name):
            for at, value in enumerate(columns[name]):
                if value is None:
                    gaps.setdefault(at, []).append(name)
    if not columns:
        return ({} for _ in processes), gaps
    return map(_info_of(tuple(columns)), *columns.values()), gaps


def _names(snapshot: Snapshot, processes: list[Process]) -> list[str | None]:
    names: list[Any] = list(snapshot.of_all("name") or [])
    # The kernel keeps 15 bytes of a name: psutil finds the rest in the command line, which kernel threads lack.
    for at, (name, of_kernel) in enumerate(zip(names, snapshot.kthread_of_all)):
        if len(name) >= 15 and not of_kernel:
            names[at] = None
        else:
            processes[at]._name = name  # type: ignore[attr-defined]
            processes[at]._proc._name = name
    return names


def _cpu_percents(snapshot: Snapshot, processes: list[Process]) -> list[float | None]:
    times: list[Any] = snapshot.of_all("cpu_times") or []
    cpus = _psutil.cpu_count() or 1
    now = snapshot.taken * cpus
    percents: list[float | None] = []
    for process, spent in zip(processes, times):
        if spent is None:
            percents.append(None)
            continue
        then, before = process._last_sys_cpu_times, process._last_proc_cpu_times
        process._last_sys_cpu_times, process._last_proc_cpu_times = now, spent
        # Most have not run.
        if then is None or before is None or now == then or spent == before:
            percents.append(0.0)
        else:
            ran = (spent.user - before.user) + (spent.system - before.system)
            percents.append(round(ran / (now - then) * 100 * cpus, 1))
    return percents


def _memory_percents(snapshot: Snapshot, _: list[Process]) -> list[float | None]:
    total = _private._TOTAL_PHYMEM or _psutil.virtual_memory().total
    all_memory = snapshot.of_all("memory_info") or []
    return [None if memory is None else memory.rss / float(total) * 100 for memory in all_memory]


def _usernames(snapshot: Snapshot, _: list[Process]) -> list[str | None]:
    import pwd

    known: dict[int, str] = {}
    names: list[str | None] = []
    for uids in snapshot.of_all("uids") or []:
        if uids is None:
            names.append(None)
            continue
        name = known.get(uids.real)
        if name is None:
            try:
                name = pwd.getpwuid(uids.real).pw_name
            except KeyError:
                name = str(uids.real)
            known[uids.real] = name
        names.append(name)
    return names


def _create_times(snapshot: Snapshot, _: list[Process]) -> list[float]:
    boot_time = _psutil.boot_time()
    return [ticks / _snapshot._TICKS + boot_time for ticks in snapshot.start_ticks]


_MAKERS: dict[str, Callable[[Snapshot, list[Process]], list[Any]]] = {
    "cpu_percent": _cpu_percents,
    "create_time": _create_times,
    "memory_percent": _memory_percents,
    "name": _names,
    "pid": lambda snapshot, _: snapshot.pids,
    "username": _usernames,
}
