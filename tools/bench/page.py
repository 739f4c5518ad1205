#!/usr/bin/env python3
"""Writes docs/performance.md, its plots, and the tables of README.md, from the JSON of one run of `fastproc bench all`.

tools/bench/page.py          write them
tools/bench/page.py --check  fail if they are not what docs/performance.json says
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from math import log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "docs/performance.json"

Row = dict[str, Any]

SCAN = {
    "proc-3files": "open, read, close of stat, statm, status",
    "proc-best": "the best reader without BPF: kept descriptors and batched taskstats",
    "procfs": "fastproc, without privileges (`procfs`)",
    "bpf-full": "fastproc, every field of the three files (`bpf-full`)",
    "bpf-full-all-ran": "… if every process has run since the last look (`bpf-full-all-ran`)",
    "bpf-lean": "… the fields of a `top` (`bpf-lean`)",
    "bpf-iter-full": "… by the iterator of older kernels (`bpf-iter-full`)",
}
TEXT = {
    "kernel-open": "open, read and close",
    "kernel-pread": "pread of kept descriptors",
    "core-fmt": "`core::fmt` from a record",
    "seqtext": "seqtext from a record",
}
LOADS = {
    "idle": "nothing",
    "proc-stat": "`cat /proc/[0-9]*/stat`, again and again",
    "bpf-lean": "a snapshot of the fields of a `top`, 100 times a second",
    "bpf-full": "… of every field of the three files",
    "bpf-iter-full": "… by the iterator of older kernels",
}
SCRAPE = {
    "default": "grouped by name",
    "default-gzip": "… in gzip",
    "group-each": "a group for each process",
    "group-each-gzip": "… in gzip",
    "names": "grouped by name, without descriptors, wait channels and the machine",
    "descriptors": "… with descriptors",
    "host": "the machine alone",
    "process-exporter": "process-exporter, grouped by name, without smaps",
    "node_exporter": "node_exporter, the same collectors",
}


def short(number: float | None) -> str:
    """Three digits."""
    if number is None:
        return "–"
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """In Markdown: the first column is text, the others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
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
        [
            name,
            short(median(row, us)),
            spread(row, us),
            short(row["ratio_vs_proc_3files"]),
            short(row["cold_ratio_vs_proc_3files"]),
        ]
        for name, row in rows_of(report, SCAN)
    ]
    heads = ["reader", "us a process", "least – most", "times cheaper", "straight after other work"]
    return f"One look at {report['processes']:,} processes (`fastproc bench scan`), CPU time:\n\n{table(heads, rows)}"


def latency(report: Row) -> str:
    rows = []
    for name, row in rows_of(report, LOADS):
        of_class = "FIFO 80" if row["class"] == "fifo" else "other"
        rows.append([name, of_class, *[short(row[key]) for key in ("p50_us", "p99_us", "p99_9_us", "max_us")]])
    heads = ["beside, on the same CPU", "class", "p50 us", "p99 us", "p99.9 us", "max us"]
    return (
        f"How late a thread wakes while {report['processes']:,} processes are read on its CPU (`fastproc bench latency`; every "
        f"millisecond, as cyclictest does):\n\n{table(heads, rows)}"
    )


def text(report: Row) -> str:
    ns = "ns_per_text"
    rows = [
        [name, short(median(row, ns)), spread(row, ns), short(row["ratio_vs_kernel_pread"])]
        for name, row in rows_of(report, TEXT, lambda row: bool(row["file"] == "all"))
    ]
    heads = ["the three texts of a process", "ns", "least – most", "times cheaper than pread"]
    return f"Text from records (`fastproc bench text`):\n\n{table(heads, rows)}"


def decimal(report: Row) -> str:
    ns = "ns_per_number"
    inputs = {
        "real": "numbers of a real /proc file",
        "digits-3": "3 digits",
        "digits-10": "10 digits",
        "digits-20": "20 digits",
    }
    found = {(row["case"], row["input"]): row for row in report["rows"]}
    inputs = {key: name for key, name in inputs.items() if ("seqtext", key) in found}
    cases = dict.fromkeys(row["case"] for row in report["rows"])
    rows = [
        [f"`{case}`", *[short(median(found[case, key], ns)) if (case, key) in found else "–" for key in inputs]]
        for case in cases
    ]
    return f"Decimal conversion, ns a number (`fastproc bench decimal`):\n\n{table(['method', *inputs.values()], rows)}"


