"""``python -m fastproc``: a small table of the processes."""

from __future__ import annotations

import argparse
import os
import sys

import fastproc


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fastproc", description="Print the processes as a small table.")
    parser.add_argument(
        "fields", nargs="?", default=",".join(fastproc.DEFAULT_FIELDS), help="show these fields, separated by commas"
    )
    parser.add_argument("--sort", default="-pcpu", help="sort by this field; a minus sign puts the largest value first")
    parser.add_argument("--filter", help="show only rows that match an expression, as in 'rss > 100M'")
    parser.add_argument("--top", type=int, default=20, help="show at most this many rows")
    parser.add_argument("--source", choices=["service", "bpf", "bpf-iter", "procfs"], help="read from this source")
    parser.add_argument("--interval", type=float, help="compute shares and rates over this many seconds")
    arguments = parser.parse_args()
    try:
        collector = fastproc.Collector(
            arguments.fields,
            source=arguments.source,
            filter=arguments.filter,
            sort=arguments.sort,
            top=arguments.top,
        )
        table = collector.snapshot() if arguments.interval is None else collector.difference(arguments.interval)
    except fastproc.Error as error:
        print(f"fastproc: {error}", file=sys.stderr)
        if error.__cause__ is not None:
            print(f"  because: {error.__cause__}", file=sys.stderr)
        return 2
    except (OverflowError, ValueError) as error:
        parser.error(str(error))
    try:
        print(table, flush=True)
    except BrokenPipeError:
        # The reader, such as head(1), has closed the pipe; the interpreter must not write at its exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
