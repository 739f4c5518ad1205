"""Runs some storms and one source, and compares everything that fastproc shows."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import texts
from .fields import FLICKERS, RULES, TOGETHER, TOGETHER_IN_TEXT
from .kinds import class_of
from .process import StormProcess
from .rules import LATE, OK, TICK_NS, Moment, Poses, Same, wrong
from .sampler import FILES, LOOKED_UP, Sample, Sampler, Window, around, now_ns
from .storms import Storm
from .tally import Tally

MAY_BE_NEGATIVE = frozenset({"tpgid", "nice", "priority", "pri", "exit_signal", "tty_nr", "oom_score_adj"})
KERNEL_ADDRESS = 0xFFFF800000000000


@dataclass
class Catalogue:
    """The fields that this fastproc has: their names, and which of them describe the thread in a thread's row."""

    names: list[str]
    of_thread: frozenset[str]
    keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fastproc: Path) -> Catalogue:
        """Reads the fields from the help text, and the keys from a row."""
        text = subprocess.run([fastproc, "ps", "--help"], check=True, capture_output=True, text=True).stdout
        section = text.partition("\nFields:\n")[2].partition("\n  Fields marked")[0]
        found = re.findall(r"^  ([a-z_0-9]+) +([*!]*) ", section, re.MULTILINE)
        names = [name for name, _ in found]
        if len(names) < 100:
            raise SystemExit(f"checker: found {len(names)} fields in the help of {fastproc}")
        catalogue = cls(names, frozenset(name for name, marks in found if "*" in marks))
        command: list[str | Path] = [
            fastproc,
            "ps",
            "--quiet",
            "--format",
            "ndjson",
            "--top",
            "1",
            "--source",
            "procfs",
            "--fields",
            ",".join(names),
        ]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])
        catalogue.keys = dict(zip(row, names, strict=True))
        return catalogue


