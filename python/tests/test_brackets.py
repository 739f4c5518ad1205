"""Every column of unusual processes, and of others in a storm, between two readings of the kernel's files."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Processes of the testbed that are not idle.
BUSY = {"running"}


@pytest.fixture(scope="module")
def resting() -> Iterator[list[str]]:
    """The pids of unusual processes that are idle while a storm runs."""
    # The storm takes all CPUs, so no other test may run beside it (tools/testbed/src/alone.rs).
    alone = os.open(Path(tempfile.gettempdir(), "fastproc-tests.lock"), os.O_WRONLY | os.O_CREAT, 0o644)
    fcntl.flock(alone, fcntl.LOCK_EX)
    command = [PROGRAMS / "fastproc-testbed", "--storm", "--", "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as testbed:
        assert testbed.stdin is not None
        assert testbed.stdout is not None
        shown = []
        while (line := testbed.stdout.readline()) != "\n":
            assert line, "the testbed has ended"
            shown.append(line.strip().split("\t"))
        yield [pid for pid, label in shown if label not in BUSY]
        testbed.stdin.close()
    os.close(alone)


@pytest.mark.parametrize("user", [0, 65534] if os.geteuid() == 0 else [os.geteuid()])
def test_every_column_lies_between_two_readings(source: str, user: int, resting: list[str]) -> None:
    if user and source == "bpf":
        pytest.skip("it takes privileges")
    program = Path(__file__).with_name("brackets.py")
    compared = subprocess.run(
        [sys.executable, program, source, str(user), *resting], capture_output=True, text=True, env=os.environ, check=False
    )
    assert (compared.returncode, compared.stdout, compared.stderr) == (0, "", "")