def stat(report: Row) -> str:
    us = "cpu_us_per_read"
    rows = [
        [f"`{row['case']}`", row["file"], short(median(row, us)), spread(row, us), short(row["ratio_vs_kernel_open"])]
        for row in report["rows"]
    ]
    heads = ["reader", "file", "us a read", "least – most", "times cheaper than open, read and close"]
    return f"The machine's counters (`fastproc bench stat`), CPU time:\n\n{table(heads, rows)}"


def scrape(report: Row) -> str:
    rows = [
        [
            name,
            short(median(row, "cpu_ms")),
            spread(row, "cpu_ms"),
            short(row["ratio_vs_proc_3files"]),
            f"{row['rss_bytes'] / 1e6:.0f}" if row.get("rss_bytes") else "–",
        ]
        for name, row in rows_of(report, SCRAPE)
    ]
    heads = [
        "a scrape, answer included",
        "CPU ms",
        "least – most",
        "times cheaper than three files of each process",
        "resident MB",
    ]
    return f"A scrape by Prometheus of {report['processes']:,} processes (`fastproc bench scrape`):\n\n{table(heads, rows)}"


ATTACH = {
    "ps-aux": "`ps aux`",
    "ps": "`fastproc ps`, without a service",
    "service-aux": "`fastproc ps aux`, by the service",
    "ps-columns": "`ps -eo pid,s,rss,time,comm`",
    "ps-columns-nobody": "… as nobody",
    "service": "the same columns by `fastproc ps` and the service",
    "service-nobody": "… as nobody",
    "reader": "a reader that stays, by the service",
    "reader-young": "… content with the last snapshot",
}


def attach(report: Row) -> str:
    sizes = list(dict.fromkeys(row["processes"] for row in report["rows"]))
    found = {(row["case"], row["processes"]): row for row in report["rows"]}
    rows = []
    for case, name in ATTACH.items():
        ms = [found.get((case, size)) for size in sizes]
        cells = [f"{short(median(row, 'cpu_ms'))} ({spread(row, 'cpu_ms')})" if row else "–" for row in ms]
        rows.append([name, *cells])
    heads = ["CPU ms, reader and service together (least – most)", *[f"{size:,} processes" for size in sizes]]
    return (
        f"One look (`fastproc bench attach`):\n\n{table(heads, rows)}\n\n"
        f"{report['clients']} readers that look ten times a second take {short(report['clients_cpu_percent'])} % of a CPU in all, "
        f"at {sizes[-1]:,} processes."
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
        "seconds",
        "CPU ms a refresh",
        "least – most",
        "% of a core",
        "times fastproc",
        "resident MB",
    ]
    keys = [
        f"At {key['processes']:,} processes a key is answered after {short(key['ms_median'])} ms, of 100 keys 99 within "
        f"{short(key['ms_p99'])} ms."
        for key in report["keys"]
    ]
    title = f"A screen of {report['columns']}x{report['lines']} (`fastproc bench top`), CPU time:"
    return "\n\n".join([title, table(heads, rows), *keys])


def exits(report: Row) -> str:
    rows = [[row["case"], short(median(row, "cpu_us")), spread(row, "cpu_us")] for row in report["rows"]]
    parts = [
        "Every process that ends is recorded (`fastproc bench exits`):",
        table(["a fork and its exit", "CPU us", "least – most"], rows),
        f"Recording makes it {report['more_percent']:.1f} % dearer.",
    ]
    if storm := report["storm"]:
        rate = storm["ended"] / storm["seconds"]
        parts.append(
            f"A storm of {rate:,.0f} exits a second: {storm['recorded']:,} of {storm['ended']:,} recorded, {storm['lost']} lost."
        )
    if balance := report["balance"]:
        alone = balance["processes"] / balance["kernel"] * 100
        both = (balance["processes"] + balance["exits_seconds"]) / balance["kernel"] * 100
        parts.append(
            f"Of the CPU time that /proc/stat counted in {balance['seconds']} s of short-lived processes, those that two looks a second "
            f"apart have both seen had {alone:.2f} %, and with {balance['exits']:,} exits {both:.2f} %."
        )
    return "\n\n".join(parts)


SECTIONS: dict[str, Callable[[Row], str]] = {
    "scan": scan,
    "latency": latency,
    "text": text,
    "decimal": decimal,
    "stat": stat,
    "exits": exits,
    "top": top,
    "scrape": scrape,
    "attach": attach,
}


