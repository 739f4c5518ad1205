"""Runs psutil's own test suite against ``fastproc.psutil`` after ``install()``.

python psutil_suite.py SOURCE [OPTION of pytest...], where SOURCE is psutil's unpacked source distribution. What passes
with psutil must pass here too, except the tests in psutil_suite.txt: tests that fail are run again with psutil alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: Each runs in a separate interpreter: one that reloads psutil would remove fastproc for those that follow.
#: The last one looks for memory leaks, which only malloc reveals.
SUITE = ["process", "process_all", "linux", "system", "contracts", "memleaks"]
#: Seconds. A test of leaks calls a function more often each time that memory grows, and some read all processes.
TIMEOUT = 3600
LIST = Path(__file__).with_suffix(".txt")


def failures(source: Path, tests: list[str], plugin: Path | None, options: list[str]) -> set[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *options]
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONUNBUFFERED": "1"}
    if plugin is not None:
        command += ["-p", plugin.stem]
        environment["PYTHONPATH"] = str(plugin.parent)
    try:
        ended = subprocess.run(
            [*command, *tests], cwd=source, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as expired:
        shown = expired.stdout.decode(errors="replace") if isinstance(expired.stdout, bytes) else ""
        sys.exit(f"{shown[-3000:]}\nnot at its end after {TIMEOUT} s: try again while no processes come and go")
    print(ended.stdout[-3000:], flush=True)
    if ended.returncode not in (0, 1):
        sys.exit(f"pytest could not run: {ended.stderr}")
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE))


def main() -> int:
    source, options = Path(sys.argv[1]), sys.argv[2:]
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    listed = {line.split(": ", 1)[0] for line in lines}
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder, "put_fastproc.py")
        plugin.write_text("from fastproc import psutil\npsutil.install()\n")
        failed = set().union(*(failures(source, [f"tests/test_{name}.py"], plugin, options) for name in SUITE))
    new = sorted(failed - listed)
    ours = sorted(set(new) - failures(source, new, None, options)) if new else []
    print(f"{len(failed)} fail, of which {len(failed & listed)} are listed and {len(new) - len(ours)} fail with psutil as well")
    for test in ours:
        print(f"PASSES WITH PSUTIL ALONE: {test}")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
