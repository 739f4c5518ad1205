"""The cgroups of version 2, as columns."""

from __future__ import annotations

from fastproc import _names, _native

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Cgroups:
    """Reads all cgroups again and again.

    Args:
        columns: Names of columns of ``fastproc cgroups``, in one string or several; if not given, all.
        source: ``bpf``, ``service`` or ``files``; if not given, the first of them that works.
        filter: A condition, as in ``"memory > 100M && path =~ kubepods"``.
        sort: A column to sort by, as in ``"-memory"``; by path if not given.

    Raises:
        UnknownField: A column does not exist.
        FilterError: The filter cannot be understood.
        ValueError: The source does not exist.
        Error: No hierarchy of version 2 is mounted, or the source cannot be used.
    """

    def __init__(
        self,
        columns: str | Iterable[str] | None = None,
        *,
        source: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
    ) -> None:
        names = None if columns is None else _names(columns)
        self._native = _native.Cgroups(names, source=source, filter=filter, sort=sort)

    @property
    def source(self) -> str:
        """The source in use."""
        return self._native.source

    @property
    def left_out(self) -> int:
        """Cgroups that the last snapshot lacks, with those below them, because their paths are too long."""
        return self._native.left_out

    @property
    def absent_controllers(self) -> list[str]:
        """Controllers that are on version 1, or that the kernel lacks: their values are ``None``."""
        return self._native.absent_controllers

    def snapshot(self) -> dict[str, list[Any]]:
        """Read all cgroups: a list for each column, by its key, with a value for each cgroup.

        Shares and rates cover the time since the snapshot before; in the first one they are ``None``, like everything that
        is not known. The keys say what sizes and times are: ``memory_bytes``, ``cpu_time_ns``. The result is what
        ``pandas.DataFrame``, ``polars.DataFrame`` and ``pyarrow.table`` take.
        """
        return self._native.snapshot()


def cgroups(
    columns: str | Iterable[str] | None = None,
    *,
    source: str | None = None,
    filter: str | None = None,
    sort: str | None = None,
) -> dict[str, list[Any]]:
    """Read the cgroups once: see ``Cgroups``. Shares of pressure are the kernel's averages of the last ten seconds.

    >>> import fastproc
    >>> "/" in fastproc.cgroups("path,cpu_time")["path"]
    True
    """
    names = None if columns is None else _names(columns)
    return _native.Cgroups(names, source=source, filter=filter, sort=sort, once=True).snapshot()
