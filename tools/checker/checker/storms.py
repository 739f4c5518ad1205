"""The storms: the program, the pace, and the values that cannot be framed."""

from __future__ import annotations

from dataclasses import dataclass

from .sampler import NAMESPACES

# What the kernel counts in batches on each CPU, in stat and in the peak: it may exceed the true extremes.
COUNTED = frozenset({"counted_rss", "vmhwm"})
# Memory of a process that maps and unmaps at any time: the checker only tests that it is possible.
MAPPING = frozenset(
    "rss vsize shr rssanon rssfile rssshmem vmpeak vmhwm vmdata vmstk vmexe vmlib trs vmpte vmlck vmswap counted_rss".split()
)
# Creating a thread blocks signals for a moment.
THREADS = frozenset({"num_threads", "sigblk"})
# Addresses, names and memory of a process that calls exec at any time.
IMAGE = MAPPING | frozenset(
    "comm cmdline exe startcode endcode startstack start_data end_data start_brk arg_start arg_end env_start env_end "
    "pss uss sigcgt sigblk sigign fdsize num_threads kstkesp kstkeip exit_code exit_signal".split()
)

# The leader is killed, and has exited before the other thread takes its place. An exited leader has no namespaces.
LEADER = frozenset("sigpnd shdpnd sigq sigq_limit rsslim umask".split()) | frozenset(f"{kind}ns" for kind in NAMESPACES)


@dataclass(frozen=True)
class Storm:
    """One storm."""

    name: str
    about: str
    # Microseconds between two changes: 0 finds torn values, more finds stale values.
    periods_us: tuple[int, ...] = (0, 30_000)
    # Quantities that are only tested against bounds.
    loose: frozenset[str] = frozenset()
    # States that change without an entry in the journal.
    volatile: frozenset[str] = frozenset()
    # States that have other values while one changes into the next.
    passing: frozenset[str] = frozenset()
    # Whether the rows are those of threads.
    threads: bool = False
    # Counters of the leading thread, which restart when another thread takes its place.
    restarts: frozenset[str] = frozenset()
    # Names that are given to threads other than the process itself.
    names: frozenset[str] = frozenset()
    # Whether the watched processes are kernel threads: they are not in the storm's session, and end at any time.
    kernel: bool = False


STORMS = (
    Storm("groups", "none, one, 64 and 5,000 supplementary groups, in turn"),
    Storm("credentials", "users, groups, capabilities"),
    Storm("affinity", "CPUs that it may run on", volatile=frozenset({"num_threads"})),
    Storm("cgroups", "moves between cgroups"),
    Storm("cpusets", "CPUs and nodes that its group may use"),
    Storm("nesting", "process groups of a process in six pid namespaces", loose=MAPPING),
    Storm(
        "workers", "the kernel's workers and their names", (0, 1_000), kernel=True,
        volatile=frozenset({"comm", "cpus_allowed_list", "cpus_allowed"}),
    ),
    Storm("descriptors", "a table of descriptors that grows and shrinks", (0, 5_000), loose=MAPPING),
    Storm("limits", "resource limits"),
    Storm("masks", "umask"),
    Storm("memory", "16 MiB mapped, locked and unmapped", (0, 20_000), loose=COUNTED),
    Storm("names", "names of a process"),
    Storm("scheduling", "policies, priorities and nice values"),
    Storm("signals", "signals blocked, pending, ignored and caught"),
    Storm("terminals", "a controlling terminal taken and given up", passing=frozenset({"tpgid"})),
    Storm("titles", "a command line changed in place", passing=frozenset({"cmdline"})),
    Storm("odd", "zombies, leaders that are gone, vfork, stopped, traced", (0,)),
    Storm("execs", "exec of programs of one name and of another", (60_000, 0), loose=MAPPING, passing=IMAGE),
    Storm(
        "dethread", "exec by a thread that does not lead", (0, 20_000), loose=IMAGE, volatile=IMAGE | LEADER,
        restarts=frozenset({"nvcsw", "nivcsw"}),
    ),
    Storm("threads", "threads that work and are gone", (0, 1_000), loose=MAPPING, volatile=THREADS),
    Storm("forks", "children that burn CPU for a moment", (0, 1_000), loose=MAPPING),
    Storm("inout", "reads, writes and truncation", (0, 1_000)),
    Storm("switching", "threads that sleep and wake", (0,), threads=True),
    Storm(
        "thread_names", "names of threads", (0, 30_000), threads=True,
        volatile=frozenset(), names=frozenset({"xxxxxxxxxxxxxxx", "yyyyyyy"}),
    ),
    Storm("namespaces", "pid namespaces in one another", (0, 2_000), loose=MAPPING),
    Storm("seccomp", "seccomp filters", (0, 1_000), loose=MAPPING),
)  # fmt: skip


def named(names: str | None) -> tuple[Storm, ...]:
    """The storms of a list of names, or all."""
    if names is None:
        return STORMS
    by_name = {storm.name: storm for storm in STORMS}
    return tuple(by_name[name] for name in names.split(","))
