"""Options of the tests, and shared functions."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fastproc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Where scripts/test-python builds the programs.
PROGRAMS = Path(os.environ.get("FASTPROC_PROGRAMS", ""))
PRIVILEGED = os.geteuid() == 0 and Path("/sys/kernel/btf/vmlinux").exists()
# A CPU may stall for longer than the library waits for a service.
os.environ.setdefault("FASTPROC_SERVICE_TIMEOUT_MS", "120000")
#: Seconds, longer than any wait on a machine that is only busy.
GUARD = 120
SOURCES = ["procfs", *(["bpf", "service"] if PRIVILEGED else [])]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshots", type=int, default=3_000, help="how many snapshots must leave no memory behind")


def wait_until(what: str, done: Callable[[], bool]) -> None:
    """Repeats a check until it succeeds."""
    given_up = time.monotonic() + GUARD
    while True:
        # The clock is read first: after a stall between the two, the check runs once more.
        late = time.monotonic() > given_up
        if done():
            return
        assert not late, f"waited {GUARD} s in vain for: {what}"
        time.sleep(0.002)


@pytest.fixture(scope="session")
def socket() -> Iterator[str]:
    """The socket of a service for all users."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = f"{folder}/socket"
        command = [PROGRAMS / "fastproc", "serve", "--no-metrics", "--cpu-of-user=1000", "--socket", path]
        with subprocess.Popen(command) as service:
            try:

                def listens() -> bool:
                    assert service.poll() is None, "the service has ended"
                    try:
                        fastproc.Collector("pid", source="service", socket=path)
                    except fastproc.ServiceError:
                        return False
                    return True

                wait_until("the service listens", listens)
                yield path
            finally:
                service.terminate()


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each source that works here; the service is started for it."""
    name: str = request.param
    if name == "service":
        monkeypatch.setenv("FASTPROC_SOCKET", request.getfixturevalue("socket"))
    return name
