"""The counters of the machine, as typed values."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import NamedTuple

from fastproc import _native


class CpuTimes(NamedTuple):
    """The times of CPUs since boot, in nanoseconds: the columns of ``/proc/stat``."""

    user_ns: int
    nice_ns: int
    system_ns: int
    idle_ns: int
    iowait_ns: int
    irq_ns: int
    softirq_ns: int
    steal_ns: int
    guest_ns: int
    guest_nice_ns: int


class LoadAverage(NamedTuple):
    """``/proc/loadavg``."""

    one_minute: float
    five_minutes: float
    fifteen_minutes: float
    #: Threads that run or are ready to.
    running: int
    #: All threads.
    threads: int
    #: The process id that was assigned last.
    last_pid: int


@dataclass(frozen=True, repr=False)
class System:
    """The machine at one moment."""

    #: When it was read (``CLOCK_MONOTONIC``).
    monotonic_ns: int
    #: All CPUs together.
    cpu: CpuTimes
    #: Each CPU that is online, by its number.
    cpus: dict[int, CpuTimes]
    #: Interrupts of every kind.
    intr: int
    #: Interrupts by number, modulo 2**32.
    interrupts: list[int]
    #: Context switches.
    ctxt: int
    #: When the machine was booted, in seconds since the epoch.
    btime: int
    #: Forks, threads included.
    processes: int
    #: Threads that run or are ready to.
    procs_running: int
    #: Threads that wait for I/O.
    procs_blocked: int
    #: Softirqs of every kind.
    softirq: int
    #: Softirqs by kind, modulo 2**32.
    softirqs: dict[str, int]
    #: ``/proc/vmstat``.
    vmstat: dict[str, int]
    #: ``/proc/meminfo`` in bytes; the four counts of huge pages unchanged.
    meminfo: dict[str, int]
    #: ``/proc/loadavg``.
    loadavg: LoadAverage

    def __repr__(self) -> str:
        load = " ".join(map(str, self.loadavg[:3]))
        available = self.meminfo["MemAvailable"] >> 20
        return f"<fastproc.System: {len(self.cpus)} CPUs, load {load}, {available} MiB of memory available>"


_SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")

_counters: _native.Counters | None = None
_lock = threading.Lock()


def _forget() -> None:
    """In a forked child: it opens its own."""
    global _counters, _lock  # noqa: PLW0603
    _counters = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def _open() -> _native.Counters:
    global _counters  # noqa: PLW0603
    with _lock:
        if _counters is None:
            _counters = _native.Counters()
        return _counters


def _text(name: str) -> str:
    with open(f"/proc/{name}", encoding="ascii") as file:
        return file.read()


def _meminfo() -> dict[str, int]:
    values = {}
    for line in _text("meminfo").splitlines():
        name, _, rest = line.partition(":")
        number, _, unit = rest.strip().partition(" ")
        values[name] = int(number) * (1024 if unit == "kB" else 1)
    return values


def _loadavg() -> LoadAverage:
    one, five, fifteen, tasks, last = _text("loadavg").split()
    running, _, threads = tasks.partition("/")
    return LoadAverage(float(one), float(five), float(fifteen), int(running), int(threads), int(last))


def system(*, interrupts_max_age: float = 0.0) -> System:
    """Read the counters of the machine.

    ``/proc/stat`` and ``/proc/vmstat`` come from the kernel's memory, except for lines that were not proven to agree
    with the kernel's own text; everything else comes from the text.

    Args:
        interrupts_max_age: How old the counts by interrupt may be, in seconds. With 0 they are exact; if there are
            thousands, reading each is most of the cost.
    """
    values = _open().collect(interrupts_max_age)
    return System(
        monotonic_ns=values["monotonic_ns"],
        cpu=CpuTimes(*values["cpu"]),
        cpus={number: CpuTimes(*times) for number, times in values["cpus"]},
        intr=values["intr"],
        interrupts=values["irqs"],
        ctxt=values["ctxt"],
        btime=values["btime"],
        processes=values["processes"],
        procs_running=values["procs_running"],
        procs_blocked=values["procs_blocked"],
        softirq=values["softirq"],
        softirqs=dict(zip(_SOFTIRQS, values["softirqs"])),
        vmstat=values["vmstat"],
        meminfo=_meminfo(),
        loadavg=_loadavg(),
    )
