"""Rows of a history, as columns."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from fastproc import Table, _names, _native

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def history(
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    fields: str | Iterable[str] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    host: str | None = None,
    table: str = "processes",
) -> Table:
    """Read what ``fastproc record`` wrote: one table, with all rows of a time, in the columns of a table of the history.

    Args:
        from_: The first time, a ``datetime`` or as ``fastproc ps --from`` takes it: ``"03:12"``, ``"-10min"``. Default: all.
        to: The time before which it ends.
        fields: Names of columns, in one string or several. Default: all.
        folder: The folder of the history. Default: ``/var/lib/fastproc/history``.
        host: Only this host. Default: all hosts of the folder.
        table: ``processes``, ``identities``, ``exits``, ``machine``, ``cgroups``, ``waits`` or ``events``.

    The column ``host`` is there besides those of the table. Rows are in the order of the files: of each host by hour, and
    within by process. No row is there twice. Damaged parts are left out; a ``RuntimeWarning`` names each.

    Raises:
        UnknownField: The table has no such column.
        ValueError: There is no such table, or a time cannot be understood.
        Error: The folder holds no history, or not of this host.
    """
    names = None if fields is None else _names(fields)
    return _native.history(_when(from_), _when(to), names, folder=folder, host=host, table=table)


def _when(time: str | datetime | None) -> str | int | None:
    """A text, or microseconds since 1970."""
    if isinstance(time, datetime):
        return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(microseconds=1)
    return time
