"""When a value is right: between what the kernel reported before and after, or equal to what it reported meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import kernel
from .sampler import LOOKED_UP, Sample

CPUS = os.cpu_count() or 1
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MEMORY = PAGE * os.sysconf("SC_PHYS_PAGES")
# User addresses end here; those above are the kernel's.
USER_END = 1 << 56

# What the kernel counts on each CPU before it adds it to the total. Some versions show the total without it.
COUNTED_BY_CPU = CPUS * max(32, 2 * CPUS) * PAGE

# Files whose values are not in the record.
LATE = (*LOOKED_UP, "cgroup path")

RIGHT, FLICKER, OUTSIDE, UNKNOWN = "right", "flicker", "outside", "unbracketed"


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison, and the expected value."""

    outcome: str
    expected: str = ""


OK = Verdict(RIGHT)
NOT_KNOWN = Verdict(UNKNOWN)


def wrong(expected: object) -> Verdict:
    """The value is outside of what the kernel reported."""
    return Verdict(OUTSIDE, str(expected))


def text_of(value: Any) -> str:
    """Parses a text of JSON; bytes that are not UTF-8 are represented as Python does."""
    if isinstance(value, dict) and set(value) == {"escaped"}:
        raw = value["escaped"]
        out = bytearray()
        at = 0
        while at < len(raw):
            if raw[at] != "\\":
                out += raw[at].encode()
                at += 1
                continue
            kind = raw[at + 1]
            if kind == "x":
                out.append(int(raw[at + 2 : at + 4], 16))
                at += 4
            elif kind == "u":
                end = raw.index("}", at)
                out += chr(int(raw[at + 3 : end], 16)).encode()
                at = end + 1
            else:
                out += {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}[kind]
                at += 2
        return out.decode("utf-8", "surrogateescape")
    return str(value)


Get = Callable[[bytes], Any]


