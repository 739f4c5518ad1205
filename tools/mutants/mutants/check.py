"""Runs one check in the copy."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PASSED = re.compile(r"^test result: \S+ (\d+) passed", re.MULTILINE)
FAILED = re.compile(r"^    (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check."""

    # "passed", "failed", or "build" if it does not build.
    what: str
    # The tests that failed.
    tests: tuple[str, ...]
    build_seconds: float
    seconds: float
    # Whether any test ran.
    ran: bool


def shell(command: str, tree: Path, target: Path, log: Path, guard_seconds: float) -> tuple[int | None, str]:
    """Status and output of a command line; no status if it did not end in time."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"}
    with log.open("a+") as output:
        output.write(f"\n$ {command}\n")
        output.flush()
        before = output.tell()
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            status: int | None = process.wait(guard_seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            # End its remaining processes, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(before)
        return status, output.read()


def failed_tests(output: str) -> tuple[str, ...]:
    """The names of the failed tests, if the command was cargo."""
    found: list[str] = []
    for part in output.split("\nfailures:\n")[2::2]:
        found += FAILED.findall(part.partition("\ntest result:")[0])
    return tuple(dict.fromkeys(found))


def check(command: str, tree: Path, target: Path, log: Path, guard_seconds: float) -> Outcome:
    """Runs it. What cargo tests is built first: a fault that does not compile is not one that was caught."""
    began = time.monotonic()
    if command.startswith("cargo test "):
        status, _ = shell(command.partition(" -- ")[0] + " --locked --no-run", tree, target, log, 3600)
        if status:
            return Outcome("build", (), time.monotonic() - began, 0, False)
    built = time.monotonic()
    status, output = shell(command, tree, target, log, guard_seconds)
    seconds = time.monotonic() - built
    ran = not command.startswith("cargo test ") or any(int(n) for n in PASSED.findall(output))
    tests = failed_tests(output) or (() if status == 0 else (f"(status {status})",))
    return Outcome("passed" if status == 0 else "failed", tests, built - began, seconds, ran)
