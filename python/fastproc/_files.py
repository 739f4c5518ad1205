"""Open files and sockets, as columns."""

from __future__ import annotations

from fastproc import Table, _kept, _names, _native

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable


def files(
    fields: str | Iterable[str] | None = None,
    *,
    source: str | None = None,
    pids: Iterable[int] | None = None,
    count: bool = False,
    filter: str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Table:
    """Read the open files of processes: one table, with a row for each descriptor, current and root directory, and program.

    Args:
        fields: Names of columns of ``fastproc files``, in one string or several. ``fastproc.fields("files")`` has all.
        source: ``bpf``, ``service`` or ``procfs``. Default: the cheapest one that works.
        pids: Only these processes.
        count: A row for each process, with its numbers of descriptors; those with most come first.
        filter: A condition, as in ``"deleted && size > 1G"``.
        sort: Fields to sort by, as in ``"-size"``. Default: by process, as they were read.
        top: No more rows than this.

    >>> import fastproc
    >>> len(fastproc.files("pid,fd,name", filter="fd == 0", top=1)) <= 1
    True

    Raises:
        UnknownField: A field does not exist.
        FilterError: The filter cannot be understood.
        ValueError: The source does not exist.
        Error: The source cannot be used.
    """
    if count and sort is None:
        sort = "-fds"
    return _read("process" if count else "file", fields, source, pids, False, filter, sort, top)


def sockets(
    fields: str | Iterable[str] | None = None,
    *,
    source: str | None = None,
    pids: Iterable[int] | None = None,
    orphans: bool = False,
    filter: str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Table:
    """Read the sockets of processes: one table, with a row for each descriptor of a socket.

    Args:
        fields: Names of columns of ``fastproc sockets``, in one string or several. ``fastproc.fields("files")`` has all.
        source: ``bpf``, ``service`` or ``procfs``. Default: the cheapest one that works.
        pids: Only these processes.
        orphans: Also sockets of this network namespace of which no process in sight has a descriptor.
        filter: A condition, as in ``"listen && local_port == 80"``.
        sort: Fields to sort by, as in ``"-recv_q"``. Default: by process, as they were read.
        top: No more rows than this.

    Raises:
        UnknownField: A field does not exist.
        FilterError: The filter cannot be understood.
        ValueError: The source does not exist.
        Error: The source cannot be used.
    """
    return _read("socket", fields, source, pids, orphans, filter, sort, top)


def _read(
    each: str,
    fields: str | Iterable[str] | None,
    source: str | None,
    pids: Iterable[int] | None,
    orphans: bool,
    filter: str | None,
    sort: str | None,
    top: int | None,
) -> Table:
    names = None if fields is None else _names(fields)
    listed = None if pids is None else list(pids)

    def open() -> _native.Files:
        return _native.Files(each, names, source=source, pids=listed, orphans=orphans, filter=filter, sort=sort, top=top)

    if listed is not None:
        # Another call has other processes.
        return open().snapshot()
    key = ("files", each, None if names is None else tuple(names), source, orphans, filter, sort, top)
    return _kept(key, open)
