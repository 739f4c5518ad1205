"""The faults, as the files of tools/mutants/faults describe them."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """A fault."""

    name: str
    # The file of its description, without the number by which the files are sorted: the cheapest to build come first.
    part: str
    about: str
    file: str
    # The text that occurs exactly once in the file, and its replacement.
    find: str
    replace: str
    # Command lines, the cheapest first. One of them must fail.
    checks: tuple[str, ...]
    # Whether only the long storms catch it.
    storms: bool
    # Whether the compiler is the check.
    build: bool

    def obstacle(self, tree: Path) -> str | None:
        """Why it cannot be seeded."""
        path = tree / self.file
        if not path.exists():
            return f"there is no {self.file}"
        times = path.read_text().count(self.find)
        return None if times == 1 else f"what it replaces stands {times} times in {self.file}"

    def apply(self, tree: Path) -> str:
        """Seeds it, and returns the text before. Raises ValueError if it cannot."""
        if reason := self.obstacle(tree):
            raise ValueError(reason)
        path = tree / self.file
        text = path.read_text()
        path.write_text(text.replace(self.find, self.replace))
        return text


def read(folder: Path) -> list[Fault]:
    """Reads all faults."""
    faults = []
    for path in sorted(folder.glob("*.toml")):
        described = tomllib.loads(path.read_text())
        for one in described["fault"]:
            checks = tuple(one.get("checks", described.get("checks", ())))
            storms, build = one.pop("storms", False), one.pop("build", False)
            one.pop("checks", None)
            faults.append(Fault(part=path.stem.partition("-")[2], checks=checks, storms=storms, build=build, **one))
    names = [fault.name for fault in faults]
    if twice := {name for name in names if names.count(name) > 1}:
        sys.exit(f"mutants: two faults are called {', '.join(sorted(twice))}")
    return faults


def chosen(faults: list[Fault], only: str) -> list[Fault]:
    """The faults of a list of names or parts, or all except those that only storms catch."""
    if not only:
        return [fault for fault in faults if not fault.storms]
    words = only.replace(",", " ").split()
    if unknown := [word for word in words if not any(word in (fault.name, fault.part) for fault in faults)]:
        sys.exit(f"mutants: there is no fault {', '.join(unknown)}")
    return [fault for fault in faults if fault.name in words or (fault.part in words and not fault.storms)]
