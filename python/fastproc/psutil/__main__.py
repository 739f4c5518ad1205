"""``python -m fastproc.psutil PROGRAM [ARGUMENT…]``: run a Python program with this module as ``psutil``."""

from __future__ import annotations

import os
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
    path = shutil.which(program) or (os.path.isfile(program) and program)
    if not path:
        sys.exit(f"fastproc.psutil: there is no program {program!r}; name one, or a module with -m")
    with open(path, "rb") as file:
        if file.read(4) == b"\x7fELF":
            sys.exit(f"fastproc.psutil: {path} is not a Python program; name one, or a module with -m")
    # Like the interpreter: a program may import modules from its own folder.
    sys.argv[0] = path
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
