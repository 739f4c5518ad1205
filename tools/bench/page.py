#!/usr/bin/env python3
"""Writes the tables and plots of benchmarks into pages: what stands between `<!-- bench NAME -->` and `<!-- /bench -->`.

The figures are those of one run of the benchmarks (docs/dev/performance.json), and one of `fastproc bench scale`
(docs/dev/scale.json).

tools/bench/page.py                    write them
tools/bench/page.py --check            fail if they are not what docs/dev/performance.json and docs/dev/scale.json say
tools/bench/page.py --measure PROGRAM  run the benchmarks of `fastproc` first, the program at this path
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "docs/dev/performance.json"
SCALE = ROOT / "docs/dev/scale.json"
PAGES = [ROOT / name for name in ("README.md", "docs/performance.md", "docs/dev/scale.md")]
Row = dict[str, Any]

SCAN = {
    "proc-3files": "open, read and close `stat`, `statm` and `status`",
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
    "gives-way": "fastproc, every field, in a thread that gives way, as those of `top`, `serve`, `record` and the service do",
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


def measure(program: str) -> None:
    """Runs each benchmark as a process of its own, like a user, and writes their reports, one on each line."""
    model = re.search(r"^model name\t*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    machine = (
        f"Linux {os.uname().release} ({os.uname().machine}), {os.cpu_count()} CPUs ({model[1] if model else 'processor not named'}), "
        f"{memory:.0f} GiB of memory, a load of {os.getloadavg()[0]:.1f} before"
    )
    reports = []
    for name in SECTIONS:
        print(f"fastproc bench {name}", file=sys.stderr)
        done = subprocess.run([program, "bench", name, "--json"], check=True, stdout=subprocess.PIPE, text=True)
        reports.append(done.stdout.strip())
    joined = ",\n".join(reports)
    RUN.write_text(f'{{"machine":{json.dumps(machine)},"reports":[\n{joined}\n]}}\n')


def short(number: float | None) -> str:
    """Three digits."""
    if number is None:
        return "–"
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def table(rows: list[dict[str, str]]) -> str:
    """In Markdown, each row by its headings: the first column is text, the others are numbers."""
    heads = list(rows[0])
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *[list(row.values()) for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def median(row: Row, key: str) -> float:
    return float(row[key]["median"])


def spread(row: Row, key: str) -> str:
    return f"{short(row[key]['min'])} – {short(row[key]['max'])}"


def rows_of(report: Row, names: dict[str, str], keep: Callable[[Row], bool] = lambda _: True) -> list[tuple[str, Row]]:
    """The rows with a name for people, in the order of the names."""
    rows = [row for row in report["rows"] if keep(row)]
    return [(name, row) for case, name in names.items() for row in rows if row["case"] == case]


def scan(report: Row) -> str:
    us = "cpu_us_per_process"
    rows = [
        {
            "reader": name,
            "us per process": short(median(row, us)),
            "least – most": spread(row, us),
            "times cheaper": short(row["ratio_vs_proc_3files"]),
            "times cheaper, cold caches": short(row["cold_ratio_vs_proc_3files"]),
        }
        for name, row in rows_of(report, SCAN)
    ]
    return f"CPU time of one snapshot of {report['processes']:,} processes (`fastproc bench scan`):\n\n{table(rows)}"


def latency(report: Row) -> str:
    times = {"p50 us": "p50_us", "p99 us": "p99_us", "p99.9 us": "p99_9_us", "max us": "max_us"}
    rows = [
        {"load on the same CPU": name, "class of the thread": "FIFO 80" if row["class"] == "fifo" else "other"}
        | {head: short(row[key]) for head, key in times.items()}
        for name, row in rows_of(report, LOADS)
    ]
    return (
        f"Wake-up latency of a thread while {report['processes']:,} processes are read on its CPU, "
        f"{report['looks_per_second']} times per second by fastproc (`fastproc bench latency`). "
        f"The thread wakes every millisecond, as in cyclictest:\n\n{table(rows)}"
    )


def scrape(report: Row) -> str:
    rows = [
        {
            "exporter": name,
            "CPU ms per scrape": short(median(row, "cpu_ms")),
            "least – most": spread(row, "cpu_ms"),
            "times cheaper than the other exporter": short(row.get("ratio_vs_beside")),
            "times cheaper than reading three files per process": short(row["ratio_vs_proc_3files"]),
            "resident MB": f"{row['rss_bytes'] / 1e6:.0f}" if row.get("rss_bytes") else "–",
        }
        for name, row in rows_of(report, SCRAPE)
    ]
    return (
        f"CPU time of one Prometheus scrape of {report['processes']:,} processes, response included (`fastproc bench scrape`). The other "
        f"exporter is node_exporter for machine metrics alone, and process-exporter otherwise:\n\n{table(rows)}"
    )


ATTACH = {
    "ps-aux": "`ps aux`",
    "ps": "`fastproc ps` without the service",
    "service-aux": "`fastproc ps aux` with the service",
    "ps-aux-substitute": "`ps aux` with the service and the [substitute library](run.md)",
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
        line = {"command": name}
        for size in sizes:
            row = found.get((case, size))
            cell = f"{short(median(row, 'cpu_ms'))} ({spread(row, 'cpu_ms')})" if row else "–"
            line[f"{size:,} processes"] = cell
        rows.append(line)
    return (
        f"CPU ms of one command, with the service's share (least – most; `fastproc bench attach`):\n\n{table(rows)}\n\n"
        f"{report['clients']} readers that take ten snapshots per second use {short(report['clients_cpu_percent'])} % of one CPU "
        f"in total, at {sizes[-1]:,} processes."
    )


def top(report: Row) -> str:
    rows = [
        {
            "screen": f"`{row['case']}`",
            "processes": f"{row['processes']:,}",
            "interval, s": short(row["interval_seconds"]),
            "CPU ms per refresh": short(median(row, "cpu_ms_per_refresh")),
            "least – most": spread(row, "cpu_ms_per_refresh"),
            "% of one CPU": short(row["cpu_percent_of_a_core"]),
            "times the cost of fastproc": short(row["times_fastproc"]),
            "resident MB": f"{row['resident_mb']:.0f}",
        }
        for row in report["rows"]
    ]
    keys = [
        f"At {key['processes']:,} processes `fastproc top` responds to a key in {short(key['ms_median'])} ms (median), "
        f"{short(key['ms_p99'])} ms (p99)."
        for key in report["keys"]
    ]
    title = f"CPU time of a screen of {report['columns']}x{report['lines']} (`fastproc bench top`):"
    return "\n\n".join([title, table(rows), *keys])


def exits(report: Row) -> str:
    rows = [
        {"exits": row["case"], "CPU us": short(median(row, "cpu_us")), "least – most": spread(row, "cpu_us")}
        for row in report["rows"]
    ]
    parts = [
        "CPU time of a fork and an exit, with and without recording of exits (`fastproc bench exits`):",
        table(rows),
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


def scale(report: Row) -> str:
    rows = report["rows"]

    def line(name: str, cell: Callable[[Row], str]) -> dict[str, str]:
        return {"": name} | {f"{row['processes']:,} processes": cell(row) for row in rows}

    def us(key: str) -> Callable[[Row], str]:
        return lambda row: short(median(row, key))

    def times(key: str) -> Callable[[Row], str]:
        return lambda row: short(median(row, key) / median(rows[0], key))

    def each(key: str) -> Callable[[Row], str]:
        return lambda row: short((median(row, key) if isinstance(row[key], dict) else row[key]) * 1e3 / row["processes"])

    lines = [
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
        line("… its resident memory, MB", lambda row: short(row.get("service_mb"))),
        line("a refresh of `fastproc top`, us per process", each("top_ms")),
        line("… its resident memory, MB", lambda row: short(row["top_mb"])),
        line("a scrape of `fastproc serve`, us per process", each("scrape_ms")),
        line("… its resident memory, MB", lambda row: short(row["serve_mb"])),
        line("values compared by `fastproc verify`, all right", lambda row: f"{row['verified']:,}"),
    ]
    threads = [
        {
            "threads": f"{row['count']:,}",
            "processes that have them": f"{row['processes']:,}",
            "us per thread, listed": short(median(row, "us")),
            "… cold": short(median(row, "cold_us")),
            "not listed, but added up": short(median(row, "unlisted_us")),
        }
        for row in report["threads"]
    ]
    about = (
        f"Linux {report['kernel']}, {report['cpus']} CPUs. An idle process takes about "
        f"{report['bytes_of_process'] / 1e3:.0f} kB of kernel memory."
    )
    return "\n\n".join([about, table(lines), table(threads)])


# The README's table: a task, the bench, the usual way and its case, fastproc's and its case. Ratios are those of the bench's table.
SUMMARY = [
    ("`stat`, `statm`, `status` of every process", "scan", "open, read, close", "proc-3files", "BPF", "bpf-full"),
    ("… if all have run since the last snapshot", "scan", "open, read, close", "proc-3files", "BPF", "bpf-full-all-ran"),
    ("… on kernels from 5.8, and in pid namespaces", "scan", "open, read, close", "proc-3files", "BPF", "bpf-iter-full"),
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
        line = {
            "CPU time of": task,
            "usual, ms": f"{short(median(before, key) * scale)} ({usual})",
            "fastproc, ms": f"{short(median(after, key) * scale)} ({ours})",
            "times cheaper": short(ratio),
            "measured by": f"`fastproc bench {bench}`",
        }
        rows.append(line)
    return table(rows)


def headline(report: Row) -> str:
    """The README's one number."""
    found = {row["case"]: row for row in report["rows"]}
    us = [median(found[case], "cpu_us_per_process") for case in ("proc-3files", "bpf-full")]
    proc, full = (short(each * report["processes"] / 1000) for each in us)
    times, ran = (short(found[case]["ratio_vs_proc_3files"]) for case in ("bpf-full", "bpf-full-all-ran"))
    return (
        f"A snapshot of {report['processes']:,} processes takes **{times} times less CPU time** than reading `stat`, `statm` and `status` of "
        f"each: {full} ms instead of {proc} ms. If every process has run since the last snapshot, it takes {ran} times less."
    )


