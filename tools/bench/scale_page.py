"""The text of docs/scale.md, from one run of `fastproc bench scale`."""

from collections.abc import Callable

from figures import Row, median, short, table

SCALE_ABOUT = """\
# A hundred thousand tasks

<!-- Written by `make test-scale` (tools/bench/page.py) from scale.json. -->

`make test-scale` (`fastproc bench scale`) raises `kernel.pid_max` and `kernel.threads-max`, starts idle processes, and checks and
measures fastproc at each number of them. Then it ends them, and does the same with threads. As many processes as fit into three quarters
of the memory have memory of their own; the others share that of their parent (`clone(2)` with `CLONE_VM`). However the command ends, its
processes end with it, and a shell that it started restores the limits. Run only one at a time.

It checks at each number:

- Every idle process is exactly once in a snapshot of `bpf`, in the output of `fastproc ps`, and in a snapshot of the service.
- The exporter's group has their number, `fastproc ps --top 20` prints twenty rows, and `fastproc top` draws its screen.
- `fastproc verify` finds nothing wrong when it compares every value of 200 of them with the kernel's files.
- Each thread is listed once, with its process.
"""
SCALE_METHOD = """\
All times are CPU times, except those of sections. "Cold" is the first snapshot after 128 MB of other memory were read. The time of
`ps` is that of the whole command, with opening; that of the service includes its reader; that of `serve` is of both its processes. All
processes are idle; [performance.md](performance.md) has figures for processes that run.

A walk pauses after each section, so that other tasks get its CPU. The table shows the longest section of each walk, in time that passed:
the clock of a section goes on while the kernel runs another task on that CPU, or the hypervisor another machine. So one very long
section may be the fault of the machine. "Most that surely ran" subtracts all time in which the walk had no CPU, by the CPU time that the
kernel counts for the thread. If it is above 200 us, a walk, or an interrupt during it, really took that long.

## Why the cost per process does not grow

A walk reads the same number of cache lines for each process, however many processes there are. `tools/bench/lines.py` counts them from
the lists of what a walk fetches ahead (`bpf/ahead.h`, `bpf/tasks/proof.h`) and from the structures of the running kernel. On the
kernel above, if the record is kept, or if the process is read:

| cache lines per process | kept, `top` | kept, every field | read, `top` | read, every field |
| --- | ---: | ---: | ---: | ---: |
| of the kernel's objects | 8 | 18 | 23 | 45 |
| parts of the resident set, by CPU | 0.5 | 0.5 | 0.5 | 0.5 |
| of its proof, its place, the index | 3.7 | 5.7 | 0.6 | 0.6 |
| of its record | 0 | 0 | 7 | 16 |
| together | 12 | 24 | 31 | 62 |
| objects, each at an address of its own | 2 | 3 | 3 | 11 |

A walk keeps the record of a process that has not changed since the last walk, as with these idle processes after the first walks. It
reads every sixteenth all the same. The table does not count the line with the process id of its parent, which siblings share. The
first line of an object also needs an address translation, because objects of different processes are in different pages. The arrays
are contiguous, and need less than one translation for ten processes. So a kept record of `top` costs 12 lines and two to three
translations, with 1,000 processes and with 100,000.

A larger number of processes only changes where these lines are. Those of 1,000 processes (0.7 MB, or 1.5 MB with every field) may stay in
the second-level cache from walk to walk; those of 10,000 and more are in the third-level cache or in memory. A cold snapshot fetches
all lines from there, with any number of processes. Its cost per process should not rise: the table shows its ratio to the first
column, and the project's limit for that ratio is 1.5.

## Memory

Each process takes 960 bytes in the arrays: 920 of its record (504 of them with the fields of `top`; a record has room for every group of
fields), 24 of its place, 8 of the index and 8 of the pool. If records are kept, 336 bytes of the words that prove them come on top.

Arrays have room for new processes: half as many as there are; above 8,000 processes only for 4,096 and a sixteenth, or for a
sixty-fourth if only one snapshot is taken. So the arrays for 100,000 processes take 98 MB for a single snapshot, and 143 MB for a
collector that keeps records, of which 13 MB are room.

The service has a collector for each of six sets of groups. With room for 8,192 processes and more, a collector has its arrays only
while readers use them: the service gives them back after ten minutes without a walk, and at its start. Beside 10,600 processes the
arrays of a set that was requested took 21.5 MB, and of one that was not 0.9 MB (`array_bytes` of `fastproc serve --status`). So beside
100,000 they take 0.9 MB to 143 MB for each set, by the same calculation: 148 MB if all readers request the same groups, and 858 MB if
they request all six sets within ten minutes. Making room loads the programs again, and the walk after it reads every process; the
reader waits for it, but nobody is charged for the room. A reader's snapshot is a copy, which readers of the same groups share.
The table above was measured when the service still kept the arrays of all six.

Kernels that count the resident set by CPU make its exact value expensive: a walk reads one cache line of each online CPU for every four
processes, unless no field of the group `memory` is requested. With 255 online CPUs that would be 64 lines for each process, more than
for the rest of the fields of `top`. Sections do not become longer: eight CPUs count as one more process when a walk decides whether
to pause.
"""


