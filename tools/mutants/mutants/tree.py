"""A copy of the sources, in which faults are seeded."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
from pathlib import Path

CARGO = os.environ.get("CARGO", "cargo")


def target_folder(root: Path) -> Path:
    """Cargo's target folder."""
    command = [CARGO, "metadata", "--format-version", "1", "--no-deps", "--offline"]
    described = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
    return Path(json.loads(described.stdout)["target_directory"])


def files(root: Path) -> list[str]:
    """The files of the repository as they are now, committed or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (root / name).exists()]


def update(root: Path, tree: Path) -> None:
    """Updates the copy to the sources. Unchanged files keep their time, so that they are not built again."""
    wanted = files(root)
    for name in wanted:
        source, copy = root / name, tree / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            copy.unlink(missing_ok=True)
            copy.symlink_to(source.readlink())
        # With the current time: cargo only looks at times.
        elif not (copy.exists() and filecmp.cmp(source, copy, shallow=False)):
            shutil.copy(source, copy)
    listed = tree.parent / "files"
    if listed.exists():
        for name in set(listed.read_text().splitlines()) - set(wanted):
            (tree / name).unlink(missing_ok=True)
    listed.write_text("\n".join(wanted))
