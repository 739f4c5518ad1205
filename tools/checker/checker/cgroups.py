"""The rules of fields that come from a process's cgroup: its path, unit, container and limits."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from .rules import OK, Moment, Rule, Verdict, derived, text_of, wrong


def path_in(text: bytes) -> str | None:
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("0::"):
            return line[3:]
    return None


@lru_cache
def _root() -> str | None:
    with open("/proc/self/mountinfo", errors="surrogateescape") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            if after.startswith("cgroup2 "):
                return before.split()[4]
    return None


def id_of(text: bytes) -> int | None:
    root, path = _root(), path_in(text)
    if root is None or path is None:
        return None
    try:
        return os.stat(root + path).st_ino
    except OSError:
        return None


UNITS = (".service", ".scope", ".socket", ".mount", ".swap")


def _slices(path: str) -> tuple[list[str], list[str]]:
    """The slices at the beginning of a cgroup's path, and the rest."""
    parts = [part for part in path.split("/") if part]
    count = next((at for at, part in enumerate(parts) if not part.endswith(".slice")), len(parts))
    return parts[:count], parts[count:]


def slice_of(path: str) -> str:
    return (_slices(path)[0] or ["-.slice"])[-1]


def unit_of(path: str) -> str | None:
    rest = _slices(path)[1]
    return rest[0] if rest and rest[0].endswith(UNITS) else None


#: What the path of a container's, pod's or machine's cgroup contains.
CONTAINED = re.compile(r"[0-9a-f]{64}|kubepods|lxc|libpod|docker|machine|nspawn")


def of_container(name: str) -> Rule:
    """Nothing if the path names no container. The library's table of real paths tests the rest."""

    def expected(row: dict[str, Any]) -> Any:
        return row[name] if row["cgroup"] and CONTAINED.search(text_of(row["cgroup"])) else None

    return derived(expected)


def _limits(row: dict[str, Any], name: str) -> list[int]:
    """The numbers in the file of a limit, of its cgroup and those above it."""
    root, path = _root(), row["cgroup"] and text_of(row["cgroup"])
    found = list[int]()
    while root is not None and path and path != "/":
        try:
            words = Path(root + path, name).read_text().split()
        except OSError:
            words = []
        if words and words[0] != "max":
            found.append(int(words[0]) if len(words) == 1 else int(words[0]) * 100 // int(words[1]))
        path = path.rpartition("/")[0]
    return found


def smallest(name: str) -> Rule:
    return derived(lambda row: min(_limits(row, name), default=None), 1.0)


def part_of_limit(name: str) -> Rule:
    """What is in use changes: only that it is a part of a limit is checked."""

    def rule(moment: Moment, value: Any) -> Verdict:
        if not _limits(moment.row, name):
            return OK if value is None else wrong("nothing: there is no limit")
        return OK if isinstance(value, (int, float)) and value >= 0 else wrong("a part of a limit")

    return rule
