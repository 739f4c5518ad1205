"""Keeps the machine at a load."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

STALLS_EVERY_SECONDS = (5.0, 15.0)


def start(kind: str) -> subprocess.Popen[bytes]:
    """Starts a process of burdens.py, which an interrupt at the terminal does not reach."""
    command = [sys.executable, "-m", "flakes.burdens", kind, str(os.getpid())]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def running() -> float:
    """The number of threads on the machine that run or wait for a CPU, averaged over half a second."""
    counts = []
    for _ in range(10):
        lines = Path("/proc/stat").read_text().splitlines()
        counts += [int(line.split()[1]) for line in lines if line.startswith("procs_running ")]
        time.sleep(0.05)
    return sum(counts) / len(counts)


class Load:
    """Keeps as many burners as needed until this many threads want a CPU, and fills memory, forks, and stalls a CPU.

    Other work on the machine counts as well, so that a loaded machine is not loaded twice.
    """

    def __init__(self, wanted: int) -> None:
        """Starts the load."""
        self.wanted = wanted
        self.ended = threading.Event()
        self.burners = [start("burn") for _ in range(wanted)]
        self.burning = wanted
        self.stall = start("stall")
        self.others = [start("memory"), start("forks")]
        self.thread = threading.Thread(target=self._hold, daemon=True)
        self.thread.start()

    def _hold(self) -> None:
        next_stall = time.monotonic()
        while not self.ended.wait(0.5):
            now = running()
            if now > self.wanted + 1 and self.burning > 0:
                self.burning -= 1
                self.burners[self.burning].send_signal(signal.SIGSTOP)
            elif now < self.wanted - 1 and self.burning < len(self.burners):
                self.burners[self.burning].send_signal(signal.SIGCONT)
                self.burning += 1
            if time.monotonic() >= next_stall:
                self.stall.send_signal(signal.SIGCONT)
                next_stall = time.monotonic() + random.uniform(*STALLS_EVERY_SECONDS)

    def end(self) -> None:
        """Ends all of it."""
        self.ended.set()
        self.thread.join()
        for process in [*self.burners, self.stall, *self.others]:
            process.kill()
            process.wait()
