"""Options of the tests, and what several of them need."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fastproc

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where scripts/test-python has built the programs.
PROGRAMS = Path(os.environ.get("FASTPROC_PROGRAMS", ""))
PRIVILEGED = os.geteuid() == 0 and Path("/sys/kernel/btf/vmlinux").exists()
SOURCES = ["procfs", *(["bpf", "service"] if PRIVILEGED else [])]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshots", type=int, default=3_000, help="how many snapshots must leave no memory behind")


@pytest.fixture(scope="session")
def socket() -> Iterator[str]:
    """Where a service listens, for every user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = f"{folder}/socket"
        command = [PROGRAMS / "fastproc", "serve", "--no-metrics", "--socket", path]
        with subprocess.Popen(command) as service:
            try:
                while True:
                    assert service.poll() is None, "the service has ended"
                    try:
                        fastproc.Collector("pid", source="service", socket=path)
                        break
                    except fastproc.ServiceError:
                        continue
                yield path
            finally:
                service.terminate()


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each source that works here; the service is one of its own."""
    name: str = request.param
    if name == "service":
        monkeypatch.setenv("FASTPROC_SOCKET", request.getfixturevalue("socket"))
    return name