def plot(title: str, unit: str, bars: list[tuple[str, float]]) -> str:
    """Bars from left to right on a logarithmic scale, in colours that light and dark pages bear."""
    bars = [(name.replace("`", ""), value) for name, value in bars if value > 0]
    left, width, height = 330, 420, 26
    least = min(value for _, value in bars) / 2
    most = max(value for _, value in bars)

    def length(value: float) -> float:
        return width * log(value / least) / log(most / least)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 90} {50 + height * len(bars)}" role="img">',
        f"<title>{title}</title>",
        "<style>text{font:13px sans-serif;fill:#57606a}.t{font-weight:bold}rect{fill:#8c959f}.ours{fill:#2f81f7}"
        "@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>",
        f'<text class="t" x="8" y="20">{title} ({unit}, logarithmic)</text>',
    ]
    for at, (name, value) in enumerate(bars):
        y = 36 + at * height
        ours = ' class="ours"' if "fastproc" in name or "seqtext" in name or "snapshot" in name or name.startswith("…") else ""
        label = name if len(name) < 46 else f"{name[:44]}…"
        lines.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{label}</text>')
        lines.append(f'<rect{ours} x="{left}" y="{y}" width="{length(value):.1f}" height="{height - 8}"/>')
        lines.append(f'<text x="{left + length(value) + 6:.1f}" y="{y + 14}">{short(value)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def plots(reports: dict[str, Row]) -> dict[str, str]:
    drawn = {}
    if report := reports.get("scan"):
        bars = [(name.split(" (")[0], median(row, "cpu_us_per_process")) for name, row in rows_of(report, SCAN)]
        drawn["scan"] = plot("One look at a process", "us of CPU time", bars)
    if report := reports.get("latency"):
        fifo = rows_of(report, LOADS, lambda row: bool(row["class"] == "fifo"))
        drawn["latency"] = plot("How late a real-time thread wakes, p99", "us", [(name, row["p99_us"]) for name, row in fifo])
    if report := reports.get("text"):
        rows = rows_of(report, TEXT, lambda row: bool(row["file"] == "all"))
        drawn["text"] = plot("The three texts of a process", "ns", [(name, median(row, "ns_per_text")) for name, row in rows])
    return drawn


METHOD = """\
## How it is measured

`make bench` runs every benchmark once, writes the numbers to [performance.json](performance.json), and this page, its plots and the
tables of the README from them. Nothing on this page is from another run.

- CPU time of the thread, in the kernel and outside of it; `bench scrape`: of the whole server.
- Medians, with the least and the most. All cases of a benchmark are interleaved, each round begins with another one, and the first
  rounds are not counted.
- "Straight after other work": the first run of a case, when the others have had the caches to themselves.
- `bench latency` wakes every millisecond on the CPU where the processes are read, as a `SCHED_FIFO` thread of priority 80 and as an
  ordinary one.
- Each ratio is of medians of the same run. The kernel's own files are cheap on some machines; where system calls cost more, every
  ratio grows.
- An idle machine: the load before the run stands above.
"""


def page(run: Row, reports: dict[str, Row]) -> str:
    parts = ["# What fastproc costs\n\n<!-- Written by `make bench` (tools/bench/page.py) from performance.json. -->\n"]
    parts.append(f"{run['machine']}.\n")
    parts += [f"![{name}](performance-{name}.svg)\n" for name in plots(reports)]
    for name, section in SECTIONS.items():
        if report := reports.get(name):
            parts.append(f"## {name}\n\n{section(report)}\n")
    return "\n".join([*parts, METHOD])


def with_sections(readme: str, run: Row, reports: dict[str, Row]) -> str:
    """The README with each marked section written anew; one that was not measured stays as it is."""
    for name, section in {"machine": lambda _: f"{run['machine']}.", **SECTIONS}.items():
        if name != "machine" and name not in reports:
            continue
        pattern = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- /bench -->)", re.DOTALL)
        body = section(reports.get(name, {}))
        readme = pattern.sub(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", readme)  # type: ignore[misc]
    return readme


def main() -> int:
    run = json.loads(RUN.read_text())
    reports = {report["bench"]: report for report in run["reports"]}
    readme = ROOT / "README.md"
    files = {ROOT / "docs/performance.md": page(run, reports), readme: with_sections(readme.read_text(), run, reports)}
    files |= {ROOT / f"docs/performance-{name}.svg": drawing for name, drawing in plots(reports).items()}
    if "--check" not in sys.argv[1:]:
        for path, content in files.items():
            path.write_text(content)
        return 0
    stale = [path for path, content in files.items() if not path.exists() or path.read_text() != content]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what docs/performance.json says: tools/bench/page.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
