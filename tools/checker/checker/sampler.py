"""A process that reads the files of the watched processes repeatedly, and keeps the samples of the last seconds."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Reversible
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
# What fastproc reads while it writes a row; the other values come with the record.
LOOKED_UP = ("cmdline", "exe", "wchan", "oom_score", "oom_score_adj", "attr/current", "fd", *map("ns/{}".format, NAMESPACES))
FILES = ("stat", "status", "statm", "io", "cgroup", "schedstat", "schedstats", *LOOKED_UP)
KEPT_NS = 8_000_000_000


@dataclass(frozen=True)
class Sample:
    """What a file held at some moment between two times (`CLOCK_BOOTTIME`)."""

    began_ns: int
    ended_ns: int
    text: bytes


Key = tuple[str, str]  # the path below /proc: "12" or "12/task/13"; a file there
Window = dict[Key, list[Sample]]


def now_ns() -> int:
    """The clock of fastproc's snapshots."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def read(folder: str, file: str) -> bytes | None:
    """Reads a file of a process. `None` if there is none."""
    if file == "schedstats":
        return waits(folder)
    if file == "fd":
        return open_files(folder)
    try:
        if file == "exe" or file.startswith("ns/"):
            return os.fsencode(os.readlink(f"/proc/{folder}/{file}"))
        handle = os.open(f"/proc/{folder}/{file}", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(handle, 1 << 16)
        while len(text) >= 1 << 16 and (more := os.read(handle, 1 << 16)):
            text += more
        return text
    except OSError:
        return None
    finally:
        os.close(handle)


def open_files(folder: str) -> bytes | None:
    """The number of open descriptors, and of those that are sockets."""
    links = []
    try:
        for number in os.listdir(f"/proc/{folder}/fd"):
            with suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{folder}/fd/{number}"))
    except OSError:
        return None
    return b"%d %d" % (len(links), sum(link.startswith("socket:") for link in links))


def waits(folder: str) -> bytes | None:
    """The sums of the numbers of schedstat of all threads of a process, and the number of its threads."""
    try:
        threads = os.listdir(f"/proc/{folder}/task")
    except OSError:
        return None
    texts = [text for thread in threads if (text := read(f"{folder}/task/{thread}", "schedstat"))]
    columns = zip(*(map(int, text.split()) for text in texts), strict=True)
    return b"%d %d %d %d" % (*map(sum, columns), len(texts)) if texts else None


def sample(folder: str, file: str) -> Sample | None:
    """Reads a file, with the times around it."""
    began = now_ns()
    text = read(folder, file)
    return None if text is None else Sample(began, now_ns(), text)


@dataclass
class _Kept:
    """Samples of one process or thread; equal successive texts share their bytes."""

    samples: dict[str, deque[Sample]] = field(default_factory=dict)

    def add(self, file: str, new: Sample) -> None:
        kept = self.samples.setdefault(file, deque())
        if kept and kept[-1].text == new.text:
            new = Sample(new.began_ns, new.ended_ns, kept[-1].text)
        kept.append(new)
        while kept[0].ended_ns < new.ended_ns - KEPT_NS:
            kept.popleft()


def around(samples: Reversible[Sample], began_ns: int, ended_ns: int) -> list[Sample]:
    """The samples from the last one that ended before to the first one that began after."""
    inside: deque[Sample] = deque()
    for one in reversed(samples):
        if one.began_ns >= ended_ns:
            inside.clear()
        inside.appendleft(one)
        if one.ended_ns <= began_ns:
            break
    return list(inside)


def _run(connection: Connection) -> None:
    if os.geteuid() == 0:
        os.nice(-5)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kept: dict[str, _Kept] = {}
    asked: tuple[int, int, int] | None = None
    while True:
        round_began = now_ns()
        for folder, one in kept.items():
            for file in FILES:
                if new := sample(folder, file):
                    one.add(file, new)
        took = (now_ns() - round_began) / 1e9
        if asked and asked[1] <= round_began:
            began, ended, _ = asked
            window = {
                (folder, file): around(samples, began, ended)
                for folder, one in kept.items()
                for file, samples in one.samples.items()
            }
            connection.send(window)
            asked = None
        # Half of the time is left to other processes.
        pause = 0.0 if asked else min(max(took, 0.0005), 0.01)
        if not kept and not asked:
            pause = 1.0
        while connection.poll(pause):
            pause = 0.0
            message = connection.recv()
            if isinstance(message, tuple):
                asked = message
            else:
                kept = {folder: kept.get(folder, _Kept()) for folder in message}


class Sampler:
    """The connection to the process that samples."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._process = Process(target=_run, args=(theirs,), daemon=True)
        self._process.start()

    def watch(self, folders: list[str]) -> None:
        """From now on sample these folders, and no others."""
        self._connection.send(folders)

    def window(self, began_ns: int, ended_ns: int) -> Window:
        """The samples around a time; waits for those after it."""
        self._connection.send((began_ns, ended_ns, 0))
        window: Window = self._connection.recv()
        return window

    def close(self) -> None:
        """Ends the other process."""
        self._process.kill()
        self._process.join()