class Poses(list[dict[str, bytes]]):
    """What the kernel reported about a process in each of a storm's states, by file."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[tuple[str, Get], list[Any]] = {}

    def values(self, source: tuple[str, Get]) -> list[Any]:
        """All distinct values of a part of a file. The poses are complete when this is called."""
        if source not in self._values:
            file, get = source
            self._values[source] = _distinct(get(pose[file]) for pose in self if file in pose)
        return self._values[source]


@dataclass
class Moment:
    """What is known about a process at the time of a value."""

    began_ns: int
    ended_ns: int
    samples: dict[str, list[Sample]]
    # What the kernel reported in each state that may have been in force according to the storm, by file.
    states: list[dict[str, bytes]] = field(default_factory=list)
    # What it reported in all states of the storm.
    poses: Poses = field(default_factory=Poses)
    # Fields that may have a value of neither state, because a state may have been changing into the next.
    passing: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    row: dict[str, Any] = field(default_factory=dict)
    previous: dict[str, Any] | None = None
    previous_began_ns: int = 0
    previous_ended_ns: int = 0
    # Whether the row is of a thread, which uses at most one CPU.
    is_thread: bool = False
    # Names that a storm sets and that are not states.
    names: frozenset[str] = frozenset()
    # Whether the values come from the kernel's own text.
    of_text: bool = False
    # The latest time at which values were looked up for a row: after the walk.
    looked_up_ns: int = 0
    _texts: dict[str, list[bytes]] = field(default_factory=dict)

    def texts(self, file: str) -> list[bytes]:
        """All distinct texts that the file held around that time."""
        if file not in self._texts:
            self._texts[file] = list(dict.fromkeys(one.text for one in self.samples.get(file, ())))
        return self._texts[file]

    def before(self, file: str) -> bytes | None:
        """What the file held before."""
        samples = self.samples.get(file)
        return samples[0].text if samples and samples[0].ended_ns <= self.began_ns else None

    def after(self, file: str) -> bytes | None:
        """What the file held after."""
        samples = self.samples.get(file)
        ended_ns = max(self.ended_ns, self.looked_up_ns if file in LATE else 0)
        return samples[-1].text if samples and samples[-1].began_ns >= ended_ns else None


Rule = Callable[[Moment, Any], Verdict]


def part(file: str, name: str, convert: Callable[[str], Any] = int, default: Any = None) -> tuple[str, Get]:
    """A value of a file of the kernel."""

    def get(text: bytes) -> Any:
        found = kernel.PARSERS[file](text).get(name)
        return default if found is None else convert(found)

    return file, get


@dataclass(frozen=True)
class Same:
    """A state: one that the kernel showed around that time, or one that the storm was in.

    If a state changed and changed back between two samples of the checker, neither shows it (A-B-A). If no journal
    records when it changed, and it flickers by nature, it only has to be possible.
    """

    source: tuple[str, Get]
    name: str
    domain: Callable[[Any], bool] | None = None

    def __call__(self, moment: Moment, value: Any) -> Verdict:
        file, get = self.source
        posed = moment.poses.values(self.source)
        if len(posed) > 1 and self.name not in moment.volatile and self.name not in moment.passing:
            allowed = _distinct(get(state[file]) for state in moment.states if file in state)
            return OK if value in allowed else wrong(f"one of the states {_short(allowed)}, of all {_short(posed)}")
        allowed = _distinct(get(text) for text in moment.texts(file))
        if value in allowed:
            return OK
        if value is None and moment.after(file) is None:
            # The process may be gone by then.
            return NOT_KNOWN
        if self.name in moment.volatile or self.name in moment.passing:
            possible = self.domain is None or value in posed or self.domain(value)
            return Verdict(FLICKER, _short(allowed)) if possible else wrong(f"possible, such as {_short(allowed)}")
        if moment.before(file) is None or moment.after(file) is None:
            return NOT_KNOWN
        return wrong(_short(allowed))


def grows(source: tuple[str, Get], unit: int = 1) -> Rule:
    """A counter: between what the kernel reported before and after. `unit`: the unit to which the kernel rounds."""
    file, get = source

    def rule(moment: Moment, value: Any) -> Verdict:
        before, after = moment.before(file), moment.after(file)
        if before is None and after is None:
            return NOT_KNOWN
        low = get(before) * unit if before is not None else 0
        high = get(after) * unit + unit - 1 if after is not None else None
        if value is None or value < low or (high is not None and value > high):
            return wrong(f"{low} to {high}")
        return OK

    return rule


def level(source: tuple[str, Get], most: int, name: str) -> Rule:
    """A quantity that rises and falls: checked as a state, or between its extremes if a storm changes it."""
    exact = Same(source, name)

    def rule(moment: Moment, value: Any) -> Verdict:
        if value is not None and not 0 <= value <= most:
            return wrong(f"0 to {most}, of the machine")
        if name in moment.loose:
            return OK
        posed = [value for value in moment.poses.values(source) if value is not None]
        if len(posed) > 1:
            more = COUNTED_BY_CPU if name.startswith("rss") else 0
            fits = value is not None and min(posed) - more <= value <= max(posed) + more
            return OK if fits else wrong(f"{min(posed)} to {max(posed)}, the storm's extremes")
        return exact(moment, value)

    return rule


def cpu_part(own: str, other: str, cut: bool = False) -> Rule:
    """User or system time.

    The kernel divides the exact sum by the ratio of samples, and lets neither part shrink: what one part gained since a
    sample is at most what the sum gained. If the kernel divided the time for a reader in another ratio than fastproc
    did before, the two rules conflict; then fastproc keeps its own values, and the bound lies less than a tick lower.

    `cut`: the value is cut to ticks, so it stands for any value less than a tick above it.
    """

    def rule(moment: Moment, value: Any) -> Verdict:
        before, after = moment.before("stat"), moment.after("stat")
        if before is None or after is None:
            return NOT_KNOWN
        first, last = kernel.stat(before), kernel.stat(after)
        low = int(first[own]) * TICK_NS
        # Each part is cut to ticks, so each may hide almost one tick.
        high = (int(last[own]) + int(last[other]) + 2) * TICK_NS - int(first[other]) * TICK_NS - 1
        most = None if value is None else value + (TICK_NS - 1 if cut else 0)
        if most is not None and low - TICK_NS < most < low:
            return Verdict(FLICKER, f"{low} to {high}")
        return OK if most is not None and low <= most and value <= high else wrong(f"{low} to {high}")

    return rule


def cpu_sum() -> Rule:
    """User and system time together."""

    def rule(moment: Moment, value: Any) -> Verdict:
        before, after = moment.before("stat"), moment.after("stat")
        if before is None or after is None:
            return NOT_KNOWN
        low, last = ticks(before), ticks(after)
        high = last + 2 * TICK_NS - 1
        return OK if value is not None and low <= value < high else wrong(f"{low} to {high}")

    return rule


def ticks(text: bytes) -> int:
    """User and system time of a `stat`, in nanoseconds, each cut to ticks."""
    values = kernel.stat(text)
    return (int(values["utime"]) + int(values["stime"])) * TICK_NS


def rate(of: str, scale: float, bound: bool, beside: tuple[str, str] | None = None) -> Rule:
    """What a counter of the same rows gained, divided by the time between them; a share of CPUs has bounds as well.

    `beside`: the counter and the column of the other part of a share. If both together exceed the bound, both are
    reduced by the same factor.
    """

    def rule(moment: Moment, value: Any) -> Verdict:
        if value is None:
            return OK if moment.previous is None else wrong("a number: the process was there before")
        if value < 0:
            return wrong("not negative")
        # A process may have had more threads between two snapshots than in either.
        most = 100.0 * (1 if moment.is_thread else CPUS)
        # Each column is rounded to four decimals.
        whole, margin = (value + moment.row[beside[1]], 0.0002) if beside else (value, 0.0001)
        if bound and whole > most + margin:
            return wrong(f"at most {most}, of {CPUS} CPUs")
        now, then = moment.row.get(of), moment.previous and moment.previous.get(of)
        if now is None or then is None:
            return NOT_KNOWN
        gained = now - then
        if gained < 0:
            return wrong(f"a sum that does not shrink: {of} was {then} and is {now}")
        longest = (moment.ended_ns - moment.previous_began_ns) / 1e9
        shortest = max((moment.began_ns - moment.previous_ended_ns) / 1e9, 1e-9)
        low, high = gained * scale / longest, gained * scale / shortest
        if bound:
            low = min(low, most)
        if beside is not None and moment.previous:
            other = (moment.row[beside[0]] - moment.previous[beside[0]]) * scale / shortest
            low *= min(1.0, most / max(min(high, most) + min(other, most), 1e-9))
        return (
            OK
            if low - 0.0001 <= value <= high + 0.0001
            else wrong(f"{low:.4f} to {high:.4f}: {of} gained {gained} to {now} in {shortest:.6f} to {longest:.6f} s")
        )

    return rule


def derived(compute: Callable[[dict[str, Any]], Any], margin: float = 0.0) -> Rule:
    """A value that is computed from other columns of the row."""

    def rule(moment: Moment, value: Any) -> Verdict:
        expected = compute(moment.row)
        if margin and isinstance(expected, float) and isinstance(value, (int, float)):
            return OK if abs(value - expected) <= margin else wrong(expected)
        return OK if value == expected else wrong(expected)

    return rule


def _distinct(values: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if value not in out:
            out.append(value)
    return out


def _short(values: list[Any]) -> str:
    text = ", ".join(map(repr, values))
    return text if len(text) < 300 else text[:300] + "…"
