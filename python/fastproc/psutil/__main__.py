"""``python -m fastproc.psutil PROGRAM [ARGUMENT…]``: run a Python program with this under ``import psutil``."""

from __future__ import annotations

import runpy
import shutil
import sys

from fastproc import psutil

USAGE = "usage: python -m fastproc.psutil PROGRAM [ARGUMENT...]  or  python -m fastproc.psutil -m MODULE [ARGUMENT...]"


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(USAGE)
    psutil.install()
    program = arguments[0]
    sys.argv = arguments
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    path = shutil.which(program)
    if path is None:
        sys.exit(f"fastproc.psutil: there is no program {program!r}; name one, or a module with -m")
    sys.argv[0] = path
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
