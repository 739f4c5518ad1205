"""Loads the machine, with one process for each kind: python3 -m flakes.burdens KIND."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
MEMORY_MOST = 4 << 30


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


BURDENS = {"burn": burn, "stall": stall, "memory": memory, "forks": forks}

if __name__ == "__main__":
    # This process ends with its parent, however that ends.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[2]):
        sys.exit()
    os.nice(5)
    BURDENS[sys.argv[1]]()
