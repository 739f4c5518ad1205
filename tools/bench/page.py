#!/usr/bin/env python3
"""Writes docs/performance.md, its plots, and the tables of README.md and docs/exporter.md, from the JSON of one run of `fastproc bench all`.
Writes docs/scale.md from the JSON of one run of `fastproc bench scale`.

tools/bench/page.py          write them
tools/bench/page.py --check  fail if they are not what docs/performance.json and docs/scale.json say
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from figures import Row, median, short, spread, table
from scale_page import scale

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "docs/performance.json"
SCALE = ROOT / "docs/scale.json"

SCAN = {
    "proc-3files": "open, read and close `stat`, `statm` and `status`",
    "proc-best": "kept descriptors and batched taskstats, the fastest reader without BPF",
    "procfs": "fastproc without privileges (`procfs`)",
    "bpf-full": "fastproc, every field of the three files (`bpf-full`)",
    "bpf-full-tenth-ran": "fastproc, every field, and a tenth of the processes has run since the last snapshot (`bpf-full-tenth-ran`)",
    "bpf-full-all-ran": "fastproc, every field, and every process has run since the last snapshot (`bpf-full-all-ran`)",
    "bpf-lean": "fastproc, the fields of `top` (`bpf-lean`)",
    "bpf-lean-tenth-ran": "fastproc, the fields of `top`, and a tenth of them has run (`bpf-lean-tenth-ran`)",
    "bpf-lean-all-ran": "fastproc, the fields of `top`, and all of them have run (`bpf-lean-all-ran`)",
    "bpf-iter-full": "fastproc, every field, by the iterator of older kernels (`bpf-iter-full`)",
}
LOADS = {
    "idle": "nothing",
    "proc-stat": "`cat /proc/[0-9]*/stat` in a loop",
    "bpf-lean": "fastproc, the fields of `top`",
    "bpf-full": "fastproc, every field",
    "bpf-iter-full": "fastproc, every field, by the iterator of older kernels",
}
SCRAPE = {
    "default": "fastproc, grouped by name (the default)",
    "default-gzip": "fastproc, grouped by name, gzip",
    "group-each": "fastproc, one group per process",
    "group-each-gzip": "fastproc, one group per process, gzip",
    "names": "fastproc, grouped by name, without descriptors, wait channels and machine metrics",
    "descriptors": "fastproc, grouped by name, with descriptors, without wait channels and machine metrics",
    "host": "fastproc, machine metrics only",
    "process-exporter": "process-exporter, grouped by name, without smaps",
    "node_exporter": "node_exporter, the same machine metrics",
}


def rows_of(report: Row, names: dict[str, str], keep: Callable[[Row], bool] = lambda _: True) -> list[tuple[str, Row]]:
    """The rows with a name for people, in the order of the names."""
    rows = [row for row in report["rows"] if keep(row)]
    return [(name, row) for case, name in names.items() for row in rows if row["case"] == case]


def scan(report: Row) -> str:
    us = "cpu_us_per_process"
    rows = [
        [
            name,
            short(median(row, us)),
            spread(row, us),
            short(row["ratio_vs_proc_3files"]),
            short(row["cold_ratio_vs_proc_3files"]),
        ]
        for name, row in rows_of(report, SCAN)
    ]
    heads = ["reader", "us per process", "least – most", "times cheaper", "times cheaper, cold caches"]
    return f"CPU time of one snapshot of {report['processes']:,} processes (`fastproc bench scan`):\n\n{table(heads, rows)}"


def latency(report: Row) -> str:
    rows = []
    for name, row in rows_of(report, LOADS):
        of_class = "FIFO 80" if row["class"] == "fifo" else "other"
        rows.append([name, of_class, *[short(row[key]) for key in ("p50_us", "p99_us", "p99_9_us", "max_us")]])
    heads = ["load on the same CPU", "class of the thread", "p50 us", "p99 us", "p99.9 us", "max us"]
    return (
        f"Wake-up latency of a thread while {report['processes']:,} processes are read on its CPU, "
        f"{report['looks_per_second']} times per second by fastproc (`fastproc bench latency`). "
        f"The thread wakes every millisecond, as in cyclictest:\n\n{table(heads, rows)}"
    )


def scrape(report: Row) -> str:
    rows = [
        [
            name,
            short(median(row, "cpu_ms")),
            spread(row, "cpu_ms"),
            short(row.get("ratio_vs_beside")),
            short(row["ratio_vs_proc_3files"]),
            f"{row['rss_bytes'] / 1e6:.0f}" if row.get("rss_bytes") else "–",
        ]
        for name, row in rows_of(report, SCRAPE)
    ]
    heads = [
        "exporter",
        "CPU ms per scrape",
        "least – most",
        "times cheaper than the other exporter",
        "times cheaper than reading three files per process",
        "resident MB",
    ]
    return (
        f"CPU time of one Prometheus scrape of {report['processes']:,} processes, response included (`fastproc bench scrape`). The other "
        f"exporter is node_exporter for machine metrics alone, and process-exporter otherwise:\n\n{table(heads, rows)}"
    )


ATTACH = {
    "ps-aux": "`ps aux`",
    "ps": "`fastproc ps` without the service",
    "service-aux": "`fastproc ps aux` with the service",
    "ps-aux-substitute": "`ps aux` with the service and the [substitute library](procps.md)",
    "ps-columns": "`ps -eo pid,s,rss,time,comm`",
    "ps-columns-nobody": "`ps -eo pid,s,rss,time,comm` as nobody",
    "service": "the same columns, `fastproc ps` with the service",
    "service-nobody": "the same columns, `fastproc ps` with the service, as nobody",
    "pgrep": "`pgrep -x fastproc-idle`",
    "pgrep-substitute": "… with the service and the substitute library",
    "top-batch": "`top -b -n2 -d0.2`",
    "top-batch-substitute": "… with the service and the substitute library",
    "reader": "one snapshot by a connected reader of the service",
    "reader-young": "one snapshot by a connected reader that accepts the last snapshot",
}


def attach(report: Row) -> str:
    sizes = list(dict.fromkeys(row["processes"] for row in report["rows"]))
    found = {(row["case"], row["processes"]): row for row in report["rows"]}
    rows = []
    for case, name in ATTACH.items():
        ms = [found.get((case, size)) for size in sizes]
        cells = [f"{short(median(row, 'cpu_ms'))} ({spread(row, 'cpu_ms')})" if row else "–" for row in ms]
        rows.append([name, *cells])
    heads = ["command", *[f"{size:,} processes" for size in sizes]]
    return (
        f"CPU ms of one command, with the service's share (least – most; `fastproc bench attach`):\n\n{table(heads, rows)}\n\n"
        f"{report['clients']} readers that take ten snapshots per second use {short(report['clients_cpu_percent'])} % of one CPU "
        f"in total, at {sizes[-1]:,} processes."
    )


def top(report: Row) -> str:
    rows = [
        [
            f"`{row['case']}`",
            f"{row['processes']:,}",
            short(row["interval_seconds"]),
            short(median(row, "cpu_ms_per_refresh")),
            spread(row, "cpu_ms_per_refresh"),
            short(row["cpu_percent_of_a_core"]),
            short(row["times_fastproc"]),
            f"{row['resident_mb']:.0f}",
        ]
        for row in report["rows"]
    ]
    heads = [
        "screen",
        "processes",
        "interval, s",
        "CPU ms per refresh",
        "least – most",
        "% of one CPU",
        "times the cost of fastproc",
        "resident MB",
    ]
    keys = [
        f"At {key['processes']:,} processes `fastproc top` responds to a key in {short(key['ms_median'])} ms (median), "
        f"{short(key['ms_p99'])} ms (p99)."
        for key in report["keys"]
    ]
    title = f"CPU time of a screen of {report['columns']}x{report['lines']} (`fastproc bench top`):"
    return "\n\n".join([title, table(heads, rows), *keys])


def exits(report: Row) -> str:
    rows = [[row["case"], short(median(row, "cpu_us")), spread(row, "cpu_us")] for row in report["rows"]]
    parts = [
        "CPU time of a fork and an exit, with and without recording of exits (`fastproc bench exits`):",
        table(["exits", "CPU us", "least – most"], rows),
        f"With recording it takes {abs(report['more_percent']):.1f} % {'more' if report['more_percent'] > 0 else 'less'}.",
    ]
    if storm := report["storm"]:
        rate = storm["ended"] / storm["seconds"]
        parts.append(
            f"At {rate:,.0f} exits per second, {storm['recorded']:,} of {storm['ended']:,} exits were recorded and {storm['lost']} lost."
        )
    if balance := report["balance"]:
        alone = balance["processes"] / balance["kernel"] * 100
        both = (balance["processes"] + balance["exits_seconds"]) / balance["kernel"] * 100
        parts.append(
            f"For {balance['seconds']} s the machine ran short-lived processes. Of the CPU time in `/proc/stat`, processes present in "
            f"consecutive snapshots (one per second) account for {alone:.2f} %; with {balance['exits']:,} recorded exits it is {both:.2f} %."
        )
    return "\n\n".join(parts)


# The README's table: a task, the bench, the usual way and its case, fastproc's and its case. Ratios are those of the bench's table.
SUMMARY = [
    ("`stat`, `statm`, `status` of every process", "scan", "open, read, close", "proc-3files", "BPF", "bpf-full"),
    ("… if all have run since the last snapshot", "scan", "open, read, close", "proc-3files", "BPF", "bpf-full-all-ran"),
    ("a table of processes, with the service", "attach", "`ps aux`", "ps-aux", "`ps aux`", "service-aux"),
    ("a table of processes, without the service", "attach", "`ps aux`", "ps-aux", "`ps`", "ps"),
    ("one refresh of a screen", "top", "`top`", "top", "`top`", "fastproc"),
    ("… compared with `htop`", "top", "`htop`", "htop", "`top`", "fastproc"),
    ("one scrape of groups of processes", "scrape", "process-exporter", "process-exporter", "`serve`", "default"),
    ("one scrape of the machine's metrics", "scrape", "node_exporter", "node_exporter", "`serve`", "host"),
]


def summary(reports: dict[str, Row]) -> str:
    """CPU time of common tasks with the most processes that were measured, all of one run."""
    rows = []
    for task, bench, usual, usual_case, ours, our_case in SUMMARY:
        found = {row["case"]: row for row in sorted(reports[bench]["rows"], key=lambda row: int(row.get("processes", 0)))}
        before, after = found[usual_case], found[our_case]
        key, scale = {
            "scan": ("cpu_us_per_process", reports["scan"]["processes"] / 1000),
            "top": ("cpu_ms_per_refresh", 1),
        }.get(bench, ("cpu_ms", 1))
        ratio = {
            "scan": after.get("ratio_vs_proc_3files"),
            "top": before.get("times_fastproc"),
            "attach": after.get("ratio_vs_ps"),
            "scrape": after.get("ratio_vs_beside"),
        }[bench]
        costs = [f"{short(median(before, key) * scale)} ({usual})", f"{short(median(after, key) * scale)} ({ours})"]
        rows.append([task, *costs, short(ratio), f"`fastproc bench {bench}`"])
    return table(["CPU time of", "usual, ms", "fastproc, ms", "times cheaper", "measured by"], rows)


SECTIONS: dict[str, Callable[[Row], str]] = {
    "scan": scan,
    "latency": latency,
    "exits": exits,
    "top": top,
    "scrape": scrape,
    "attach": attach,
}


def plot(title: str, unit: str, bars: list[tuple[str, float]]) -> str:
    """Horizontal bars on a linear axis, in colours for light and dark pages."""
    labels = [textwrap.wrap(name.replace("`", ""), 42) for name, _ in bars]
    left, width, line = 330, 420, 17
    most = max(value for _, value in bars)
    body, y = [], 36
    for label, (name, value) in zip(labels, bars, strict=True):
        ours = ' class="ours"' if name.startswith("fastproc") else ""
        middle = y + line * len(label) / 2
        body += [
            f'<text x="{left - 8}" y="{y + line * number + 13}" text-anchor="end">{words}</text>'
            for number, words in enumerate(label)
        ]
        length = width * value / most
        body.append(f'<rect{ours} x="{left}" y="{middle - 8:.1f}" width="{length:.1f}" height="16"/>')
        body.append(f'<text x="{left + length + 6:.1f}" y="{middle + 4.5:.1f}">{short(value)}</text>')
        y += line * len(label) + 10
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {y}" role="img">',
        f"<title>{title}</title>",
        "<style>text{font:13px sans-serif;fill:#57606a}.t{font-weight:bold}rect{fill:#8c959f}.ours{fill:#2f81f7}"
        "@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>",
        f'<text class="t" x="8" y="20">{title} ({unit})</text>',
    ]
    return "\n".join([*head, *body, "</svg>", ""])


def plots(reports: dict[str, Row]) -> dict[str, str]:
    drawn = {}
    if report := reports.get("scan"):
        bars = [(name.split(" (")[0], median(row, "cpu_us_per_process")) for name, row in rows_of(report, SCAN)]
        drawn["scan"] = plot("One snapshot", "us of CPU time per process", bars)
    if report := reports.get("latency"):
        fifo = rows_of(report, LOADS, lambda row: bool(row["class"] == "fifo"))
        drawn["latency"] = plot(
            "Wake-up latency of a real-time thread, p99", "us", [(name, row["p99_us"]) for name, row in fifo]
        )
    return drawn


METHOD = """\
## What limits a snapshot

