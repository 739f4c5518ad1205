"""Runs a command while the machine is loaded: python3 flakes.py LOAD COMMAND [ARGUMENT ...]. README.md describes the load."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_PDEATHSIG = 1
MEMORY_MOST = 4 << 30
STALLS_EVERY_SECONDS = (5.0, 15.0)


def burn() -> None:
    """Uses a CPU."""
    while True:
        pass


def stall() -> None:
    """Takes one CPU for one or two seconds, so that it seems to stand still, then stops itself. The parent resumes it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("flakes: no CPU stands still: real-time policies need root", file=sys.stderr)
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)
        os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(1)))})
        until = time.monotonic() + random.uniform(1, 2)
        while time.monotonic() < until:
            pass


def memory() -> None:
    """Fills memory, at most a quarter of what is available, and releases it."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        available = next(int(line[1]) << 10 for line in lines if line[0] == "MemAvailable:")
        size = min(MEMORY_MOST, available // 4) // page * page
        with mmap.mmap(-1, size) as area:
            for at in range(0, size, page):
                area[at] = 1
            time.sleep(1)
        time.sleep(random.uniform(1, 5))


def forks() -> None:
    """Starts and ends some hundred processes a second."""
    while True:
        children = []
        for _ in range(20):
            child = os.fork()
            if not child:
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        time.sleep(0.1)


def start(burden: Callable[[], None]) -> int:
    """Starts a process with a burden, which an interrupt at the terminal does not reach, and which ends with this one."""
    parent = os.getpid()
    if child := os.fork():
        return child
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        os.nice(5)
        burden()
    os._exit(0)


def running() -> float:
    """The number of threads on the machine that run or wait for a CPU, averaged over half a second."""
    counts = []
    for _ in range(10):
        lines = Path("/proc/stat").read_text().splitlines()
        counts += [int(line.split()[1]) for line in lines if line.startswith("procs_running ")]
        time.sleep(0.05)
    return sum(counts) / len(counts)


def hold(wanted: int, burners: list[int], staller: int, ended: threading.Event) -> None:
    """Keeps as many burners going as are needed until this many threads want a CPU. Other work on the machine counts as
    well, so that a loaded machine is not loaded twice."""
    burning, next_stall = len(burners), time.monotonic()
    while not ended.wait(0.5):
        now = running()
        if now > wanted + 1 and burning > 0:
            burning -= 1
            os.kill(burners[burning], signal.SIGSTOP)
        elif now < wanted - 1 and burning < len(burners):
            os.kill(burners[burning], signal.SIGCONT)
            burning += 1
        if time.monotonic() >= next_stall:
            os.kill(staller, signal.SIGCONT)
            next_stall = time.monotonic() + random.uniform(*STALLS_EVERY_SECONDS)


def interrupted(number: int, _frame: object) -> None:
    """Handles a signal as an interrupt, so that the load ends."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    """Runs the command, and returns its exit status."""
    wanted = int(sys.argv[1])
    burners, staller = [start(burn) for _ in range(wanted)], start(stall)
    loads = [*burners, staller, start(memory), start(forks)]
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted)
    ended = threading.Event()
    holding = threading.Thread(target=hold, args=(wanted, burners, staller, ended), daemon=True)
    holding.start()
    try:
        return subprocess.run(sys.argv[2:], check=False).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        ended.set()
        holding.join()
        for process in loads:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


if __name__ == "__main__":
    sys.exit(main())
