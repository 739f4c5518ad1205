"""Reads all processes with psutil and with fastproc, alternating in one run.

Prints a JSON object: for each case its CPU times in seconds, one per round. ``fastproc bench python`` starts the
processes to read, and a service.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import fastproc
from fastproc import psutil as shape

if TYPE_CHECKING:
    from collections.abc import Callable

#: The attributes that Glances 4.5 requests at each refresh.
ATTRIBUTES = ["cpu_percent", "cpu_times", "memory_percent", "name", "status", "num_threads", "io_counters", "memory_info"]
ATTRIBUTES += ["nice", "pid", "gids", "cpu_num"]
#: The twelve columns with the same values.
FIELDS = [
    "utime",
    "stime",
    "rss",
    "comm",
    "state",
    "num_threads",
    "read_bytes",
    "write_bytes",
    "nice",
    "pid",
    "egid",
    "processor",
]


def cpu_time() -> float:
    """CPU time of this process, and of the service."""
    service = os.environ.get("FASTPROC_SERVICE_PID")
    ns = 0
    for thread in Path("/proc", service, "task").glob("*/schedstat") if service else ():
        ns += int(thread.read_text().split()[0])
    return time.process_time() + ns / 1e9


def table_bytes() -> int:
    """Memory of a table: the growth of this process by a hundred of them, for each."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    collector = fastproc.Collector(FIELDS)
    kept = [collector.snapshot() for _ in range(5)]
    before = resident()
    kept.extend(collector.snapshot() for _ in range(100))
    return (resident() - before) // 100


def import_time() -> float:
    program = "import time; start = time.perf_counter(); import fastproc; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)


def glances_plugin() -> Callable[[], Any] | None:
    """A refresh of Glances' processes, with the current psutil."""
    try:
        from glances.processes import glances_processes
    except ImportError:
        return None
    return glances_processes.update  # type: ignore[no-any-return]


def with_shape(work: Callable[[], Any]) -> Callable[[], Any]:
    """A refresh with fastproc.psutil in place of psutil."""
    originals = {"Process": psutil.Process, "Popen": psutil.Popen, "process_iter": psutil.process_iter}

    def run() -> Any:
        shape.install()
        try:
            return work()
        finally:
            for name, original in originals.items():
                setattr(psutil, name, original)

    return run


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    cases: dict[str, Callable[[], Any]] = {
        "psutil": lambda: [process.info for process in psutil.process_iter(ATTRIBUTES)],
        "fastproc.psutil": lambda: [process.info for process in shape.process_iter(ATTRIBUTES)],
    }
    columns = {}
    for source in ("service", "bpf", "procfs"):
        try:
            columns[source] = fastproc.Collector(FIELDS, source=source)
        except fastproc.Error as error:
            print(f"without {source}: {error}", file=sys.stderr)
    for source, collector in columns.items():
        cases[f"columns, {source}"] = collector.snapshot
    best = next(iter(columns.values()))
    try:
        import polars

        cases["into polars"] = lambda: polars.DataFrame(best.snapshot())
    except ImportError:
        pass
    try:
        import pandas

        cases["into pandas"] = lambda: pandas.DataFrame.from_arrow(best.snapshot())
    except ImportError:
        pass
    refresh = glances_plugin()
    if refresh is not None:
        cases["Glances"] = refresh
        cases["Glances with fastproc.psutil"] = with_shape(refresh)
    times: dict[str, list[float]] = {name: [] for name in cases}
    names = list(cases)
    for nth in range(-2, rounds):
        # Each round begins with another case, and the first rounds are not counted.
        for name in names[nth % len(names) :] + names[: nth % len(names)]:
            start = cpu_time()
            cases[name]()
            if nth >= 0:
                times[name].append(cpu_time() - start)
    table = best.snapshot()
    result = {
        "processes": len(table),
        "source": table.source,
        "table_bytes": table_bytes(),
        "import": [import_time() for _ in range(5)],
        "cases": times,
    }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
