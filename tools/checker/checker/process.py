"""A running storm, and what it needs of the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .journal import Journal
from .rules import Poses
from .sampler import FILES, read
from .storms import Storm


class StormProcess:
    """A running storm: its process, the processes that it wants watched, and its poses."""

    def __init__(self, storm: Storm, program: Path, period_us: int, seconds: float, folder: Path) -> None:
        self.storm = storm
        self.journal_path = folder / "journal"
        self.poses: dict[str, Poses] = {}
        self._journal: Journal | None = None
        self._cgroups: list[Path] = []
        self.kernel_threads: set[int] = set()
        environment = dict(os.environ)
        for number, name in enumerate(("one/storm", "two/storm", "one/other")):
            link = folder / name
            link.parent.mkdir(exist_ok=True)
            link.write_bytes(program.read_bytes())
            link.chmod(0o755)
            environment[f"STORM_PROGRAM_{number}"] = str(link)
        if storm.name == "cgroups":
            for number in range(2):
                self._cgroups.append(make_cgroup(f"fastproc-checker-{folder.name}-{number}"))
                environment[f"STORM_CGROUP_{number}"] = str(self._cgroups[-1])
        if storm.name == "cpusets":
            self._cgroups.append(make_cpuset(f"fastproc-checker-{folder.name}"))
            environment["STORM_CPUSET"] = str(self._cgroups[-1])
        command: list[str | Path] = [
            folder / "one/storm",
            storm.name,
            self.journal_path,
            str(period_us),
            str(int(seconds) + 600),
        ]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        self.pid = self.process.pid
        self.watched = [self.pid]

    def show(self) -> None:
        """Lets the storm show its states, then starts it."""
        assert self.process.stdout
        assert self.process.stdin
        while True:
            line = self.process.stdout.readline().decode()
            word, _, number = line.strip().partition(" ")
            if word == "watch":
                self.watched.append(int(number))
                if self.storm.kernel:
                    self.kernel_threads.add(int(number))
                continue
            if word == "pose":
                # A storm's states are those of its processes and of its leading thread.
                for folder in (*map(str, self.watched), f"{self.pid}/task/{self.pid}"):
                    held = {file: text for file in FILES if (text := read(folder, file)) is not None}
                    held["cgroup path"] = held.get("cgroup", b"")
                    self.poses.setdefault(folder, Poses()).append(held)
            elif word != "go":
                raise SystemExit(f"checker: the storm {self.storm.name} ended at its start ({line!r})")
            self.process.stdin.write(b"\n")
            if word == "go":
                break
        if any(self.poses.values()):
            self._journal = Journal(self.journal_path)

    def folders(self) -> list[str]:
        """The folders below /proc to read."""
        out = [str(pid) for pid in self.watched]
        if self.storm.threads:
            with suppress(OSError):
                out += [f"{self.pid}/task/{tid}" for tid in sorted(os.listdir(f"/proc/{self.pid}/task"))]
        return out

    def states(self, folder: str, began_ns: int, ended_ns: int) -> tuple[list[dict[str, bytes]], bool]:
        """What the kernel reports in the states that may have been in force, and whether one may have been changing."""
        poses = self.poses.get(folder, Poses())
        if not poses or self._journal is None:
            return poses, False
        states, changing = self._journal.states(began_ns, ended_ns, len(poses))
        return [poses[state] for state in sorted(states)], changing

    def alive(self) -> bool:
        """Whether the storm still runs."""
        return self.process.poll() is None

    def end(self) -> None:
        """Ends the storm and everything that it started."""
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            with suppress(OSError, IndexError):
                stat = read(str(pid), "stat") or b""
                if int(stat.rpartition(b")")[2].split()[3]) == self.pid:
                    os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for folder in self._cgroups:
            for _ in range(50):
                with suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.02)
        if self._journal:
            self._journal.close()


def cgroup_roots() -> dict[str, Path]:
    """Where control groups are mounted: `cgroup2`, and `cpuset` of either version."""
    roots: dict[str, Path] = {}
    with open("/proc/self/mountinfo", errors="surrogateescape") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            path = Path(before.split()[4])
            kind, options = after.split()[0], after.split()[-1]
            if kind == "cgroup" and "cpuset" in options.split(","):
                roots["cpuset"] = path
            if kind == "cgroup2":
                roots["cgroup2"] = path
                with suppress(OSError):
                    if "cpuset" in (path / "cgroup.subtree_control").read_text().split():
                        roots["cpuset"] = path
    return roots


def make_cgroup(name: str) -> Path:
    """Makes a cgroup of version 2 below the root."""
    folder = cgroup_roots()["cgroup2"] / name
    folder.mkdir(exist_ok=True)
    return folder


def make_cpuset(name: str) -> Path:
    """Makes a cgroup whose CPUs and nodes can be set, with those of the root."""
    root = cgroup_roots()["cpuset"]
    folder = root / name
    folder.mkdir(exist_ok=True)
    for file in ("cpuset.mems", "cpuset.cpus"):
        effective = next(one for one in (root / f"{file}.effective", root / file) if one.exists())
        (folder / file).write_text(effective.read_text())
    return folder


def missing(storm: Storm) -> str | None:
    """What the storm needs and this machine lacks."""
    needs = {"cgroups": "cgroup2", "cpusets": "cpuset"}.get(storm.name)
    if needs and needs not in cgroup_roots():
        return f"{needs} to be mounted"
    cpus = {"affinity": {0}, "cpusets": {0, 1}}.get(storm.name, set())
    if not cpus <= os.sched_getaffinity(0):
        return f"the CPUs {cpus}"
    if storm.name == "scheduling" and not may_be_first():
        return "time for processes that come first"
    return None


def may_be_first() -> bool:
    """Whether a control group has time for real-time policies."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, *before)
    return True
