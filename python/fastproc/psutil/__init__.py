"""The interface of psutil, with the processes read in one snapshot.

>>> from fastproc import psutil
>>> for process in psutil.process_iter(["pid", "name", "memory_info"]):
...     pass

``process_iter`` reads all processes at once and fills ``info`` from the snapshot, and ``net_connections`` reads all
sockets at once. ``oneshot()`` and ``as_dict()`` of its processes use the same snapshot for ``MAX_AGE`` seconds, or until
the object changes its process. Everything else is psutil's: values that a snapshot lacks, single processes, changes to
processes, the machine, the exceptions, and every type. ``PROCFS_PATH`` is psutil's, also if it is set here.

``install()`` puts it into the module ``psutil``, for unmodified programs; ``python -m fastproc.psutil PROGRAM`` runs a
program that way.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

try:
    import psutil as _psutil
    from psutil import _ntuples, _pslinux  # noqa: F401
except ImportError as error:
    raise ImportError("fastproc.psutil needs psutil 7.2: pip install 'psutil>=7.2,<8'") from error

from fastproc.psutil import _process
from fastproc.psutil._files import net_connections
from fastproc.psutil._iterate import process_iter
from fastproc.psutil._process import Platform, Popen, Process

__all__ = ["MAX_AGE", "Popen", "Process", "install", "net_connections", "process_iter"]
__all__ += _psutil.__all__

MAX_AGE: float
PROCFS_PATH: str


class _Setting:
    """A variable of another module."""

    def __init__(self, home: ModuleType) -> None:
        self.home = home

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: Any = None) -> Any:
        return getattr(self.home, self.name)

    def __set__(self, module: Any, value: Any) -> None:
        setattr(self.home, self.name, value)

    def __delete__(self, module: Any) -> None:
        delattr(self.home, self.name)


class _Module(ModuleType):
    """This module, with what a program may set."""

    MAX_AGE = _Setting(_process)
    PROCFS_PATH = _Setting(_psutil)


sys.modules[__name__].__class__ = _Module


def __getattr__(name: str) -> Any:
    return getattr(_psutil, name)


def __dir__() -> list[str]:
    return sorted({*dir(_psutil), *dir(_Module), *globals()})


def install() -> None:
    """Put these classes and functions into the module ``psutil`` of this interpreter.

    Code that has already imported ``Process`` or ``process_iter`` by name keeps psutil's.
    """
    replaced: tuple[tuple[Any, str, Any], ...] = (
        (_psutil, "Popen", Popen),
        (_psutil, "Process", Process),
        (_psutil, "net_connections", net_connections),
        (_psutil, "process_iter", process_iter),
        (_pslinux, "Process", Platform),
    )
    for module, name, value in replaced:
        setattr(module, name, value)
