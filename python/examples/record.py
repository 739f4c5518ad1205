"""Records what every process uses for a day, in Parquet files, which all data frames can read.

python record.py FOLDER [--interval 10] [--hours 24] [--filter CONDITION]

It needs fastproc and pyarrow. A file has ten minutes, and appears when they are over. Ctrl-C and SIGTERM end it early
without losing data. Then, for example:

    day = pandas.read_parquet(FOLDER)
    day.groupby("comm")["pcpu"].mean().nlargest(10)
    day[day["pid"] == 1].set_index("read_at")["rss_bytes"].plot()
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet

import fastproc

#: `lstart` distinguishes a process from a later one with the same id; `read_at` is when its record was read.
FIELDS = "read_at,pid,lstart,comm,user,state,pcpu,rss,majflt/s,read/s,write/s,cgroup"
ENDING = {signal.SIGINT, signal.SIGTERM}


def write(folder: Path, tables: list[fastproc.Table]) -> None:
    """One file of several tables, named by the time of the first. It never appears incomplete."""
    file = folder / f"{tables[0].time:%Y-%m-%dT%H-%M-%S.%f}.parquet"
    unfinished = file.with_suffix(".unfinished")
    rows = pyarrow.concat_tables([table.to_arrow() for table in tables])
    pyarrow.parquet.write_table(rows, unfinished, compression="zstd")
    unfinished.rename(file)


def record(collector: fastproc.Collector, folder: Path, interval: float, seconds: float, each_file: float) -> None:
    """A table every ``interval`` seconds until this time is over, or a signal comes."""
    end = time.monotonic() + seconds
    tables: list[fastproc.Table] = []
    collector.mark()
    due = time.monotonic()
    is_over = False
    while not is_over:
        # Skip missed intervals.
        due = max(due + interval, time.monotonic())
        is_over = signal.sigtimedwait(ENDING, max(0.0, due - time.monotonic())) is not None or due >= end
        tables.append(collector.since_mark())
        if is_over or (tables[-1].time - tables[0].time).total_seconds() >= each_file:
            write(folder, tables)
            tables.clear()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--interval", type=float, default=10, help="seconds from one table to the next")
    parser.add_argument("--hours", type=float, default=24, help="how long")
    parser.add_argument("--filter", help="which processes, as in 'rss > 10M'")
    parser.add_argument("--minutes-a-file", type=float, default=10, help="of what one file has")
    arguments = parser.parse_args()
    if not arguments.interval > 0:
        parser.error("an interval is longer than 0 s")
    # Signals stay pending until sigtimedwait() receives them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        collector = fastproc.Collector(FIELDS, filter=arguments.filter)
        record(collector, arguments.folder, arguments.interval, 3600 * arguments.hours, 60 * arguments.minutes_a_file)
    except (fastproc.Error, OSError) as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
