"""The rule of every field of `fastproc ps`. A field without one is a failure."""

from __future__ import annotations

import grp
import os
import pwd
import re
import time
from datetime import datetime
from functools import lru_cache
from typing import Any

from . import cgroups, waits
from .kernel import unescaped
from .rules import (
    FLICKER,
    MEMORY,
    OK,
    OUTSIDE,
    PAGE,
    TICK_NS,
    USER_END,
    Get,
    Moment,
    Rule,
    Same,
    Verdict,
    cpu_part,
    cpu_sum,
    derived,
    grows,
    level,
    part,
    rate,
    text_of,
    wrong,
)
from .sampler import NAMESPACES

# Values that change and change back at any time, so that two samples cannot frame them. They only have to be
# possible.
FLICKERS = frozenset({"state", "stat", "wchan", "processor", "flags", "sigq", "oom_score", "fds", "sockets"})

STATES = "RSDTtXZPI"
CLASSES = {0: "TS", 1: "FF", 2: "RR", 3: "B", 4: "ISO", 5: "IDL", 6: "DLN", 7: "EXT"}
HUGE = 1 << 57  # of an address space
TASK_COMM_LEN = 16


def numbers(text: str) -> list[int]:
    """Parses a list of numbers."""
    return [int(one) for one in text.split()]


def _nth(index: int) -> Any:
    return lambda text: int(text.split()[index])


def _kib(text: str) -> int:
    return int(text.split()[0]) * 1024


def _kib_of(label: str) -> tuple[str, Get]:
    # A zombie and a kernel thread have no such line.
    return part("status", label, _kib, 0)


def _set(text: str) -> str:
    return text.strip().rjust(16, "0")


def _list(text: str) -> str:
    return text.strip()


@lru_cache
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user_of(index: int) -> tuple[str, Get]:
    return part("status", "Uid", lambda text: _user(int(text.split()[index])))


def _group_of(index: int) -> tuple[str, Get]:
    return part("status", "Gid", lambda text: _group(int(text.split()[index])))


def _text(rule: Rule) -> Rule:
    return lambda moment, value: rule(moment, None if value is None else text_of(value))


WORKER = re.compile(r"(kworker/(?:R|u?[0-9]+:[0-9]+[HI]*))(?:[-+][!-~][ -~]*)?")


def _mixed(name: bytes, names: list[bytes]) -> bool:
    """Whether each byte, including the final NUL, equals the byte of one of the names at that position."""
    padded = [one.ljust(TASK_COMM_LEN, b"\0") for one in names]
    whole = name + b"\0"
    return len(whole) <= TASK_COMM_LEN and all(any(one[at] == byte for one in padded) for at, byte in enumerate(whole))


def name_by(file: str, label: str) -> Rule:
    """Checks a name. A kernel worker's name and the names of a storm's other threads change at any time.

    The kernel writes a name byte by byte, and from 6.13 reads it without a lock: if a thread is renamed all the time,
    its `comm` and `stat` show a mix of both names once in two thousand reads.
    """
    source = part(file, label, str)

    def raw(name: str) -> bytes:
        return (unescaped(name) if file == "status" else name).encode("utf-8", "surrogateescape")

    def rule(moment: Moment, value: Any) -> Verdict:
        name = text_of(value)

        def possible(one: str) -> bool:
            # The worker's own part of the name stays the same.
            of_worker = WORKER.fullmatch(one)
            shown = [WORKER.fullmatch(source[1](text)) for text in moment.texts(file)]
            return one in moment.names or (of_worker is not None and all(now and now[1] == of_worker[1] for now in shown))

        if name.startswith("kworker/") or (name in moment.names and not moment.poses):
            moment.volatile |= {"comm"}
        verdict = Same(source, "comm", possible)(moment, name)
        if verdict.outcome == OUTSIDE:
            in_force = [source[1](state[file]) for state in moment.states if file in state] or list(moment.names)
            if len(in_force) > 1 and _mixed(raw(name), list(map(raw, in_force))):
                return Verdict(FLICKER, verdict.expected)
        return verdict

    return rule


def _arguments(text: bytes) -> list[str]:
    if not text:
        return []
    return [one.decode("utf-8", "surrogateescape") for one in text.removesuffix(b"\0").split(b"\0")]


