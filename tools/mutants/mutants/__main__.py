"""Seeds faults one by one in a copy of the sources, and requires that a check of the gate fails. See
tools/mutants/README.md."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from . import tree as copies
from .check import Outcome, check
from .faults import Fault, chosen, read

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent


class Run:
    """The runs in one copy, with one target folder."""

    def __init__(self, guard_seconds: float, most: int | None, folder: Path | None) -> None:
        """Brings the copy up to date."""
        self.most = most
        place = folder.resolve() if folder else copies.target_folder(ROOT) / "mutants"
        self.guard_seconds = guard_seconds
        self.tree, self.target, self.logs = place / "tree", place / "target", place / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        copies.update(ROOT, self.tree)
        # Whether each check passes without a fault.
        self.sound: dict[str, bool] = {}

    def is_sound(self, command: str) -> bool:
        """Whether the check passes without a fault, and ran a test."""
        if command not in self.sound:
            log = self.logs / "without.log"
            log.unlink(missing_ok=True)
            outcome = check(command, self.tree, self.target, log, self.guard_seconds)
            self.sound[command] = outcome.what == "passed" and outcome.ran
            if not self.sound[command]:
                print(f"mutants: without a fault: {command}: {outcome.what}, {' '.join(outcome.tests)}; {log}", flush=True)
        return self.sound[command]

    def seeded(self, fault: Fault, command: str, log: Path) -> Outcome:
        """The outcome of the check with the fault."""
        was = fault.apply(self.tree)
        try:
            return check(command, self.tree, self.target, log, self.guard_seconds)
        finally:
            (self.tree / fault.file).write_text(was)

    def fault(self, fault: Fault) -> dict[str, Any]:
        """Seeds it, and returns which check caught it."""
        log = self.logs / f"{fault.name}.log"
        log.unlink(missing_ok=True)
        result: dict[str, Any] = {"caught": False, "by": "", "tests": [], "build_seconds": 0.0, "seconds": 0.0}
        for command in fault.checks[: self.most]:
            # The copy has no fault now: a check that fails anyway would prove nothing.
            if not self.is_sound(command):
                return result | {"error": f"without it this fails, or runs no test: {command}"}
            try:
                outcome = self.seeded(fault, command, log)
            except ValueError as error:
                return result | {"error": f"it cannot be seeded: {error}"}
            result["build_seconds"] += outcome.build_seconds
            result["seconds"] += outcome.seconds
            if outcome.what == "build" and not fault.build:
                return result | {"error": f"it does not build; {log}"}
            if outcome.what != "passed":
                tests = ["the compiler"] if outcome.what == "build" else list(outcome.tests)
                return result | {"caught": True, "by": command, "tests": tests}
        if len(fault.checks[: self.most]) < len(fault.checks):
            return result | {"error": "not caught by the checks that were run"}
        return result


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", default="", help="names of faults, or of the files that describe them")
    parser.add_argument("--guard", type=float, default=1200, metavar="SECONDS", help="time after which a check fails")
    parser.add_argument("--most", type=int, metavar="N", help="run only the first N checks of each fault")
    parser.add_argument("--folder", type=Path, help="folder of the copy and its builds; concurrent runs need one each")
    listing = parser.add_mutually_exclusive_group()
    listing.add_argument("--list", action="store_true", help="seed nothing: list the faults, and those that cannot be seeded")
    listing.add_argument("--check", action="store_true", help="seed nothing: list those that cannot be seeded")
    return parser.parse_args()


def listed(faults: list[Fault], all_of_them: bool) -> int:
    """Lists the faults, or only those that cannot be seeded. Returns 1 if there are any."""
    wrong = 0
    for fault in faults:
        reason = fault.obstacle(ROOT)
        wrong += reason is not None
        if all_of_them or reason:
            print(f"{fault.part:12} {fault.name:32} {fault.about}{f'  CANNOT BE SEEDED: {reason}' if reason else ''}")
    return 1 if wrong else 0


def interrupted(number: int, _frame: object) -> None:
    """Handles a signal as an interrupt."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    """Runs the command."""
    options = arguments()
    every = read(HERE / "faults")
    faults = chosen(every, options.only)
    if options.list or options.check:
        return listed(faults if options.only else every, options.list)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted)
    run = Run(options.guard, options.most, options.folder)
    wrong = 0
    for number, fault in enumerate(faults, 1):
        result = run.fault(fault)
        if not result["caught"]:
            wrong += 1
        what = result.get("error") or (f"caught by {' '.join(result['tests'][:3])}" if result["caught"] else "NOT CAUGHT")
        spent = f"{result.get('build_seconds', 0):.0f} + {result.get('seconds', 0):.0f} s"
        print(f"{number:3}/{len(faults)} {fault.name}: {what} ({spent})", flush=True)
    print(f"{len(faults)} faults: {len(faults) - wrong} caught")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