A walk mostly waits for memory. [scale.md](scale.md#why-the-cost-per-process-does-not-grow) counts the cache lines that it reads for each
process: 31 for the fields of `top` and 62 for every field, or 12 and 24 if it keeps the record. The first snapshot reads every
process, so it costs more than later ones.

The figures in this part are each of one state of the program, older than the tables above. They compare two ways of doing the same
thing; do not compare them with those tables.

### Keeping records

On x86-64 the source `bpf` compares a few words of the kernel with those of the last walk. If they prove that a process has not changed,
it keeps the record and does not read the process again. These words take 336 bytes for each process. When records were first kept, a
snapshot took this many times fewer instructions than one that reads every process (an emulator, Linux 6.12, 254 processes):

| processes that run between two snapshots | every field | fields of `top` |
| --- | ---: | ---: |
| none | 1.56 | 1.50 |
| one in ten | 1.45 | 1.45 |
| all | 1.03 | 1.01 |

A process that runs for the first time after a rest costs more in the next snapshot: 1.06 times as many instructions with every field,
1.18 times with the fields of `top`.

Storms look for kept records that should have been read again. On two CPUs, beside `fastproc-testbed --storm`, `fastproc verify --rounds 5`
compared 5,635,619 values by `bpf` and 5,614,462 by the service in 15 minutes: none was wrong, and of 536,135 records that the service kept
none was disproven. `tools/checker` compared 531,502 and 595,053, and none was wrong; one command got no answer within two minutes, at a
load of 30. On 32 emulated CPUs (`make
test-kernels KERNELS=6.12 SCENARIOS=storms_32`, nine minutes of CPU time) `fastproc verify` compared 93,506 and 95,970 values: none was
wrong, and no kept record was disproven. On a machine with 255 possible CPUs, of which four are online (`storms_255`), it compared
374,003 values by `bpf`, and none was wrong. With more than 64 possible CPUs no record is kept if the CPUs that a process may use are read.

Earlier runs by the service called one to three values wrong. `verify` was wrong, not the walk. It read a process again as long as any
value differed, up to seven times, and judged all values by the last reading. Its own state differs in each reading: it runs when the kernel's
file is read, and waits when the service reads its record. So another value that changed and changed back during the last reading counted as
wrong. Now a value is wrong if it differs in each reading.

In CPU time, with 4,000 processes of which none ran, a snapshot that keeps records was 2.6 times cheaper with every field and 1.7 times
with the fields of `top`; with cold caches 2.8 and 1.4 times (an AMD EPYC in a virtual machine). To measure it on your machine:

    fastproc bench scan --processes 4000 --cases bpf-full,bpf-full-reads-all,bpf-lean,bpf-lean-reads-all

### A cheaper walk

Five ideas were tried after that. The table shows the cost of a walk that keeps records of the fields of `top`, with cold caches, as a
part of the cost without the idea:

| idea | cost |
| --- | ---: |
| fetch the words that are compared eight processes ahead | 1.00 |
| fetch the first cache line of eight tasks before the others | 1.16 |
| fetch the first cache line of eight `mm_struct` before the others | 1.01 |
| read neither parent nor process group; an estimate of what could be saved at most | 0.88 |
| keep up to eight records in one loop, with fewer conditions and copies | 0.68 |

Only the last one is in use. The fourth was not built: the parent would have to rest and to have one thread, and the children of other
parents would cost more. The fifth was measured as the BPF run time of `fastproc top` ten times a second, beside a process that
reads 128 MB again and again (`bpftool prog show`, medians of three); without that process its figure is 0.95. A kept record had
taken about 900 instructions, half of the time of a walk.

The fifth idea changed how many times cheaper fastproc is than reading the three files (`fastproc bench scan --processes 3000`, medians
of three runs of each in turn, on a busy machine; single runs of one case differ by up to a third):

| | hot, before | after | cold, before | after |
| --- | ---: | ---: | ---: | ---: |
| fields of `top`, nothing ran | 75.7 | 114 | 63.4 | 70.6 |
| fields of `top`, a tenth ran | 57.7 | 66.3 | 57.9 | 65.4 |
| fields of `top`, all ran | 42.6 | 42.0 | 42.3 | 39.6 |
| every field, nothing ran | 50.1 | 53.1 | 45.9 | 48.4 |
| every field, a tenth ran | 33.9 | 34.9 | 35.1 | 35.6 |
| every field, all ran | 16.8 | 16.8 | 16.9 | 16.1 |

A first version used the loop also for processes whose records could not be kept; that made "all ran" 16 to 35 % more expensive.
The loop makes opening more expensive: the verifier takes 34 ms of CPU time instead of 25, because it follows each round
(`fastproc doctor --timing`, medians of five in turn). A program that takes a single snapshot keeps no records and does not pay for that.

Before the fifth idea, half of the time of a kept record was waiting for about fourteen cache lines, and a sixth was reading every
sixteenth record all the same, which limits how long a wrong record could stay.

### Readers

Readers reuse what they made of a kept record. CPU time of a refresh with 4,000 processes, of which one in a hundred runs between two
snapshots, without and with kept records (`fastproc bench top --ran 100`, before the fifth idea, on a busy machine):

| reader | without, ms | with, ms |
| --- | ---: | ---: |
| `fastproc top`, twice a second | 7.55 | 6.59 |
| `fastproc top`, ten times a second | 6.67 | 5.39 |

The walk took 58 % of a refresh, other system calls 17 %, and the readers 25 %.

The readers before records were kept and with a walk that has the fifth idea (`fastproc bench top`, `scrape` and `attach`, each with
`--ran 100`, both versions in turn on an idle machine; CPU time in ms, medians of three runs, with 30,000 processes of one or two):

| reader | 4,000, before | now | times cheaper | 30,000, before | now | times cheaper |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| `fastproc top`, twice a second | 8.11 | 6.35 | 1.28 | 50.0 | 30.5 | 1.64 |
| `fastproc top`, ten times a second | 7.74 | 5.47 | 1.41 | 49.6 | 31.8 | 1.56 |
| a scrape of groups by name (`names`) | 8.40 | 5.25 | 1.60 | 49.0 | 34.8 | 1.41 |
| an answer of the service to a resident reader | 6.14 | 4.58 | 1.34 | 69.3 | 74.0 | 0.94 |

After that, `fastproc top` no longer makes a row of each process to order them by a number: a process whose record was kept has the rank that it
had, and only the others and the visible ones get rows. Both versions ran at the same time, beside 4,000 processes: the CPU time of a
refresh became 0.92 times as much ten times a second, and 0.95 to 0.97 twice a second. Beside 30,000 it became 0.92 to 0.94, and the time in
user mode 8.5 instead of 11.4 ms.

What remains (`perf record`, ten times a second): the walk is half of a refresh, other system calls a fifth, `fastproc` itself 30 %:
a third of that are passes over all processes, and the rest is drawing. Most of these system calls read the command lines of visible processes: those
that have run are shown first, and a process that has run may have changed its command line. With 30,000 processes 70 % of the time is spent in
the kernel. If `fastproc` itself took no time at all, a refresh would be 1.4 times cheaper than it is, and 2.2 to 2.4 times cheaper
than before records were kept.

The service's answer was measured again in four pairs at the same time, old and new, beside 4,100 processes on a busy machine
(`fastproc bench attach --ran 100`, only the cases of a resident reader, now `--cases reader`): 6.30 and 4.66 ms of CPU time, 1.35 times
cheaper (1.27 to 1.43). All cases wake the same processes, so one in a hundred had run in the figures above, too. The walk takes 71 % of
the service's time (`perf record`), the service and the C library 19 %, other system calls 10 %. About 6 % are passes over all processes,
most of the rest of the service's own part copies changed records. If its code took no time at all, an answer would be 1.23 times
cheaper than it is, and 1.7 times cheaper than before. So twice as cheap needs a cheaper walk.

Python's columns take the values of unchanged processes from the last table, if it has a row for each process and the value follows
from the record alone. A snapshot of twelve columns by `bpf` became 1.16 times cheaper: 3.37 ms of CPU time instead of 3.92 (both in turn,
4,000 processes of which one in a hundred ran, medians of 109 rounds on a busy machine). This was measured when the columns were filled
row by row. Now they are filled one after the other, which was not measured again.

A recording of 2,500 processes, none of which ran, did not become cheaper when the recorder skipped the texts of unchanged processes and
first compared whole records: 215 instead of 220 ms in user mode for 31 snapshots (medians of four in turn, which differ by a fifth). So it
does neither. The recorder's own functions take 2 % of the time, and copying and comparing records 3 % (`perf record`). The rest is
opening, the walk, and system calls for command lines, limits and open files.

A scrape with a group for each of 4,000 processes is a text of 9.2 MB. The walk took 12 % of its time, copying the text into the socket
11 %, other system calls 40 % (metrics of the machine, descriptors and wait channels), and the exporter itself 36 % (`perf record` of both
processes). Both processes together take 17.6 ms for this scrape instead of 22.8, since the one that serves sends the text from the memory
in which the other wrote it: its own part is 0.1 ms instead of 5.2.

A scrape against that of the version before records were kept (both in turn, beside the same 4,000 processes, of which one in a hundred
ran, medians of 40 rounds on a busy machine; above 1 today's is cheaper):

| groups | times cheaper |
|---|---:|
| by name, nothing else | 1.20 |
| a group for each process, without descriptors, wait channels and the machine's metrics | 1.06 |
| a group for each process | 0.94 |
| by default | 0.96 |

The walk saved 7 % of the time. But a tenth went into `pwrite`: the collecting process copied its text into the memory that the serving
process reads. The one process of before did not need that. Now the text is written into a mapping of that memory: 9.2 MB in pieces of
64 KiB took 2.26 ms instead of 4.20 (a program that only does that with cold caches, medians of 61). The scrape with the mapping was not
measured as a whole.

## How it is measured

`make bench` runs every benchmark once and writes the numbers to [performance.json](performance.json). `tools/bench/page.py` makes
this page, its plots and the tables in the README and in [exporter.md](exporter.md) from that file. All of them show one run.

- CPU time is that of the thread, in user mode and in the kernel. `bench scrape` counts the whole server.
- Figures are medians, with the least and the most. The cases of a benchmark are interleaved, each round starts with another case,
  and the first rounds are not counted.
- "Cold caches" is the first run of a case after the other cases have used the caches.
- `bench latency` wakes a thread every millisecond on the CPU where processes are read, once as a `SCHED_FIFO` thread of priority 80
  and once as an ordinary thread.
- A ratio compares medians of the same run; in `bench top` it is the median of each round's ratio. Where system calls cost more than
  on this machine, every ratio grows.
- The machine should be idle: the first line of this page shows its load before the run.
"""


def page(run: Row, reports: dict[str, Row]) -> str:
    parts = ["# What fastproc costs\n\n<!-- Written by `make bench` (tools/bench/page.py) from performance.json. -->\n"]
    parts.append(f"{run['machine']}.\n")
    parts += [f"![{name}](performance-{name}.svg)\n" for name in plots(reports)]
    for name, section in SECTIONS.items():
        if report := reports.get(name):
            parts.append(f"## {name}\n\n{section(report)}\n")
    return "\n".join([*parts, METHOD])


def with_sections(text: str, run: Row, reports: dict[str, Row]) -> str:
    """A page with each marked section written anew; a section that was not measured stays as it is."""
    sections: dict[str, Callable[[], str]] = {"machine": lambda: f"{run['machine']}."}
    sections |= {name: partial(section, reports[name]) for name, section in SECTIONS.items() if name in reports}
    if {bench for _, bench, *_ in SUMMARY} <= reports.keys():
        sections["summary"] = lambda: summary(reports)
    for name, section in sections.items():
        pattern = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- /bench -->)", re.DOTALL)
        text = pattern.sub(lambda match, body=section: f"{match[1]}{body()}\n{match[2]}", text)  # type: ignore[misc]
    return text


def main() -> int:
    run = json.loads(RUN.read_text())
    reports = {report["bench"]: report for report in run["reports"]}
    files = {ROOT / "docs/performance.md": page(run, reports)}
    files |= {ROOT / name: with_sections((ROOT / name).read_text(), run, reports) for name in ("README.md", "docs/exporter.md")}
    files |= {ROOT / f"docs/performance-{name}.svg": drawing for name, drawing in plots(reports).items()}
    if SCALE.exists():
        files[ROOT / "docs/scale.md"] = scale(json.loads(SCALE.read_text()))
    if "--check" not in sys.argv[1:]:
        for path, content in files.items():
            path.write_text(content)
        return 0
    stale = [path for path, content in files.items() if not path.exists() or path.read_text() != content]
    for path in stale:
        print(
            f"{path.relative_to(ROOT)} is not what docs/performance.json and docs/scale.json say: tools/bench/page.py",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
