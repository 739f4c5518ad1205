"""Asks the question of docs/history.md about a fleet: python fleet.py --programs target/release [--hosts 50 …]

The hosts are made by an example of the crate fastproc-history, with the writer of the recorder. It prints one JSON object: how
long DuckDB took, after the files are in memory, and whether its sums are those of ``fastproc ps --from --to`` of each host.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb

PAGE = Path(__file__).parents[2] / "docs/history.md"
BUCKET = "s3://histories"
WINDOW = ("2026-11-30T03:00:00Z", "2026-11-30T03:20:00Z")


def make(programs: Path, folder: Path, *numbers: int) -> None:
    """Hosts, processes, the first hour, hours, and how many hosts differ."""
    subprocess.run([programs / "examples/fleet", folder, *map(str, numbers)], check=True)


def ask(folder: Path, host: str | None = None) -> dict[str, float]:
    """Seconds of CPU time by command, over all hosts or of one."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Fleets")[1]
    [statement] = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    statement = statement.replace(BUCKET, str(folder))
    if host is not None:
        statement = statement.replace("hour = '03'", f"hour = '03' and host = '{host}'").replace("limit 20", "")
    return dict(duckdb.connect().execute(statement).fetchall())


def summed(programs: Path, folder: Path, host: str) -> dict[str, float]:
    """The same by ``fastproc ps``."""
    window = ["--from", WINDOW[0], "--to", WINDOW[1], "--history", folder, "--host", host]
    command = [programs / "fastproc", "ps", *window, "--json", "--fields", "comm,time"]
    output = subprocess.run(command, check=True, capture_output=True).stdout
    sums: Counter[str] = Counter()
    for row in json.loads(output)["processes"]:
        sums[row["comm"]] += row["time_ns"]
    return {comm: ns / 1e9 for comm, ns in sums.items()}


def differences(programs: Path, folder: Path) -> list[str]:
    """Hosts whose sums differ."""
    hosts = sorted(path.name.removeprefix("host=") for path in folder.iterdir())
    return [host for host in hosts if ask(folder, host) != summed(programs, folder, host)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--distinct", type=int, default=5, help="the files of the other hosts are links to those of these")
    parser.add_argument("--processes", type=int, default=300)
    parser.add_argument("--hours", type=int, default=24)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        first = 0 if arguments.hours > 3 else 3  # the question is about the hour from 03:00
        make(arguments.programs, folder, arguments.hosts, arguments.processes, first, arguments.hours, arguments.distinct)
        took = []
        for _ in range(6):
            cpu, wall = time.process_time(), time.perf_counter()
            commands = ask(folder)
            took.append((time.perf_counter() - wall, time.process_time() - cpu))
        files = list(folder.glob("host=*/date=*/hour=*/*.parquet"))
        wall, cpu = min(took[1:])
        report = {
            "hosts": arguments.hosts,
            "processes": arguments.processes,
            "hours": arguments.hours,
            "files": len(files),
            "mb_of_a_host": sum(file.stat().st_size for file in files) / arguments.hosts / 1e6,
            "cpus": os.cpu_count(),
            "first_seconds": took[0][0],
            "seconds": wall,
            "cpu_seconds": cpu,
            "most": next(iter(commands.items())),
            "hosts_that_differ": differences(arguments.programs, folder),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
