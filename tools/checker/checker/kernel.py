"""Parsers of the kernel's own texts."""

from __future__ import annotations

import re
from functools import lru_cache

# proc(5), in the order of the file; the name in parentheses is the second field.
STAT = (
    "pid comm state ppid pgrp session tty_nr tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime "
    "priority nice num_threads itrealvalue starttime vsize rss rsslim startcode endcode startstack kstkesp kstkeip "
    "signal blocked sigignore sigcatch wchan nswap cnswap exit_signal processor rt_priority policy blkio guest_time "
    "cguest_time start_data end_data start_brk arg_start arg_end env_start env_end exit_code"
).split()
SCHEDSTAT = "run_ns run_delay timeslices threads".split()
STATM = "size resident shared text lib data dt".split()

Text = dict[str, str]


@lru_cache(maxsize=20000)
def stat(text: bytes) -> Text:
    """Parses `/proc/PID/stat`, with the names of proc(5). The name may contain parentheses, spaces and line ends."""
    line = text.decode("utf-8", "surrogateescape")
    opened, closed = line.index("("), line.rindex(")")
    values = [line[: opened - 1], line[opened + 1 : closed], *line[closed + 2 :].split()]
    if len(values) != len(STAT):
        raise ValueError(f"stat has {len(values)} values: {line!r}")
    return dict(zip(STAT, values, strict=True))


@lru_cache(maxsize=20000)
def statm(text: bytes) -> Text:
    """Parses `/proc/PID/statm`."""
    values = text.decode().split()
    if len(values) != len(STATM):
        raise ValueError(f"statm has {len(values)} values: {text!r}")
    return dict(zip(STATM, values, strict=True))


@lru_cache(maxsize=20000)
def schedstat(text: bytes) -> Text:
    """Parses `/proc/PID/schedstat`, or the sum of those of some threads and their number."""
    return dict(zip(SCHEDSTAT, text.decode().split(), strict=False))


@lru_cache(maxsize=20000)
def labelled(text: bytes) -> Text:
    """Parses `/proc/PID/status` and `io`: one value per line, as a label, a colon, a tab or a space, and the value."""
    lines = text.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
    return {label: value[1:] for label, _, value in (line.partition(":") for line in lines)}


@lru_cache(maxsize=2000)
def unescaped(name: str) -> str:
    """Unescapes the name in `status`, in which a line end and a backslash are escaped."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], name)


PARSERS = {"stat": stat, "statm": statm, "status": labelled, "io": labelled, "schedstat": schedstat}