class Run:
    """Compares what one source shows in one storm."""

    def __init__(self, fastproc: Path, catalogue: Catalogue, sampler: Sampler, tally: Tally) -> None:
        self.fastproc = fastproc
        self.catalogue = catalogue
        self.sampler = sampler
        self.tally = tally

    def storms(self, storms: list[tuple[Storm, int]], source: str, seconds: float, program: Path) -> None:
        """Runs some storms at the same time, each at its pace: tables for most of the time, then texts."""
        with ExitStack() as stack:
            group: list[StormProcess] = []
            stack.callback(self.sampler.watch, [])
            for storm, period_us in storms:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fastproc-checker-", dir="/var/tmp"))
                running = StormProcess(storm, program, period_us, seconds, Path(folder))
                stack.callback(running.end)
                running.show()
                group.append(running)
            self.sampler.watch([folder for running in group for folder in running.folders()])
            self.sampler.window(now_ns(), now_ns())
            self.tables(group, source, seconds * 0.75)
            self.cat(group, source, seconds * 0.25)
            for running in group:
                verdict = OK if running.alive() else wrong("a storm that goes on")
                run = running.storm.name, source
                self.tally.add(run, "presence", "storm", running.process.returncode, verdict, running.storm.name)

    def tables(self, group: list[StormProcess], source: str, seconds: float) -> None:
        """Runs `fastproc ps` with every field, repeatedly."""
        command: list[str | Path] = [
            self.fastproc, "ps", "--quiet", "--interval", "0.01", "--format", "json", "--source", source,
            "--filter", " || ".join(
                [f"session == {running.pid}" for running in group]
                + [f"pid == {pid}" for running in group for pid in sorted(running.kernel_threads)]
            ), "--fields", ",".join(self.catalogue.names),
            *(["--threads"] if group[0].storm.threads else []),
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout
        assert process.stderr
        tables: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=8)
        stop = threading.Event()

        def receive() -> None:
            assert process.stdout
            for line in process.stdout:
                while not stop.is_set():
                    with suppress(queue.Full):
                        tables.put((now_ns(), line), timeout=0.2)
                        break

        reader = threading.Thread(target=receive, daemon=True)
        reader.start()
        previous: dict[tuple[int, int], tuple[dict[str, Any], int, int]] = {}
        deadline = time.monotonic() + seconds
        seen = 0
        try:
            while seen < 3 or time.monotonic() < deadline:
                try:
                    received, line = tables.get(timeout=120)
                except queue.Empty:
                    break
                previous = self.table(group, source, json.loads(line), received, previous)
                seen += 1
        finally:
            stop.set()
            process.terminate()
            process.wait()
            errors = process.stderr.read().decode(errors="replace").strip()
            reader.join()
            process.stdout.close()
            process.stderr.close()
        if seen < 3:
            verdict = wrong(f"tables, not the exit status {process.returncode}")
            self.tally.add((group[0].storm.name, source), "presence", "tables", errors, verdict, "fastproc ps")

    def table(
        self,
        group: list[StormProcess],
        source: str,
        table: dict[str, Any],
        received: int,
        previous: dict[tuple[int, int], tuple[dict[str, Any], int, int]],
    ) -> dict[tuple[int, int], tuple[dict[str, Any], int, int]]:
        """Checks one table. Returns its rows, for the next one."""
        began, ended = table["boottime_ns"], table["boottime_ns"] + table["took_ns"]
        window = self.sampler.window(began, max(received, ended))
        # Records that were proven not to have changed, were read again anyway, and had changed.
        disproven = table.get("disproven", 0)
        verdict = wrong("no record that was kept wrongly") if disproven else OK
        self.tally.add((group[0].storm.name, source), "presence", "disproven", disproven, verdict, f"table at {began}")
        rows: dict[tuple[int, int], tuple[dict[str, Any], int, int]] = {}
        times_seen: Counter[int] = Counter()
        owners = {pid: running for running in group for pid in (running.pid, *running.kernel_threads)}
        for keyed in table.get("processes") or table.get("threads") or []:
            row = {self.catalogue.keys.get(key, key): value for key, value in keyed.items()}
            running = owners[row["session"] or row["pid"]]
            run = running.storm.name, source
            identity = row["pid"], row["tid"] if running.storm.threads else row["pid"]
            times_seen[identity[1]] += 1
            last = previous.get(identity)
            # A row that comes from the kernel's text has the start time in ticks.
            if last and last[0]["starttime"] // TICK_NS != row["starttime"] // TICK_NS:
                last = None
            rows[identity] = row, began, ended
            self.row(running, run, row, window, (began, ended, received), last)
        for running in group:
            folders = [folder for folder in running.folders() if ("/" in folder) == running.storm.threads]
            for pid in [int(folder.rpartition("/")[2]) for folder in folders]:
                stat = window.get((str(pid), "stat"), [])
                may_be_gone = pid in running.kernel_threads and not (stat and stat[-1].began_ns >= ended)
                right = times_seen[pid] == 1 or (times_seen[pid] == 0 and may_be_gone)
                verdict = OK if right else wrong("one row of each watched process")
                self.tally.add((running.storm.name, source), "presence", "row", times_seen[pid], verdict, f"{pid} at {began}")
        return rows

    def row(
        self,
        running: StormProcess,
        run: tuple[str, str],
        row: dict[str, Any],
        window: Window,
        times: tuple[int, int, int],
        last: tuple[dict[str, Any], int, int] | None,
    ) -> None:
        """Checks every field of a row."""
        began, ended, received = times
        folder = str(row["pid"])
        of_process = self.moment(running, folder, window, began, ended, received)
        of_thread = of_process
        if running.storm.threads:
            of_thread = self.moment(running, f"{folder}/task/{row['tid']}", window, began, ended, received)
        # A process whose record was torn comes from the text, and then starts at a whole tick.
        of_text = row["starttime"] % TICK_NS == 0
        self.tally.rows[run[1], of_text] += 1
        for moment in (of_process, of_thread):
            moment.row = row
            moment.of_text = of_text
            moment.is_thread = running.storm.threads
            if last:
                moment.previous, moment.previous_began_ns, moment.previous_ended_ns = last
        where = f"{row['pid']} {row['comm']!r} at {began}+{ended - began}"
        for name, value in row.items():
            moment = of_thread if name in self.catalogue.of_thread else of_process
            rule = RULES.get(name)
            if rule is None:
                verdict = wrong("nothing: the checker has no rule for this field; add one to fields.py")
            elif name in running.storm.restarts:
                verdict = OK
            else:
                verdict = impossible(name, value) or rule(moment, value)
            self.tally.add(run, class_of(name), name, value, verdict, where)
        for name, left, right in invariants(row, running.storm.threads):
            self.tally.add(run, "within a row", name, left, OK if left == right else wrong(right), where)
        for names in TOGETHER_IN_TEXT if of_process.of_text else TOGETHER:
            self.together(run, names, of_process, where)

    def together(self, run: tuple[str, str], names: tuple[str, ...], moment: Moment, where: str) -> None:
        """Checks that values which are replaced as a whole belong to one state."""
        rules = [(name, rule) for name in names if isinstance(rule := RULES[name], Same)]
        changing = [(name, *rule.source) for name, rule in rules if len(moment.poses.values(rule.source)) > 1]
        if len(changing) < 2:
            return
        got = [moment.row[name] for name, _, _ in changing]
        states = [[get(state[file]) for _, file, get in changing] for state in moment.states if "status" in state]
        verdict = OK if got in states else wrong(f"of one state of {states}")
        self.tally.add(run, "credentials", "of one moment", got, verdict, where)

    def moment(self, running: StormProcess, folder: str, window: Window, began: int, ended: int, received: int) -> Moment:
        """What is known about a process at that time."""
        samples: dict[str, list[Sample]] = {}
        for file in FILES:
            around_it = window.get((folder, file), [])
            samples[file] = around_it if file in LOOKED_UP else around(around_it, began, ended)
        # The id is in the record; the path is read after the walk.
        samples["cgroup path"] = window.get((folder, "cgroup"), [])
        states, changing = running.states(folder, began, ended)
        late, changing_late = running.states(folder, began, received)
        # A sample that the checker took during a change does not show the state in between.
        edges = [one for of_file in samples.values() for one in (*of_file[:1], *of_file[-1:])] if running.storm.passing else []
        passing = (
            running.storm.passing
            if changing or any(running.states(folder, one.began_ns, one.ended_ns)[1] for one in edges)
            else running.storm.passing & {*LOOKED_UP, "pss", "uss"}
            if changing_late
            else frozenset()
        )
        merged = [state for state in late if state in states]
        if len(late) > len(merged):
            merged += [{file: state[file] for file in LATE if file in state} for state in late if state not in states]
        return Moment(
            began, ended, samples, merged, running.poses.get(folder, Poses()), passing, running.storm.loose,
            running.storm.volatile | FLICKERS, names=running.storm.names, looked_up_ns=received,
        )  # fmt: skip

    def cat(self, group: list[StormProcess], source: str, seconds: float) -> None:
        """Runs `fastproc cat` of the three texts of each watched process, repeatedly."""
        deadline = time.monotonic() + seconds
        owners = {pid: running for running in group for pid in running.watched}
        paths = [f"/proc/{pid}/{file}" for pid in owners for file in ("stat", "statm", "status")]
        # Loading a program takes far longer than a text.
        times = max(1, 24 // len(paths))
        while True:
            began = now_ns()
            command: list[str | Path] = [self.fastproc, "cat", "--source", source, *(paths * times)]
            done = subprocess.run(command, capture_output=True, check=False)
            ended = now_ns()
            window = self.sampler.window(began, ended)
            moments = {pid: self.moment(running, str(pid), window, began, ended, ended) for pid, running in owners.items()}
            for moment in moments.values():
                moment.of_text = source == "procfs"
            seen = split(done.stdout, list(owners))
            may_end = any(running.kernel_threads for running in group)
            whole = may_end or (done.returncode == 0 and len(seen) == len(paths) * times)
            verdict = OK if whole else wrong(f"exit status 0 and {len(paths) * times} texts")
            got = done.returncode, done.stderr.decode(errors="replace"), len(seen)
            self.tally.add((group[0].storm.name, source), "texts", "cat", got, verdict, f"fastproc cat at {began}")
            for pid, file, text in seen:
                storm = owners[pid].storm
                for name, value, verdict in texts.compared(file, text, moments[pid]):
                    if texts.name_of(file, name.partition(" ")[2]) not in storm.restarts:
                        where = f"{pid} by cat at {began}+{ended - began}"
                        self.tally.add((storm.name, source), "texts", name, value, verdict, where)
            if time.monotonic() > deadline:
                return


def split(output: bytes, pids: list[int]) -> list[tuple[int, str, bytes]]:
    """The texts in the output of `cat`: stat, statm and status of each process in turn."""
    out: list[tuple[int, str, bytes]] = []
    # A status ends where the next stat begins: with a pid and a parenthesis. No line of status begins like this.
    starts = "|".join(map(str, pids))
    found = re.finditer(
        rb"(?ms)^(%b) (\(.*?\) [A-Za-z] -?\d[^\n]*\n)(\d[\d ]*\n)(Name:.*?)(?=^(?:%b) \(|\Z)"
        % (starts.encode(), starts.encode()),
        output,
    )
    for one in found:
        pid = int(one[1])
        out += [(pid, "stat", one[1] + b" " + one[2]), (pid, "statm", one[3]), (pid, "status", one[4])]
    return out


def impossible(name: str, value: Any) -> Any:
    """Values that no field can have: an address of the kernel, or a negative number."""
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, (int, float)) or isinstance(one, bool):
            continue
        if one < 0 and name not in MAY_BE_NEGATIVE:
            return wrong("not negative")
        if one >= KERNEL_ADDRESS and name != "rsslim":
            return wrong("no address of the kernel")
        if isinstance(value, list) and one >= 1 << 32:
            return wrong("a number of 32 bits")
    return None


def invariants(row: dict[str, Any], threads: bool) -> list[tuple[str, Any, Any]]:
    """What must hold within each row: name, and both sides of the equation."""
    out = [
        ("the first nspid is the pid", (row["nspid"] or [None])[0], row["pid"]),
        ("the first nspgid is the pgrp", (row["nspgid"] or [None])[0], row["pgrp"]),
        ("the first nssid is the session", (row["nssid"] or [None])[0], row["session"]),
        ("nested ids are of one depth", len(row["nspid"]), len(row["nspgid"])),
        ("nested sessions too", len(row["nspid"]), len(row["nssid"])),
        ("time is utime and stime", row["time"], row["utime"] + row["stime"]),
        ("rss is the sum of its parts", row["rss"], row["rssanon"] + row["rssfile"] + row["rssshmem"]),
    ]
    if not threads:
        out.append(("tid is pid", row["tid"], row["pid"]))
    return out
