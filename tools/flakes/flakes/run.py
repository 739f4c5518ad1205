"""Runs one test program and reports which tests failed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from .programs import Program

# A variable in the environment of everything that a test program starts, by which it is found again.
MARK = "FASTPROC_FLAKES"
RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ", re.MULTILINE)
FAILED = re.compile(r"^    (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run."""

    seconds: float
    # The tests that failed; empty if it passed.
    failed: tuple[str, ...]
    repeated: int
    skipped: int
    left: int


def failures(output: str, status: int) -> tuple[str, ...]:
    """The names of the failed tests."""
    if not status:
        return ()
    _, _, names = output.rpartition("\nfailures:\n")
    if names and (found := FAILED.findall(names.partition("\ntest result:")[0])):
        return tuple(found)
    # It ended before it listed them.
    return (f"(status {status})",)


def end(mark: str) -> int:
    """Ends the processes that have this mark, and returns their number."""
    ended: set[str] = set()
    wanted = f"{MARK}={mark}".encode()
    while True:
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(folder.name)
        if not found:
            return len(ended)
        for pid in found:
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def run(program: Program, tests: list[str], guard_seconds: float, log: Path) -> Outcome:
    """Runs it once. The log is kept if it fails."""
    mark = str(uuid.uuid4())
    environment = os.environ | dict(program.environment) | {MARK: mark}
    started = time.monotonic()
    with log.open("w") as output:
        # A session of its own, which an interrupt at the terminal does not reach.
        process = subprocess.Popen(
            [program.path, "--color", "never", *tests],
            cwd=program.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(guard_seconds)
        except subprocess.TimeoutExpired:
            status = None
            output.write(f"\nflakes: it did not end in {guard_seconds:.0f} s\n")
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
            seconds = time.monotonic() - started
            left = end(mark)
    text = log.read_text(errors="replace")
    # Tests that were running when the program did not end are those without a result.
    failed = failures(text, status) if status is not None else (f"(no end in {guard_seconds:.0f} s)",)
    if not failed:
        log.unlink()
    return Outcome(seconds, failed, text.count("REPEATED: "), text.count("SKIPPED: "), left)
