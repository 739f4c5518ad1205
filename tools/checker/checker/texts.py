"""The rules of `/proc/PID/stat`, `statm` and `status` as `fastproc cat` prints them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from . import kernel
from .fields import HUGE, name_by, nested, numbers
from .rules import FLICKER, MEMORY, PAGE, TICK_NS, Moment, Rule, Same, Verdict, cpu_part, grows, level, part, wrong

# The name in `fastproc ps` of a line of status, or a value of stat or statm: so that a storm needs one list.
SAME_AS = {
    "Name": "comm", "State": "state", "TracerPid": "tracer_pid", "Threads": "num_threads", "SigQ": "sigq",
    "NStgid": "nspid", "Cpus_allowed": "cpus_allowed_list", "Mems_allowed": "mems_allowed_list", "VmRSS": "rss",
    "VmSize": "vsize", "resident": "rss", "shared": "shr", "text": "trs", "data": "vmdata", "size": "vsize",
    "voluntary_ctxt_switches": "nvcsw", "nonvoluntary_ctxt_switches": "nivcsw",
    "blocked": "sigblk", "sigignore": "sigign", "sigcatch": "sigcgt", "signal": "sigpnd",
}  # fmt: skip
GROWING = frozenset("minflt cminflt majflt cmajflt cutime cstime blkio guest_time cguest_time".split())
NESTED = frozenset({"NStgid", "NSpid", "NSpgid", "NSsid"})
SWITCHES = frozenset({"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"})


def name_of(file: str, label: str) -> str:
    """The name of the value in `fastproc ps`."""
    if (file, label) == ("stat", "rss"):
        return "counted_rss"
    return SAME_AS.get(label, label.lower())


def _raw(text: str) -> str:
    return text


@lru_cache
def _rule(file: str, label: str) -> Rule:
    name = name_of(file, label)
    if label in NESTED:
        return nested(label)
    if name == "comm":
        return name_by(file, label)
    if file == "stat":
        if label in GROWING:
            return grows(part(file, label))
        if label in ("utime", "stime"):
            rule = cpu_part(label, "stime" if label == "utime" else "utime", cut=True)
            return lambda moment, value: rule(moment, value * TICK_NS)
        if label in ("vsize", "rss"):
            return level(part(file, label), HUGE if label == "vsize" else MEMORY // PAGE, name)
        return Same(part(file, label, _raw), name)
    if file == "statm":
        return level(part(file, label), HUGE // PAGE, name)
    if label in SWITCHES:
        return grows(part(file, label))
    if label.startswith(("Vm", "Rss", "HugetlbPages")):
        return level(part(file, label, _kib), HUGE // 1024, name)
    return Same(part(file, label, _raw), name)


def _kib(text: str) -> int:
    return int(text.split()[0])


def _converted(file: str, label: str, raw: str) -> Any:
    if label in NESTED:
        return numbers(raw)
    number = file == "statm" or label in SWITCHES
    if file == "stat":
        number = label in GROWING or label in ("utime", "stime", "vsize", "rss")
    if number:
        return int(raw)
    return _kib(raw) if label.startswith(("Vm", "Rss", "HugetlbPages")) else raw


def compared(file: str, text: bytes, moment: Moment) -> list[tuple[str, Any, Verdict]]:
    """Checks every value of a text. Returns label, value and verdict."""
    try:
        values = kernel.PARSERS[file](text)
    except (ValueError, IndexError) as error:
        return [(f"{file}", text, wrong(f"a text of that form: {error}"))]
    out: list[tuple[str, Any, Verdict]] = []
    shapes = [tuple(kernel.PARSERS[file](one)) for one in moment.texts(file)]
    shapes += [tuple(kernel.PARSERS[file](pose[file])) for pose in moment.poses if file in pose]
    labels = tuple(values)
    verdict = Verdict("right") if labels in shapes or not shapes else wrong(shapes[0])
    # An exited leader has no memory and no umask: for that moment its text lacks these lines.
    if labels not in shapes and "umask" in moment.volatile and any(set(labels) <= set(shape) for shape in shapes):
        verdict = Verdict(FLICKER, "the lines of a leader that is gone")
    out.append((f"{file} labels", labels, verdict))
    for label, raw in values.items():
        value = _converted(file, label, raw)
        out.append((f"{file} {label}", value, _rule(file, label)(moment, value)))
    return out
