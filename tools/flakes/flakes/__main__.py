"""Runs every test program many times, in random order, on a loaded machine. See tools/flakes/README.md."""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import sys
from pathlib import Path

from .load import Load
from .programs import Program, build
from .run import Outcome, run


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="flakes", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs of each program")
    parser.add_argument("--only", default="", help="programs: CRATE/PROGRAM, PROGRAM, or CRATE/ for all of a crate")
    parser.add_argument("--tests", default="", help="parts of the names of the tests, or other arguments of the programs")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="seed of the order")
    parser.add_argument("--load", type=int, default=10, help="threads that want a CPU; 0 loads nothing")
    parser.add_argument("--guard", type=float, default=1800, metavar="SECONDS", help="time after which a run fails")
    return parser.parse_args()


def table(programs: list[Program], outcomes: dict[str, list[Outcome]]) -> str:
    """A line for each program, and one for each failed test."""
    width = max([len(program.name) for program in programs] + [len("program")])
    lines = [f"{'program':{width}} {'runs':>5} {'passes':>7} {'slowest':>9} {'repeated':>9} {'skipped':>8} {'left':>5}"]
    for program in programs:
        of_it = outcomes[program.name]
        passes = sum(not outcome.failed for outcome in of_it)
        slowest = max((outcome.seconds for outcome in of_it), default=0)
        lines.append(
            f"{program.name:{width}} {len(of_it):5} {passes:7} {slowest:7.1f} s {sum(o.repeated for o in of_it):9} "
            f"{max((o.skipped for o in of_it), default=0):8} {sum(o.left for o in of_it):5}"
        )
        failed = collections.Counter(name for outcome in of_it for name in outcome.failed)
        lines += [f"    failed {times} times: {name}" for name, times in failed.most_common()]
    return "\n".join(lines)


def interrupted(number: int, _frame: object) -> None:
    """Handles a signal as an interrupt."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    """Runs the command."""
    options = arguments()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted)
    programs, target = build(options.only)
    order = [program for program in programs for _ in range(options.runs)]
    random.Random(options.seed).shuffle(order)
    print(f"flakes: {len(programs)} programs, {options.runs} runs of each, SEED={options.seed}", flush=True)

    logs = target / "tmp/flakes" / str(options.seed)
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    # The file in which tests note that they ran, for make test.
    notes = target / "tmp/live-tests"
    noted = notes.stat().st_size if notes.exists() else 0

    outcomes: dict[str, list[Outcome]] = collections.defaultdict(list)
    load = Load(options.load) if options.load else None
    ended = False
    try:
        for number, program in enumerate(order, 1):
            log = logs / f"{program.name.replace('/', '-')}-{len(outcomes[program.name]) + 1}.log"
            outcome = run(program, options.tests.split(), options.guard, log)
            outcomes[program.name].append(outcome)
            what = f"FAILED: {', '.join(outcome.failed)}; {log}" if outcome.failed else "ok"
            loads = Path("/proc/loadavg").read_text().split()[0]
            print(f"{number:4}/{len(order)} {program.name}: {outcome.seconds:.1f} s, load {loads}, {what}", flush=True)
    except KeyboardInterrupt:
        ended = True
        print("flakes: interrupted; so far:", file=sys.stderr)
    finally:
        if load:
            load.end()
        if notes.exists():
            os.truncate(notes, min(noted, notes.stat().st_size))
    print(table(programs, outcomes))
    failed = any(outcome.failed for of_it in outcomes.values() for outcome in of_it)
    return 130 if ended else int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
