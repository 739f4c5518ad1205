"""A process of psutil's that has its values from a snapshot, while that is young."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psutil as _psutil
from psutil import _pslinux

from fastproc import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastproc.psutil._snapshot import Snapshot

#: Seconds for which ``oneshot()`` and ``as_dict()`` of a process from ``process_iter`` are served from its snapshot.
MAX_AGE = 0.5

_TICKS = _pslinux.CLOCK_TICKS


def _from_row(name: str) -> Callable[..., Any]:
    """A method of psutil's that looks into the snapshot first."""
    own = getattr(_pslinux.Process, name)

    def method(self: Platform) -> Any:
        if self.row is None:
            return own(self)
        snapshot, at = self.row
        value = getattr(snapshot, name)(at)
        # What is not known there psutil finds, or it raises the right exception.
        return own(self) if value is None else value

    method.__name__ = name
    method.__doc__ = own.__doc__
    return method


class Platform(_pslinux.Process):
    """What psutil asks about a process on Linux."""

    __slots__ = ("found", "row")

    def __init__(self, pid: int, start_ticks: int | None = None) -> None:
        super().__init__(pid)
        #: The snapshot in which it was found last, and its place there.
        self.found: tuple[Snapshot, int] | None = None
        #: The same while it serves.
        self.row: tuple[Snapshot, int] | None = None
        if start_ticks is not None:
            self._ctime = float(start_ticks) / _TICKS

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
        "num_threads",
        "ppid",
        "status",
        "terminal",
        "uids",
    ):
        locals()[_name] = _from_row(_name)
    del _name


class Process(_psutil.Process):
    """A process, as psutil has it: see ``psutil.Process``."""

    _pid: int
    _proc: Platform
    _gone: bool
    _pid_reused: bool
    _ident: tuple[int, float | None]
    _last_sys_cpu_times: float | None
    _last_proc_cpu_times: Any
    info: dict[str, Any]
    #: What its folder in /proc was when it was found to be this process, and the identity that it was compared with.
    _folder: tuple[tuple[int, int, int] | None, tuple[int, float | None] | None] = (None, None)

    @classmethod
    def _found(cls, pid: int, start_ticks: int) -> Process:
        """The process that a snapshot has found."""
        process = cls.__new__(cls)
        process.__dict__["_ready"] = Platform(pid, start_ticks)
        process._init(pid)  # type: ignore[attr-defined]
        return process

    def _get_ident(self) -> tuple[int, float | None]:
        # It is asked for once, when psutil has just made its own platform's half: this one takes its place.
        ready = self.__dict__.pop("_ready", None)
        self._proc = ready if ready is not None else Platform(self._pid)
        ident: tuple[int, float | None] = super()._get_ident()  # type: ignore[misc]
        return ident

    def is_running(self) -> bool:
        """Whether this process is running, and no other one has its pid: read now."""
        if self._gone or self._pid_reused or self._ident[1] is None or _elsewhere():
            return super().is_running()
        try:
            inode = _native.proc_inode(self._pid)
            if self._folder[0] == inode and self._folder[1] is self._ident:
                return True
            # In this order: were it another process by now, then the inode would be of no process that there is.
            if float(_native.start_ticks(self._pid)) / _TICKS == self._ident[1]:
                self._folder = (inode, self._ident)
                return True
        except OSError:
            pass
        # The rare case is told as psutil tells it.
        return super().is_running()


def _elsewhere() -> bool:
    """Whether psutil was told to read another folder than /proc."""
    return bool(_psutil.PROCFS_PATH != "/proc")


class Popen(Process, _psutil.Popen):
    """A process that this one starts, as psutil has it: see ``psutil.Popen``."""
