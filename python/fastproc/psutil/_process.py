"""psutil's process, with values from a recent snapshot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psutil as _psutil
from psutil import _pslinux

from fastproc import _native
from fastproc.psutil._files import elsewhere
from fastproc.psutil._snapshot import terminals

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastproc.psutil._snapshot import Snapshot

#: Seconds for which ``oneshot()`` and ``as_dict()`` of a process from ``process_iter`` use its snapshot.
MAX_AGE = 0.5

_TICKS = _pslinux.CLOCK_TICKS


def _terminal(self: Any, own: Any = _pslinux.Process.terminal) -> Any:
    terminals([int(self._parse_stat_file()["ttynr"])])
    return own(self)


def _from_row(name: str) -> Callable[..., Any]:
    """Wraps a method of psutil: it tries the snapshot first."""
    own = _terminal if name == "terminal" else getattr(_pslinux.Process, name)

    def method(self: Platform) -> Any:
        if self.row is None:
            return own(self)
        snapshot, at = self.row
        value = getattr(snapshot, name)(at)
        # If the value is unknown there, psutil finds it, or raises the right exception.
        return own(self) if value is None else value

    method.__name__ = name
    method.__doc__ = own.__doc__
    return method


def _change(name: str) -> Callable[..., Any]:
    """Wraps a method of psutil that changes the process, which is then no longer as in the snapshot."""
    own = getattr(_pslinux.Process, name)

    def method(self: Platform, *arguments: Any) -> Any:
        result = own(self, *arguments)
        self.forget()
        return result

    method.__name__ = name
    method.__doc__ = own.__doc__
    return method


class Platform(_pslinux.Process):
    """psutil's platform-specific part of a process on Linux."""

    __slots__ = ("found", "row")

    def __init__(self, pid: int, start_ticks: int | None = None) -> None:
        super().__init__(pid)
        #: The snapshot in which it was found last, and its index there.
        self.found: tuple[Snapshot, int] | None = None
        #: The same while it may be used.
        self.row: tuple[Snapshot, int] | None = None
        if start_ticks is not None:
            self._ctime = float(start_ticks) / _TICKS

    def forget(self) -> None:
        """Use no value of the snapshot from now on."""
        self.found = self.row = None

    def oneshot_enter(self) -> None:
        super().oneshot_enter()
        if self.found is not None and time.monotonic() - self.found[0].taken < MAX_AGE:
            self.row = self.found

    def oneshot_exit(self) -> None:
        self.row = None
        super().oneshot_exit()

    for _name in (
        "cpu_num",
        "cpu_times",
        "gids",
        "io_counters",
        "memory_info",
        "name",
        "nice_get",
        "num_ctx_switches",
        "num_fds",
        "num_threads",
        "open_files",
        "ppid",
        "status",
        "terminal",
        "uids",
    ):
        locals()[_name] = _from_row(_name)
    _net_connections = _from_row("net_connections")

    def net_connections(self, kind: str = "inet") -> Any:
        """The connections of the process: see psutil."""
        if kind == "inet" and self.row is not None:
            return self._net_connections()
        return super().net_connections(kind)

    for _name in ("cpu_affinity_set", "nice_set", "wait"):
        locals()[_name] = _change(_name)
    del _name


class Process(_psutil.Process):
    """A process: see ``psutil.Process``."""

    _pid: int
    _proc: Platform
    _gone: bool
    _pid_reused: bool
    _ident: tuple[int, float | None]
    _last_sys_cpu_times: float | None
    _last_proc_cpu_times: Any
    info: dict[str, Any]
    #: The identity of its folder in /proc when that was found to be this process's, and the process identity compared
    #: with.
    _folder: tuple[tuple[int, int, int] | None, tuple[int, float | None] | None] = (None, None)

    @classmethod
    def _found(cls, pid: int, start_ticks: int) -> Process:
        """A process that was found in a snapshot."""
        process = cls.__new__(cls)
        process.__dict__["_ready"] = Platform(pid, start_ticks)
        process._init(pid)  # type: ignore[attr-defined]
        return process

    def _get_ident(self) -> tuple[int, float | None]:
        # psutil calls this once, just after it has made its own platform-specific part, which this one replaces.
        ready = self.__dict__.pop("_ready", None)
        self._proc = ready if ready is not None else Platform(self._pid)
        ident: tuple[int, float | None] = super()._get_ident()  # type: ignore[misc]
        return ident

    def parent(self) -> Process | None:
        """The parent, None if it is not known."""
        parent: Process | None = _adopted(super().parent())
        return parent

    def children(self, recursive: bool = False) -> list[_psutil.Process]:
        """The children, with ``recursive`` also theirs."""
        return [_adopted(child) for child in super().children(recursive)]

    def _send_signal(self, sig: int) -> None:
        super()._send_signal(sig)  # type: ignore[misc]
        self._proc.forget()

    def is_running(self) -> bool:
        """Whether this process is running, and no other one has its pid. Reads the current state."""
        if self._gone or self._pid_reused or self._ident[1] is None or elsewhere():
            return super().is_running()
        try:
            inode = _native.proc_inode(self._pid)
            if self._folder[0] == inode and self._folder[1] is self._ident:
                return True
            # In this order: if the pid had been reused by now, the inode would belong to no existing process.
            if float(_native.start_ticks(self._pid)) / _TICKS == self._ident[1]:
                self._folder = (inode, self._ident)
                return True
        except OSError:
            pass
        # psutil handles the rare case.
        return super().is_running()


#: psutil's own class, which install() replaces.
_of_psutil: Any = _psutil.Process


def _adopted(process: Any) -> Any:
    """A process that psutil made, as one of this module's class."""
    if type(process) is _of_psutil:
        process.__class__ = Process
        theirs, process._proc = process._proc, Platform(process.pid)
        process._proc._ctime = theirs._ctime
    return process


class Popen(Process, _psutil.Popen):
    """A process that this one starts: see ``psutil.Popen``."""
