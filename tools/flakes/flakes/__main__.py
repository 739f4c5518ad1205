"""Runs a command while the machine is loaded: python3 -m flakes LOAD COMMAND [ARGUMENT ...]. See tools/flakes/README.md."""

from __future__ import annotations

import signal
import subprocess
import sys

from .load import Load


def interrupted(number: int, _frame: object) -> None:
    """Handles a signal as an interrupt, so that the load ends."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    """Runs the command, and returns its exit status."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted)
    load = Load(int(sys.argv[1]))
    try:
        return subprocess.run(sys.argv[2:], check=False).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        load.end()


if __name__ == "__main__":
    sys.exit(main())
