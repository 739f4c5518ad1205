"""Boots Debian's kernels in an emulator and tests fastproc on them; kernels/kernels.mk is how it is called."""

import argparse
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cross
import debian
from debian import Failed, architecture, numbers, split
from judge import Expected, Outcome, gains
from machine import DAILY, SCENARIOS, Boot, refuses
from page import page
from programs import ROOT, initramfs

TABLE = ROOT / "kernels/expected.toml"
PAGE = ROOT / "docs/dev/kernels.md"
# How often a kernel is booted that does not run its first program: an emulated kernel may crash during its start.
ATTEMPTS = 3
# How often what is measured is measured, if thoroughly, and by how much the greatest of the ratios may exceed the least.
MEASUREMENTS = 3
SPREAD = 1.01


def main() -> int:
    """Run a command, and return its exit status."""
    arguments = parser().parse_args()
    cache: Path = arguments.cache.resolve()
    try:
        if arguments.command == "fetch":
            for series, release, image in debian.fetch(cache, arguments.series, anew=True):
                print(f"{series:<8} {release:<28} {image}")
            return 0
        if arguments.command == "page":
            write(read())
            return 0
        if arguments.command == "cross":
            words = arguments.words or ["true"]
            return subprocess.run(words, env=os.environ | cross.environment(cache)).returncode
        return Run(cache, arguments).run()
    except Failed as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    home = os.environ.get("FASTPROC_KERNELS_CACHE") or "cache/kernels"
    parser.add_argument("--cache", type=Path, default=Path(home), help="the folder for packages, kernels and results")
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="fetch kernels into the cache, by the newest lists")
    commands.add_parser("page", help="write docs/dev/kernels.md again from kernels/expected.toml")
    with_toolchain = commands.add_parser("cross", help="run a command with a toolchain for arm64; without one, only fetch it")
    with_toolchain.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    test = commands.add_parser("test", help="boot kernels and report the results")
    names = ", ".join(SCENARIOS)
    test.add_argument("--scenario", action="append", choices=SCENARIOS, metavar="NAME", help=f"what the guests do: {names}")
    test.add_argument("--update", action="store_true", help="write what the kernels show as what is expected from now on")
    test.add_argument("--thorough", action="store_true", help="measure three times, and boot the big machine with each kernel")
    test.add_argument("--jobs", type=int, default=2, help="the number of guests that run at the same time")
    for command in (fetch, test):
        command.add_argument("series", nargs="+", metavar="SERIES", help="such as 6.1 or 6.1-arm64, or “newest”")
    return parser


def read() -> Expected:
    """Read the table of what is expected."""
    return Expected(tomllib.loads(TABLE.read_text()))


def write(expected: Expected) -> None:
    """Write the table and its page."""
    TABLE.write_text(expected.text())
    PAGE.write_text(page(expected))


