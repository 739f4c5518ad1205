"""python3 -m checker: runs storms and compares."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .fields import RULES
from .process import missing
from .run import Catalogue, Run
from .sampler import Sampler
from .storms import STORMS, Storm, named
from .tally import Tally

SOURCES = ("bpf", "bpf-iter", "procfs")
# The largest share of rows that a walk may read again from the text.
TORN_AT_MOST = 0.1


def groups(storms: tuple[Storm, ...], together: int) -> list[list[tuple[Storm, int]]]:
    """Storms that run at the same time. Storms of threads and of kernel threads have tables of their own."""
    out = []
    for kind in ((False, False), (True, False), (False, True)):
        paced = [(storm, period) for number in range(2) for storm in storms for period in storm.periods_us[number : number + 1]]
        paced = [(storm, period) for storm, period in paced if (storm.threads, storm.kernel) == kind]
        out += [paced[at : at + together] for at in range(0, len(paced), together)]
    return out


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="checker", description=__doc__)
    parser.add_argument("--fastproc", type=Path, required=True, help="the command to check")
    parser.add_argument("--storm-program", type=Path, required=True, help="the compiled program of the storms")
    parser.add_argument("--seconds", type=float, default=60, help="approximate total duration")
    parser.add_argument("--storms", help=f"some of: {','.join(storm.name for storm in STORMS)}")
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--together", type=int, default=4, metavar="N", help="number of storms that run at the same time")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="continue until N comparisons are made")
    parser.add_argument("--at-most", type=float, metavar="SECONDS", help="fail after this time")
    parser.add_argument("--short", action="store_true", help="print no table, only the values outside and the sum")
    parser.add_argument("--json", action="store_true", help="print the result for programs")
    return parser.parse_args()


def note_skipped(why: str, storm: str) -> None:
    """Notes a skipped storm where make test counts them, as tools/testbed/src/gate.rs does."""
    if notes := os.environ.get("FASTPROC_NOTES"):
        with Path(notes).open("a") as file:
            file.write(f"skipped {why}: tools/checker {storm}\n")


def main() -> int:
    """Runs the command."""
    options = arguments()

    catalogue = Catalogue.of(options.fastproc)
    gone = sorted(set(RULES) - set(catalogue.names))
    if gone:
        print(f"checker: fastproc has no field {', '.join(gone)}, for which there are rules", file=sys.stderr)
        return 1
    storms = []
    for storm in named(options.storms):
        if needed := missing(storm):
            print(f"checker: SKIPPED the storm {storm.name}: it needs {needed}", file=sys.stderr)
            note_skipped(f"it needs {needed}", storm.name)
        else:
            storms.append(storm)
    tally = Tally()
    sampler = Sampler()
    run = Run(options.fastproc.resolve(), catalogue, sampler, tally)
    runs = [(group, source) for group in groups(tuple(storms), options.together) for source in options.sources.split(",")]
    seconds = options.seconds / len(runs)
    began = time.monotonic()
    # The results so far are reported when the checker is ended by a signal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ended = False
    try:
        for number in itertools.count():
            for group, source in runs:
                # Run all of them once, then as many as needed.
                if number and tally.compared() >= options.at_least:
                    break
                started, compared = time.monotonic(), tally.compared()
                run.storms(group, source, seconds, options.storm_program)
                names = ", ".join(f"{storm.name} every {period} us" for storm, period in group)
                line = (
                    f"{names} by {source}: {tally.compared() - compared} comparisons in {time.monotonic() - started:.1f} s, "
                    f"{tally.total('outside')} outside so far"
                )
                if not options.short:
                    print(line, file=sys.stderr)
                if options.at_most and time.monotonic() - began > options.at_most:
                    print(f"checker: it has not come to its end in {options.at_most:.0f} s", file=sys.stderr)
                    ended = True
                    break
            if ended or tally.compared() >= options.at_least:
                break
    except KeyboardInterrupt:
        ended = True
    finally:
        sampler.close()
    print(json.dumps(tally.as_json(), indent=1) if options.json else tally.report(options.short))
    for source in sorted({source for source, _ in tally.rows} - {"procfs"}):
        print(f"{tally.texts_of(source):.2%} of the rows by {source} come from the text", file=sys.stderr)
    # Each source has had its turn, so a tenth of its share is little.
    sources = options.sources.split(",")
    few = [source for source in sources if tally.compared_by(source) * 10 * len(sources) < options.at_least]
    for source in [] if ended else few:
        print(f"checker: {source} was hardly compared: {tally.compared_by(source)} values", file=sys.stderr)
    # Such rows are checked less strictly than records.
    torn = [source for source in sources if source != "procfs" and tally.texts_of(source) > TORN_AT_MOST]
    for source in torn:
        print(f"checker: more than {TORN_AT_MOST:.0%} of the rows by {source} are not from records", file=sys.stderr)
    return 1 if tally.total("outside") or ended or few or torn else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"checker: {error}: {error.stderr}")
