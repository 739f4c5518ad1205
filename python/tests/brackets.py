"""Compares every column with the kernel's own files, read before and after, by the rules of tools/checker.

python brackets.py SOURCE USER PID...: as that user, compares the processes PID and some others. A value may change and
change back unseen, so only what is wrong in every reading is reported.
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
#: The number of other processes that are compared: there may be thousands.
OTHERS = 60
Looked = TypeVar("Looked")
Samples = dict[str, Sample]
Wrong = dict[tuple[int, str], str]

#: When a record was read is not a value of the kernel; test_frames.py tests it.
KEYS = {name: key for name, (key, _, _) in fastproc.fields().items() if name != "read_at"}
#: Over the time since the reading before.
RATES = {"pcpu", "pcpu_user", "pcpu_system", "c", *(name for name in KEYS if name.endswith("_per_second"))}
#: Values that the kernel shows only to users who could trace the process; a file shows whether it does.
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
#: Values that never change in a process.
LASTING = {"pid", "tid", "starttime", "lstart", "start"}


def ranges(numbers: list[int]) -> str:
    """A set of CPUs in the kernel's notation."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][-1] == number - 1:
            out[-1][1:] = [number]
        else:
            out.append([number])
    return ",".join("-".join(map(str, run)) for run in out)


def as_checked(name: str, value: Any) -> Any:
    """A value of a column in the JSON form of `fastproc ps`, which the rules use."""
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
    """Repeats a reading until the service allows it: a user's walks may take half of a CPU, and a virtual CPU that
    stalls in one uses that up."""
    given_up = time.monotonic() + GUARD
    while True:
        try:
            return look()
        except fastproc.ServiceError as error:
            if "ask for too many" not in str(error) or time.monotonic() > given_up:
                raise
        time.sleep(0.05)


def start(shown: Samples) -> int | None:
    """The start in ticks."""
    return int(shown["stat"].text.rpartition(b")")[2].split()[19]) if "stat" in shown else None


class Comparison:
    """Readings by one collector, each between two readings of the files."""

    def __init__(self, collector: fastproc.Collector, resting: set[int]) -> None:
        self.collector = collector
        allowed(self.collector.mark)
        self.resting = resting
        self.previous: dict[tuple[int, int], tuple[dict[str, Any], int, int]] = {}
        self.right: dict[str, int] = dict.fromkeys(RULES, 0)

    def look(self) -> Wrong:
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        # The first are kernel threads, the last ones short-lived. Other rules apply to this process's own files.
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
        """The wrong columns of a process."""
        moment = Moment(began, ended, {file: [one[file] for one in shown if file in one] for file in FILES})
        moment.samples["cgroup path"] = moment.samples["cgroup"]
        moment.row = row
        moment.of_text = self.collector.source == "procfs"
        moment.most_threads = CPUS
        moment.volatile = FLICKERS
        # If the process has run meanwhile, anything about it may have changed and changed back.
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
    # Where make test counts repeated readings; opened before changing the user.
    notes = os.environ.get("FASTPROC_NOTES")
    noted = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if notes else None
    source, user, resting = sys.argv[1], int(sys.argv[2]), {int(pid) for pid in sys.argv[3:]}
    open_collector = fastproc.Collector  # imported now: that user may not be able to
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    comparison = Comparison(open_collector(list(KEYS), source=source), resting)
    lasting: Wrong | None = None
    once: Wrong = {}
    # A process of this user.
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
        if noted is not None and (pid, name) not in (lasting or {}):
            os.write(noted, f"repeated {source} as {user}, {pid} {name}: {what}: python/tests/brackets.py\n".encode())
    never = sorted(name for name, count in comparison.right.items() if not count)
    if never:
        print(f"never compared: {','.join(never)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
