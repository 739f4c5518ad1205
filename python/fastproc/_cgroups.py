"""The cgroups of version 2, as columns."""

from __future__ import annotations

from fastproc import Table, _names, _native

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable


class Cgroups:
    """Reads all cgroups again and again. The arguments are those of ``cgroups()``."""

    def __init__(
        self,
        fields: str | Iterable[str] | None = None,
        *,
        source: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        top: int | None = None,
    ) -> None:
        names = None if fields is None else _names(fields)
        self._native = _native.Cgroups(names, source=source, filter=filter, sort=sort, top=top)

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
        """Controllers that are on version 1, or that the kernel lacks: their values are null."""
        return self._native.absent_controllers

    def snapshot(self) -> Table:
        """Read all cgroups: one table, as of ``cgroups()``.

        Shares and rates cover the time since the snapshot before; in the first one they are null.
        """
        return self._native.snapshot()


def cgroups(
    fields: str | Iterable[str] | None = None,
    *,
    source: str | None = None,
    filter: str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Table:
    """Read the cgroups: one table, a column for each field.

    Args:
        fields: Names of columns of ``fastproc cgroups``, in one string or several. ``fastproc.fields("cgroups")`` has all.
        source: ``bpf``, ``service`` or ``files``. Default: the first of them that works.
        filter: A condition, as in ``"memory > 100M && path =~ kubepods"``.
        sort: A field to sort by, as in ``"-memory"``. Default: by path; with ``top``, those that use most memory.
        top: No more rows than this.

    Shares of pressure are the kernel's averages of the last ten seconds.

    >>> import fastproc
    >>> "/" in fastproc.cgroups("path,cpu_time")["path"].to_list()
    True

    Raises:
        UnknownField: A field does not exist.
        FilterError: The filter cannot be understood.
        ValueError: The source does not exist.
        Error: No hierarchy of version 2 is mounted, or the source cannot be used.
    """
    names = None if fields is None else _names(fields)
    return _native.Cgroups(names, source=source, filter=filter, sort=sort, top=top, once=True).snapshot()
