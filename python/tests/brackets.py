"""Compares every column with the kernel's own files, read before and after, by the rules of tools/checker.

python brackets.py SOURCE USER PID...: as that user, the processes PID and some of the others. Something may change there and
back unseen: what is wrong in every look is said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import fastproc

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/checker"))

from checker.fields import FLICKERS, RULES
from checker.rules import CPUS, OUTSIDE, RIGHT, TICK_NS, Moment
from checker.run import impossible, invariants
from checker.sampler import FILES, Sample, now_ns, sample

LOOKS = 4
#: Seconds.
GUARD = 120
#: How many of the others are compared: there may be thousands.
OTHERS = 60
Looked = TypeVar("Looked")
Samples = dict[str, Sample]
Wrong = dict[tuple[int, str], str]

#: When a record was read is no value of the kernel's; test_frames.py is about that.
KEYS = {name: key for name, (key, _, _) in fastproc.fields().items() if name != "read_at"}
#: Over the time since the look before.
RATES = {"pcpu", "pcpu_user", "pcpu_system", "c", *(name for name in KEYS if name.endswith("_per_second"))}
#: What the kernel shows only to who may trace the process; the file tells whether it does.
TRACING = "startcode endcode startstack kstkesp kstkeip start_data end_data start_brk arg_start arg_end env_start env_end"
IO = "read_bytes write_bytes cancelled_write_bytes rchar wchar syscr syscw read_bytes_per_second write_bytes_per_second"
GUARDED = {
    **dict.fromkeys(IO.split(), "io"),
    **dict.fromkeys([*TRACING.split(), "exit_code", "wchan", "pss", "uss"], "io"),
    **{f"{name}ns": f"ns/{name}" for name in ["cgroup", "ipc", "net", "pid", "time", "user", "uts"]},
    "mntns": "ns/mnt",
    "exe": "exe",
}
SETS = {"capinh", "capprm", "capeff", "capbnd", "capamb", "sigpnd", "shdpnd", "sigblk", "sigign", "sigcgt"}
LISTS = {"cpus_allowed_list", "mems_allowed_list"}
#: What never changes in a process, whatever it does.
LASTING = {"pid", "tid", "starttime", "lstart", "start"}


def ranges(numbers: list[int]) -> str:
    """As the kernel writes a set of CPUs."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][-1] == number - 1:
            out[-1][1:] = [number]
        else:
            out.append([number])
    return ",".join("-".join(map(str, run)) for run in out)


def as_checked(name: str, value: Any) -> Any:
    """A value of a column as `fastproc ps` has it in JSON, which the rules are for."""
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None:
        return None
    if name in SETS:
        return f"{value:016x}"
    if name == "umask":
        return f"{value:04o}"
    return ranges(value) if name in LISTS else value


def samples(pid: int) -> Samples:
    return {file: one for file in FILES if (one := sample(str(pid), file)) is not None}


def allowed(look: Callable[[], Looked]) -> Looked:
    """A look, when the service allows it: a user's walks may take half of the CPU time of a second, and a virtual CPU that
    stands still in one uses that up."""
    given_up = time.monotonic() + GUARD
    while True:
        try:
            return look()
        except fastproc.ServiceError as error:
            if "ask for too many" not in str(error) or time.monotonic() > given_up:
                raise
        time.sleep(0.05)


def start(shown: Samples) -> int | None:
    """When it started, in ticks."""
    return int(shown["stat"].text.rpartition(b")")[2].split()[19]) if "stat" in shown else None


