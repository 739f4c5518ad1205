"""Cgroups as columns."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import PRIVILEGED, PROGRAMS

import fastproc

if TYPE_CHECKING:
    from collections.abc import Iterator


def mount() -> Path | None:
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(line[1]) for line in lines if line[2] == "cgroup2"), None)


def remove(folder: Path) -> None:
    # The kernel removes a process from its cgroup some time after its parent has waited for it.
    for _ in range(500):
        try:
            return folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.01)
    pytest.fail(f"{folder} is still in use")


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup with one in it, and a process in that."""
    root = mount()
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no default hierarchy here that can be written to")
    outer = root / f"fastproc-python-{os.getpid()}"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    process = subprocess.Popen(["sleep", "1000"])
    try:
        (inner / "cgroup.procs").write_text(str(process.pid))
        yield inner
    finally:
        process.kill()
        process.wait()
        remove(inner)
        remove(outer)


@pytest.mark.parametrize("source", ["files", *(["bpf"] if PRIVILEGED else [])])
def test_a_cgroup_and_its_process_are_shown(cgroup: Path, source: str) -> None:
    outer = cgroup.parent.name
    cgroups = fastproc.Cgroups("path,id,processes,own_processes,cpu,frozen,name", source=source, filter=f"path =~ {outer}")
    assert (cgroups.source, cgroups.left_out) == (source, 0)
    first = cgroups.snapshot().to_dict()
    assert first["path"] == [f"/{outer}", f"/{outer}/inner"]
    assert first["id"] == [cgroup.parent.stat().st_ino, cgroup.stat().st_ino]
    assert (first["processes"], first["own_processes"]) == ([1, 1], [0, 1])
    assert (first["frozen"], first["name"]) == ([False, False], [outer, "inner"])
    assert first["cpu"] == [None, None]
    # Of a process that sleeps.
    assert all(share is not None and share >= 0 for share in cgroups.snapshot()["cpu"])
    last_first = fastproc.cgroups("path", source=source, filter=f"path =~ {outer}", sort="-path")
    assert last_first.to_dict() == {"path": [f"/{outer}/inner", f"/{outer}"]}
    assert (last_first.source, last_first.shape) == (source, (2, 1))
    assert last_first.head(1).to_dict() == {"path": [f"/{outer}/inner"]}


def test_columns_are_those_of_the_command(cgroup: Path) -> None:
    command = [PROGRAMS / "fastproc", "cgroups", "--json", "--fields", "path,id,depth,descendants", "--sort", "path"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["cgroups"]
    paths = [row["path"] for row in shown]
    assert f"/{cgroup.parent.name}/inner" in paths
    ours = fastproc.cgroups(["path", "id", "depth", "descendants"]).to_dict()
    place = ours["path"].index(f"/{cgroup.parent.name}/inner")
    assert {key: values[place] for key, values in ours.items()} == shown[paths.index(ours["path"][place])]
    names = fastproc.fields("cgroups")
    assert fastproc.cgroups(names).columns == [key for key, _, _ in names.values()]


def test_wrong_fields_raise_with_their_name() -> None:
    with pytest.raises(fastproc.UnknownField, match="there is no field 'memori'; did you mean 'memory'"):
        fastproc.cgroups("memori")
    with pytest.raises(fastproc.UnknownField, match="did you mean 'memory'"):
        fastproc.cgroups("path")["memori"]
    with pytest.raises(fastproc.UnknownField, match="there is no field 'nothing'"):
        fastproc.cgroups(sort="-nothing")
    with pytest.raises(fastproc.FilterError, match="is not true or false"):
        fastproc.cgroups(filter="memory")
    with pytest.raises(ValueError, match="there is no source"):
        fastproc.cgroups(source="procfs")