def scale(report: Row) -> str:
    rows = report["rows"]

    def line(name: str, cell: Callable[[Row], str]) -> list[str]:
        return [name, *[cell(row) for row in rows]]

    def us(key: str) -> Callable[[Row], str]:
        return lambda row: short(median(row, key))

    def times(key: str) -> Callable[[Row], str]:
        return lambda row: short(median(row, key) / median(rows[0], key))

    def each(key: str) -> Callable[[Row], str]:
        return lambda row: short((median(row, key) if isinstance(row[key], dict) else row[key]) * 1e3 / row["processes"])

    lines = [
        line("of these idle, with memory of their own", lambda row: f"{row['own_memory']:,}"),
        line("a snapshot of the fields of `top`, us per process", us("lean_us")),
        line("… cold", us("lean_cold_us")),
        line("… cold, to that of the first column", times("lean_cold_us")),
        line("a snapshot of every field, us per process", us("full_us")),
        line("… cold", us("full_cold_us")),
        line("… cold, to that of the first column", times("full_cold_us")),
        line("longest section, us: median of the walks", us("section_us")),
        line("… most of all walks", lambda row: short(row["section_us"]["max"])),
        line("… most that surely ran", lambda row: short(row["section_ran_us"]) if "section_ran_us" in row else "–"),
        line("opening, ms", lambda row: short(row["open_ms"])),
        line("the first snapshot after it, us per process", each("first_ms")),
        line("arrays, MB", lambda row: short(row["array_bytes"] / 1e6)),
        line("`fastproc ps --top 20` without a service, us per process", each("ps_ms")),
        line("`ps -eo pid,s,rss,time,comm`, us per process", each("procps_ms")),
        line("a snapshot by the service, us per process", each("service_ms")),
        line("… its resident memory, MB", lambda row: short(row["service_mb"])),
        line("a refresh of `fastproc top`, us per process", each("top_ms")),
        line("… its resident memory, MB", lambda row: short(row["top_mb"])),
        line("a scrape of `fastproc serve`, us per process", each("scrape_ms")),
        line("… its resident memory, MB", lambda row: short(row["serve_mb"])),
        line("values compared by `fastproc verify`, all right", lambda row: f"{row['verified']:,}"),
    ]
    heads = ["", *[f"{row['processes']:,} processes" for row in rows]]
    threads = [
        [
            f"{row['count']:,}",
            f"{row['processes']:,}",
            *[short(median(row, key)) for key in ("us", "cold_us", "unlisted_us")],
        ]
        for row in report["threads"]
    ]
    of_threads = table(
        ["threads", "processes that have them", "us per thread, listed", "… cold", "not listed, but added up"], threads
    )
    return "\n".join(
        [
            SCALE_ABOUT,
            f"Linux {report['kernel']}, {report['cpus']} CPUs. An idle process with memory of its own takes about "
            f"{report['bytes_of_process'] / 1e3:.0f} kB of kernel memory.\n",
            table(heads, lines) + "\n",
            of_threads + "\n",
            SCALE_METHOD,
        ]
    )