class Comparison:
    """Looks by one collector, each between two readings of the files."""

    def __init__(self, collector: fastproc.Collector, resting: set[int]) -> None:
        self.collector = collector
        allowed(self.collector.mark)
        self.resting = resting
        self.previous: dict[tuple[int, int], tuple[dict[str, Any], int, int]] = {}
        self.right: dict[str, int] = dict.fromkeys(RULES, 0)

    def look(self) -> Wrong:
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        # The first are the kernel's, the last those that come and go. This one's own files are shown to it by other rules.
        others = [pid for pid in pids if pid not in self.resting and pid != os.getpid()]
        watched = [*self.resting, *others[: OTHERS // 3], *others[OTHERS // 3 :][-OTHERS * 2 // 3 :]]
        before, began = {pid: samples(pid) for pid in watched}, now_ns()
        table = allowed(self.collector.since_mark)
        ended, after = now_ns(), {pid: samples(pid) for pid in watched}
        columns = table.to_dict()
        wrong: Wrong = {}
        rows: dict[tuple[int, int], tuple[dict[str, Any], int, int]] = {}
        for at, pid in enumerate(columns["pid"]):
            if pid not in before:
                continue
            row = {name: as_checked(name, columns[key][at]) for name, key in KEYS.items()}
            identity = pid, row["starttime"] // TICK_NS
            if identity in rows:
                wrong[pid, "one row"] = "there are two"
            rows[identity] = row, began, ended
            shown = before[pid], after[pid]
            if start(shown[0]) == start(shown[1]) == identity[1]:
                wrong.update({(pid, name): what for name, what in self.row(row, shown, began, ended)})
        for pid in watched:
            first, last = start(before[pid]), start(after[pid])
            if first is not None and first == last and (pid, first) not in rows:
                wrong[pid, "one row"] = "there is none"
        self.previous = rows
        return wrong

    def row(self, row: dict[str, Any], shown: tuple[Samples, Samples], began: int, ended: int) -> list[tuple[str, str]]:
        """The columns of it that are wrong."""
        moment = Moment(began, ended, {file: [one[file] for one in shown if file in one] for file in FILES})
        moment.samples["cgroup path"] = moment.samples["cgroup"]
        moment.row = row
        moment.of_text = self.collector.source == "procfs"
        moment.most_threads = CPUS
        moment.volatile = FLICKERS
        # What has run meanwhile may have changed anything about itself, and back again.
        ran = ("stat", "status", "statm", "io", "cmdline", "exe", "cgroup")
        if any(len(moment.texts(file)) > 1 for file in ran):
            moment.volatile = moment.loose = frozenset(RULES.keys() - LASTING)
        last = self.previous.get((row["pid"], row["starttime"] // TICK_NS))
        if last is not None:
            moment.previous, moment.previous_began_ns, moment.previous_ended_ns = last
        wrong = []
        for name, value in row.items():
            if name in RATES and last is None:
                continue
            if name in GUARDED and not moment.texts(GUARDED[name]):
                if value is not None:
                    wrong.append((name, f"{value!r}: the kernel shows none"))
                continue
            verdict = impossible(name, value) or RULES[name](moment, value)
            if verdict.outcome == OUTSIDE:
                wrong.append((name, f"{value!r}: {verdict.expected}"))
            self.right[name] += verdict.outcome == RIGHT
        wrong += [(what, f"{left!r}, {right!r}") for what, left, right in invariants(row, False) if left != right]
        return wrong


def main() -> int:
    # Where make test counts what showed once; of another user by then.
    notes = os.environ.get("FASTPROC_NOTES")
    noted = Path(notes).open("a") if notes else None  # noqa: SIM115
    source, user, resting = sys.argv[1], int(sys.argv[2]), {int(pid) for pid in sys.argv[3:]}
    open_collector = fastproc.Collector  # imported now: that user may not be able to
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    comparison = Comparison(open_collector(list(KEYS), source=source), resting)
    lasting: Wrong | None = None
    once: Wrong = {}
    # One of this user's own.
    own = subprocess.Popen(["sleep", "600"])
    comparison.resting.add(own.pid)
    try:
        for _ in range(LOOKS):
            wrong = comparison.look()
            once.update({key: what for key, what in wrong.items() if key[0] in comparison.resting})
            lasting = wrong if lasting is None else {key: what for key, what in wrong.items() if key in lasting}
    finally:
        own.kill()
        own.wait()
    for (pid, name), what in sorted((lasting or {}).items()):
        print(f"{pid} {name}: {what}")
    for (pid, name), what in sorted(once.items()):
        if noted and (pid, name) not in (lasting or {}):
            noted.write(f"repeated {source} as {user}, {pid} {name}: {what}: python/tests/brackets.py\n")
    never = sorted(name for name, count in comparison.right.items() if not count)
    if never:
        print(f"never compared: {','.join(never)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