def _cmdline(moment: Moment, value: Any) -> Verdict:
    got = [text_of(one) for one in value] if isinstance(value, list) else value

    def lowered(line: list[str]) -> list[str]:
        return [one.lower() for one in line]

    def possible(line: list[str] | None) -> bool:
        # During exec the process has no command line for a moment: until the new memory has its arguments.
        executes = "exe" in moment.passing | moment.volatile
        return line is not None and (lowered(line) in mixed or (not line and executes))

    # While a title is overwritten, some of it is the old one: the two differ in the case of letters.
    mixed = [lowered(_arguments(pose["cmdline"])) for pose in moment.poses if "cmdline" in pose]
    return Same(("cmdline", _arguments), "cmdline", possible)(moment, got)


def _coredumping(text: str) -> bool:
    return text == "1"


def nested(label: str) -> Rule:
    """Checks the ids in each namespace."""
    source = part("status", label, numbers)
    exact = Same(source, label.lower())

    def rule(moment: Moment, value: Any) -> Verdict:
        verdict = exact(moment, value)
        # For its text the kernel looks the process up again for each namespace. A record has all ids of one moment.
        if verdict.outcome == OUTSIDE and moment.of_text:
            possible = [*moment.poses.values(source), *map(source[1], moment.texts("status"))]
            if all(any(number in ids[at : at + 1] for ids in possible) for at, number in enumerate(value)):
                return Verdict(FLICKER, verdict.expected)
        return verdict

    return rule


def _terminal(number: str) -> str:
    device = int(number) & 0xFFFFFFFF
    major, minor = device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00
    if device == 0:
        return "?"
    if major == 4:
        return f"tty{minor}" if minor < 64 else f"ttyS{minor - 64}"
    if 136 <= major < 144:
        return f"pts/{(major - 136) * 256 + minor}"
    return f"{major}:{minor}"


def _stat(moment: Moment, value: Any) -> Verdict:
    """The letters of ps(1), computed from the same row."""
    row = moment.row
    marks = (
        ("<", row["nice"] < 0),
        ("N", row["nice"] > 0),
        ("L", (row["vmlck"] or 0) > 0),
        ("s", row["session"] == row["pid"]),
        ("l", row["num_threads"] > 1),
        ("+", row["tpgid"] > 0 and row["tpgid"] == row["pgrp"]),
    )
    expected = row["state"] + "".join(letter for letter, holds in marks if holds)
    return OK if value == expected else wrong(expected)