def wakeup(report: Row) -> str:
    """What the README's limits say about latency."""
    found = {(row["case"], row["class"]): f"{short(row['p99_us'] / 1000)} ms" for row in report["rows"]}
    others, fifo = ([found[case, kind] for case in ("idle", "gives-way", "bpf-full")] for kind in ("other", "fifo"))
    return (
        f"- A walk delays ordinary threads on its CPU. At {report['looks_per_second']} walks a second over {report['processes']:,} processes, "
        f"p99 of their wake-up latency is {others[1]} instead of {others[0]}; that of a real-time thread is {fifo[1]} instead of {fifo[0]}. "
        f"This is so because `top`, `serve`, `record` and the service give way between pieces of a walk; a reader of the library that does "
        f"not call `give_way` causes {others[2]}."
    )


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


def with_sections(text: str, sections: dict[str, Callable[[], str]]) -> str:
    """A page with each marked section written anew; a section that was not measured stays as it is."""
    for name, section in sections.items():
        pattern = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- /bench -->)", re.DOTALL)
        text = pattern.sub(lambda match, body=section: f"{match[1]}{body()}\n{match[2]}", text)  # type: ignore[misc]
    return text


def main() -> int:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    run = json.loads(RUN.read_text())
    reports = {report["bench"]: report for report in run["reports"]}
    sections: dict[str, Callable[[], str]] = {"machine": lambda: f"{run['machine']}."}
    sections |= {name: partial(section, reports[name]) for name, section in SECTIONS.items() if name in reports}
    for name, bench, sentence in (("headline", "scan", headline), ("wakeup", "latency", wakeup)):
        if bench in reports:
            sections[name] = partial(sentence, reports[bench])
    if {bench for _, bench, *_ in SUMMARY} <= reports.keys():
        sections["summary"] = lambda: summary(reports)
    if SCALE.exists():
        sections["scale"] = partial(scale, json.loads(SCALE.read_text()))
    files = {path: with_sections(path.read_text(), sections) for path in PAGES}
    files |= {ROOT / f"docs/images/performance-{name}.svg": drawing for name, drawing in plots(reports).items()}
    if "--check" not in sys.argv[1:]:
        for path, content in files.items():
            path.write_text(content)
        return 0
    stale = [path for path, content in files.items() if not path.exists() or path.read_text() != content]
    for path in stale:
        print(
            f"{path.relative_to(ROOT)} is not what docs/dev/performance.json and docs/dev/scale.json say: tools/bench/page.py",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