class Run:
    """Scenarios on kernels, a few guests at a time, with a line about each as it ends, and a table at the end."""

    def __init__(self, cache: Path, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.update: bool = arguments.update
        self.thorough: bool = arguments.thorough
        self.jobs: int = arguments.jobs
        self.scenarios: list[str] = [one for one in SCENARIOS if one in (arguments.scenario or DAILY)]
        self.images = debian.fetch(cache, arguments.series)
        architectures = {architecture(series) for series, _, _ in self.images}
        self.initramfs = {arch: initramfs(cache, arch, self.scenarios) for arch in architectures}
        self.results = cache / "results"
        self.results.mkdir(parents=True, exist_ok=True)
        self.expected = read()
        print(f"{len(self.images)} kernels and the guests' programs ready after {self.seconds():.0f} s", flush=True)

    def seconds(self) -> float:
        """Return the time that this has taken."""
        return time.monotonic() - self.began

    def run(self) -> int:
        """Run all, and return the exit status."""
        boots = self.boots()
        outcomes = self.boot(boots)
        if self.update:
            releases = {series: release for series, release, _ in self.images}
            for outcome in outcomes:
                if not outcome.wrong:
                    self.expected.update(outcome, releases[outcome.series])
            write(self.expected)
        for outcome in outcomes:
            outcome.wrong += self.expected.judge(outcome)
        if not self.update:
            outcomes = self.again(boots, outcomes)
        for outcome in outcomes:
            if not outcome.wrong and not self.update:
                self.attend(outcome)
        bad = [outcome for outcome in outcomes if outcome.wrong]
        print_table(outcomes)
        print(
            f"\n{len(outcomes) - len(bad)} scenarios as expected, {len(bad)} not, in {self.seconds():.0f} s; "
            f"reports are in {self.results}"
        )
        return 1 if bad or not outcomes else 0

    def boots(self) -> list[Boot]:
        """Return a boot for each kernel and machine; the longest come first, so that no boot runs alone at the end."""
        boots: list[Boot] = []
        for series, release, image in self.images:
            older = self.expected.stand_in(series)
            if older not in (None, series) and not self.update:
                print(
                    f"ATTENTION: nothing is expected of Linux {series} ({release}) yet. It is compared with {older}: "
                    f"it may gain, and may not lose. To settle what it shows: make kernels-expected KERNELS={series}"
                )
            flavour = [other for other, _, _ in self.images if split(other)[1] == split(series)[1]]
            big = self.thorough or len(flavour) == 1
            for scenario in self.scenarios:
                machine = SCENARIOS[scenario]
                if reason := refuses(scenario, series, big):
                    print(f"{series:<8} {scenario:<13} not run: {reason}")
                    continue
                shared = [boot for boot in boots if boot.release == release and boot.machine == machine and not machine.counted]
                if shared and machine.memory == 1024:
                    shared[0].scenarios.append(scenario)
                else:
                    boots.append(Boot(series, release, image, machine, [scenario]))
        return sorted(boots, key=lambda boot: len(boot.scenarios) == 1 and not boot.machine.one_thread)

    def boot(self, boots: list[Boot]) -> list[Outcome]:
        """Boot guests, and return the outcome of each scenario."""
        with ThreadPoolExecutor(self.jobs) as pool:
            outcomes = [outcome for of_boot in pool.map(self.one, boots) for outcome in of_boot]
        return sorted(outcomes, key=lambda outcome: (architecture(outcome.series), numbers(outcome.series)))

    def one(self, boot: Boot) -> list[Outcome]:
        """Boot a guest, and say how its scenarios ended."""
        for _ in range(ATTEMPTS):
            boot.run(self.initramfs[architecture(boot.series)], self.results)
            if boot.report:
                break
            print(f"{boot.series:<8} never came to its first program: {boot.given_up or 'a panic'}; again", flush=True)
        outcomes = [Outcome(boot.series, scenario, boot.report, boot.given_up) for scenario in boot.scenarios]
        if boot.machine.counted and self.thorough:
            self.measure_again(boot, outcomes[0])
        # One call, so that lines of several guests do not mix.
        lines = [f"{boot.series:<8} {len(outcomes)} scenarios in {boot.seconds:.1f} s, {boot.cpu:.1f} s of CPU time"]
        for outcome in outcomes:
            wrong = outcome.wrong + ([] if self.update else self.expected.judge(outcome))
            lines += [f"{boot.series:<8} {outcome.scenario:<13} {'; '.join(wrong)[:300] or 'as expected'}"]
            lines += [f"    {fact}" for fact in outcome.facts]
        if any(f"@end {scenario}\n" not in boot.report for scenario in boot.scenarios):
            lines += [f"    | {''.join(filter(str.isprintable, line))}" for line in boot.console.splitlines()[-20:]]
        print("\n".join(lines), flush=True)
        return outcomes

    def measure_again(self, boot: Boot, outcome: Outcome) -> None:
        """Measure as often as is thorough: the median of each ratio counts, and the ratios must agree."""
        measured = {name: [found["ratios"]] for name, found in outcome.found.items()}
        for _ in range(1, MEASUREMENTS):
            boot.run(self.initramfs[architecture(boot.series)], self.results)
            more = Outcome(boot.series, outcome.scenario, boot.report, boot.given_up)
            outcome.wrong += [wrong for wrong in more.wrong if wrong not in outcome.wrong]
            for name, found in more.found.items():
                measured[name].append(found["ratios"])
        for name, runs in measured.items():
            for case in runs[0]:
                values = sorted(run.get(case, 0) for run in runs)
                if values[-1] > values[0] * SPREAD:
                    outcome.wrong.append(f"{name}: {case}: ratios differ by more than 1 %: {values}")
                outcome.found[name]["ratios"][case] = values[len(values) // 2]

    def again(self, boots: list[Boot], outcomes: list[Outcome]) -> list[Outcome]:
        """Boot again what is not as expected.

        A gauge may change and change back while a guest reads it: a real defect shows in another boot as well.
        """
        bad = {(outcome.series, outcome.scenario): outcome for outcome in outcomes if outcome.wrong}
        for boot in boots:
            boot.scenarios = [scenario for scenario in boot.scenarios if (boot.series, scenario) in bad]
            boot.suffix = "-again"
        second = {}
        for outcome in self.boot([boot for boot in boots if boot.scenarios]):
            key = (outcome.series, outcome.scenario)
            outcome.wrong += self.expected.judge(outcome)
            second[key] = outcome
            for wrong in [] if outcome.wrong else bad[key].wrong:
                note_repeated(f"Linux {outcome.series}, {outcome.scenario}: {wrong}")
        return [second.get((outcome.series, outcome.scenario), outcome) for outcome in outcomes]

    def attend(self, outcome: Outcome) -> None:
        """Say which costs have fallen."""
        if outcome.series in self.expected.kernels:
            for program, found in outcome.found.items():
                for gain in gains(self.expected.finding(outcome.series, outcome.scenario, program), found):
                    print(
                        f"ATTENTION: Linux {outcome.series}, {outcome.scenario}: {gain}. To guard it: "
                        f"make kernels-expected KERNELS={outcome.series} SCENARIOS={outcome.scenario}"
                    )


def note_repeated(what: str) -> None:
    """Note a difference that did not show again: `make test` sums these up and fails above a limit."""
    print(f"REPEATED: {what}", flush=True)
    notes = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "tmp/live-tests"
    if notes.parent.is_dir():
        with notes.open("a") as file:
            file.write(f"repeated {' | '.join(what.splitlines())}: kernels\n")


def print_table(outcomes: list[Outcome]) -> None:
    """Print a table, and below it everything that is not as expected."""
    rows = [["kernel", "scenario", "source", "loads", "fields", "lines", "text", ""]]
    for outcome in outcomes:
        doctor = next((found for name, found in outcome.found.items() if name.startswith("doctor")), None)
        verified = next((found for name, found in outcome.found.items() if found["fields"]), None)
        shown = doctor or verified
        row = [outcome.series, outcome.scenario, shown["source"] if shown else "-"]
        row += [" ".join(doctor["usable"]) if doctor else "-", str(verified["fields"]) if verified else "-"]
        row += [str(doctor["lines"]), "all" if "all" in doctor["text"] else str(len(doctor["text"]))] if doctor else ["-", "-"]
        rows.append([*row, "NOT as expected" if outcome.wrong else "as expected"])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for outcome in outcomes:
        if outcome.wrong:
            print("\n  ".join([f"\nLinux {outcome.series}, {outcome.scenario}:", *outcome.wrong]))


if __name__ == "__main__":
    sys.exit(main())