def _started(moment: Moment, value: Any) -> Verdict:
    return Same(part("stat", "starttime"), "starttime")(moment, None if value is None else value // TICK_NS)


def _elapsed(moment: Moment, value: Any) -> Verdict:
    low, high = moment.began_ns - moment.row["starttime"], moment.ended_ns - moment.row["starttime"]
    # Start times in procfs are cut to ticks.
    return OK if low - TICK_NS <= value <= high + TICK_NS else wrong(f"{low} to {high}")


def _calendar(moment: Moment, value: Any) -> Verdict:
    if not isinstance(value, str):
        return wrong("a date")
    try:
        seconds = datetime.fromisoformat(value).timestamp()
    except ValueError:
        return wrong("a date")
    # As in ps(1): both are whole seconds. The kernel computes the boot time again when the clock is set.
    expected = {boot + moment.row["starttime"] // 1_000_000_000 for boot in _boot_seconds()}
    return OK if seconds in expected else wrong(expected)


def _boot_seconds() -> set[int]:
    with open("/proc/stat", "rb") as file:
        shown = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    return {shown, int(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))}


def _share(of: str, beside: tuple[str, str] | None = None) -> Rule:
    return rate(of, 100 / 1e9, bound=True, beside=beside)


def _is_kernel_thread(moment: Moment, value: Any) -> Verdict:
    expected = bool(int(moment.row["flags"]) & 0x200000)
    return OK if value is expected else wrong(expected)


def _address(name: str) -> Rule:
    rule = Same(part("stat", name), name)
    return lambda moment, value: rule(moment, value) if value is None or value < USER_END else wrong("a user's address")


def _memory(label: str, name: str, most: int = MEMORY) -> Rule:
    return level(_kib_of(label), most, name)


def _counter(file: str, name: str, unit: int = 1) -> Rule:
    return grows(part(file, name), unit)


def _of_stat(name: str, convert: Any = int, domain: Any = None) -> Rule:
    return Same(part("stat", name, convert), name, domain)


def _of_status(label: str, name: str, convert: Any = int, default: Any = None) -> Rule:
    return Same(part("status", label, convert, default), name)


def _pages(name: str, field: str, most: int) -> Rule:
    return level(part("statm", name, lambda pages: int(pages) * PAGE), most, field)


def _limit(text: str) -> int:
    return int(text.partition("/")[2])


def _queued(text: str) -> int:
    return int(text.partition("/")[0])


def _policy(text: str) -> str:
    return CLASSES.get(int(text), "?")


def _waits_in(text: bytes) -> str:
    return "-" if text in (b"0", b"") else text.decode()


def _inode(link: bytes) -> int:
    return int(link.partition(b"[")[2].rstrip(b"]"))


def _whole_share(moment: Moment, value: Any) -> Verdict:
    """The whole part of pcpu, which is rounded to four decimals."""
    share = moment.row["pcpu"]
    if share is None:
        return OK if value is None else wrong(None)
    expected = {int(min(max(share + margin, 0), 99)) for margin in (-0.0001, 0.0, 0.0001)}
    return OK if value in expected else wrong(expected)


def _share_of_memory(moment: Moment, value: Any) -> Verdict:
    if value is None:
        # During exec the process has no memory for a moment.
        may_be = moment.row["rss"] == 0 or moment.after("stat") is None or "pss" in moment.volatile | moment.passing
        return OK if may_be else wrong("a number: it has memory")
    return OK if 0 <= value <= MEMORY else wrong("0 to the machine's memory")


def _label(moment: Moment, value: Any) -> Verdict:
    if not moment.texts("attr/current"):
        return OK if value is None else wrong("nothing: no security module")
    return Same(("attr/current", lambda text: text.decode().strip("\0\n")), "label")(moment, value)


RULES: dict[str, Rule] = {
    "pid": _of_stat("pid"),
    "tid": _of_stat("pid"),
    "ppid": _of_stat("ppid"),
    "pgrp": _of_stat("pgrp"),
    "session": _of_stat("session"),
    "tracer_pid": _of_status("TracerPid", "tracer_pid"),
    "tty": Same(part("stat", "tty_nr", _terminal), "tty"),
    "tty_nr": _of_stat("tty_nr"),
    # A process that has taken a terminal and not yet set its foreground group has none.
    "tpgid": _of_stat("tpgid", int, lambda group: group == 0),
    "comm": name_by("stat", "comm"),
    "cmdline": _cmdline,
    # No storm has arguments of 128 KiB.
    "cmdline_cut": derived(lambda row: None if row["cmdline"] is None else False),
    "exe": _text(Same(("exe", lambda text: text.decode("utf-8", "surrogateescape")), "exe")),
    "state": _of_stat("state", str, lambda letter: isinstance(letter, str) and len(letter) == 1 and letter in STATES),
    "stat": _stat,
    "flags": _of_stat("flags", int, lambda flags: 0 <= flags < 1 << 32),
    "kthread": _is_kernel_thread,
    "num_threads": _of_stat("num_threads", int, lambda threads: 0 <= threads < 1 << 22),
    "exit_signal": _of_stat("exit_signal"),
    "exit_code": _of_stat("exit_code"),
    # They are unknown for a process that has not exited.
    **{name: derived(lambda row: None) for name in ("event", "ended", "status", "final")},
    "wchan": Same(("wchan", _waits_in), "wchan", lambda name: isinstance(name, str) and name.isprintable()),
    "c": _whole_share,
    "f": derived(lambda row: row["flags"] >> 6 & 7),
    "start": _calendar,
    "sz": derived(lambda row: row["vsize"] // PAGE),
    "size": derived(lambda row: row["vmdata"] + row["vmstk"]),
    # They change with what other processes map: the checker only tests that they are possible.
    "pss": _share_of_memory,
    "uss": _share_of_memory,
    "oom_score": Same(("oom_score", int), "oom_score", lambda score: isinstance(score, int) and 0 <= score <= 2000),
    # If the leader has ended, they are those of a thread, and its folder is empty.
    "fds": Same(("fd", _nth(0)), "fds", lambda count: isinstance(count, int) and 0 <= count < 1 << 20),
    "sockets": Same(("fd", _nth(1)), "sockets", lambda count: isinstance(count, int) and 0 <= count < 1 << 20),
    # No storm uses a GPU.
    "gpu": derived(lambda row: None),
    "gpu_memory": derived(lambda row: None),
    "gpu_time": derived(lambda row: None),
    # No storm listens.
    "listen": derived(lambda row: None if row["sockets"] is None else []),
    "oom_score_adj": Same(("oom_score_adj", int), "oom_score_adj"),
    "pri": derived(lambda row: 39 - row["priority"]),
    "unit": derived(lambda row: row["cgroup"] and cgroups.unit_of(text_of(row["cgroup"]))),
    "slice": derived(lambda row: row["cgroup"] and cgroups.slice_of(text_of(row["cgroup"]))),
    **{
        name: cgroups.of_container(name)
        for name in ("container", "container_name", "pod", "pod_uid", "namespace", "image", "runtime", "machine")
    },
    "cgroup_memory_max": cgroups.smallest("memory.max"),
    "cgroup_memory_used": cgroups.part_of_limit("memory.max"),
    "cgroup_cpu_max": cgroups.smallest("cpu.max"),
    "cgroup_tasks_max": cgroups.smallest("pids.max"),
    "cgroup_tasks_used": cgroups.part_of_limit("pids.max"),
    "label": _label,
    **{f"{kind}ns": Same((f"ns/{kind}", _inode), f"{kind}ns") for kind in NAMESPACES},
    "coredumping": _of_status("CoreDumping", "coredumping", _coredumping, False),
    "starttime": _started,
    "lstart": _calendar,
    "etime": _elapsed,
    "pcpu": _share("time"),
    "pcpu_user": _share("utime", ("stime", "pcpu_system")),
    "pcpu_system": _share("stime", ("utime", "pcpu_user")),
    "wait": waits.share,
    "run_delay": waits.waits("run_delay"),
    "timeslices": waits.waits("timeslices"),
    "time": cpu_sum(),
    "utime": cpu_part("utime", "stime"),
    "stime": cpu_part("stime", "utime"),
    "guest_time": _counter("stat", "guest_time", TICK_NS),
    "cutime": _counter("stat", "cutime", TICK_NS),
    "cstime": _counter("stat", "cstime", TICK_NS),
    "cguest_time": _counter("stat", "cguest_time", TICK_NS),
    "minflt": _counter("stat", "minflt"),
    "majflt": _counter("stat", "majflt"),
    "cminflt": _counter("stat", "cminflt"),
    "cmajflt": _counter("stat", "cmajflt"),
    "minflt_per_second": rate("minflt", 1, bound=False),
    "majflt_per_second": rate("majflt", 1, bound=False),
    "nvcsw": _counter("status", "voluntary_ctxt_switches"),
    "nivcsw": _counter("status", "nonvoluntary_ctxt_switches"),
    "rss": _pages("resident", "rss", MEMORY),
    "pmem": derived(lambda row: row["rss"] / MEMORY * 100, 0.0001),
    "vsize": level(part("stat", "vsize"), HUGE, "vsize"),
    "shr": _pages("shared", "shr", MEMORY),
    "rssanon": _memory("RssAnon", "rssanon"),
    "rssfile": _memory("RssFile", "rssfile"),
    "rssshmem": _memory("RssShmem", "rssshmem"),
    "vmswap": _memory("VmSwap", "vmswap", 1 << 50),
    "vmpeak": _memory("VmPeak", "vmpeak", HUGE),
    "vmhwm": _memory("VmHWM", "vmhwm"),
    "vmlck": _memory("VmLck", "vmlck", HUGE),
    "vmpin": _memory("VmPin", "vmpin"),
    "vmdata": _memory("VmData", "vmdata", HUGE),
    "vmstk": _memory("VmStk", "vmstk", HUGE),
    "vmexe": _memory("VmExe", "vmexe", HUGE),
    "vmlib": _memory("VmLib", "vmlib", HUGE),
    "trs": _pages("text", "trs", HUGE),
    "vmpte": _memory("VmPTE", "vmpte"),
    "hugetlbpages": _memory("HugetlbPages", "hugetlbpages"),
    "read_bytes": _counter("io", "read_bytes"),
    "write_bytes": _counter("io", "write_bytes"),
    "cancelled_write_bytes": _counter("io", "cancelled_write_bytes"),
    "read_bytes_per_second": rate("read_bytes", 1, bound=False),
    "write_bytes_per_second": rate("write_bytes", 1, bound=False),
    # Delay accounting is off where the checker runs, as by default.
    **{f"delay_{kind}": waits.delay for kind in ("blkio", "swapin", "reclaim", "thrashing", "compaction")},
    "rchar": _counter("io", "rchar"),
    "wchar": _counter("io", "wchar"),
    "syscr": _counter("io", "syscr"),
    "syscw": _counter("io", "syscw"),
    "user": Same(_user_of(1), "user"),
    "ruser": Same(_user_of(0), "ruser"),
    "group": Same(_group_of(1), "group"),
    "rgroup": Same(_group_of(0), "rgroup"),
    "ruid": _of_status("Uid", "ruid", _nth(0)),
    "euid": _of_status("Uid", "euid", _nth(1)),
    "suid": _of_status("Uid", "suid", _nth(2)),
    "fsuid": _of_status("Uid", "fsuid", _nth(3)),
    "rgid": _of_status("Gid", "rgid", _nth(0)),
    "egid": _of_status("Gid", "egid", _nth(1)),
    "sgid": _of_status("Gid", "sgid", _nth(2)),
    "fsgid": _of_status("Gid", "fsgid", _nth(3)),
    "groups": _of_status("Groups", "groups", numbers),
    "umask": _of_status("Umask", "umask", str),
    "capinh": _of_status("CapInh", "capinh", _set),
    "capprm": _of_status("CapPrm", "capprm", _set),
    "capeff": _of_status("CapEff", "capeff", _set),
    "capbnd": _of_status("CapBnd", "capbnd", _set),
    "capamb": _of_status("CapAmb", "capamb", _set),
    "nonewprivs": _of_status("NoNewPrivs", "nonewprivs", lambda text: text == "1"),
    "seccomp": _of_status("Seccomp", "seccomp"),
    "seccomp_filters": _of_status("Seccomp_filters", "seccomp_filters"),
    "priority": _of_stat("priority"),
    "nice": _of_stat("nice"),
    "rt_priority": _of_stat("rt_priority"),
    "policy": _of_stat("policy"),
    "cls": Same(part("stat", "policy", _policy), "cls"),
    "processor": _of_stat("processor", int, lambda cpu: 0 <= cpu < (os.cpu_count() or 1)),
    "cpus_allowed_list": _of_status("Cpus_allowed_list", "cpus_allowed_list", _list),
    "mems_allowed_list": _of_status("Mems_allowed_list", "mems_allowed_list", _list),
    "ngid": _of_status("Ngid", "ngid"),
    "delayacct_blkio": _counter("stat", "blkio", TICK_NS),
    "sigpnd": _of_status("SigPnd", "sigpnd", _set),
    "shdpnd": _of_status("ShdPnd", "shdpnd", _set),
    "sigblk": _of_status("SigBlk", "sigblk", _set),
    "sigign": _of_status("SigIgn", "sigign", _set),
    "sigcgt": _of_status("SigCgt", "sigcgt", _set),
    "sigq": Same(part("status", "SigQ", _queued), "sigq", lambda queued: 0 <= queued < 1 << 22),
    "sigq_limit": Same(part("status", "SigQ", _limit), "sigq_limit"),
    "nspid": nested("NSpid"),
    "nspgid": nested("NSpgid"),
    "nssid": nested("NSsid"),
    "cgroup": _text(Same(("cgroup path", cgroups.path_in), "cgroup")),
    "cgroup_id": Same(("cgroup", cgroups.id_of), "cgroup_id"),
    "fdsize": _of_status("FDSize", "fdsize"),
    "rsslim": _of_stat("rsslim"),
    **{
        name: _address(name)
        for name in (
            "startcode endcode startstack kstkesp kstkeip start_data end_data start_brk arg_start arg_end env_start env_end"
        ).split()
    },
}  # fmt: skip

# Values of one kernel object, which is replaced as a whole: they belong to one state. For the text of `status` the
# kernel takes the object twice: once for the ids and groups, and later for the capabilities.
TOGETHER_IN_TEXT = (
    ("ruid", "euid", "suid", "fsuid", "rgid", "egid", "sgid", "fsgid", "groups"),
    ("capinh", "capprm", "capeff", "capamb"),
)
TOGETHER = (tuple(name for names in TOGETHER_IN_TEXT for name in names),)
