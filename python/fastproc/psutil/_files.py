"""Open files and connections in psutil's form, from the tables of open files and sockets."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil as _psutil
from psutil import _common, _pslinux
from psutil import _ntuples as _ntp

from fastproc._files import files, sockets

if TYPE_CHECKING:
    from collections.abc import Iterator

#: psutil's function, which install() replaces.
_of_psutil = _psutil.net_connections
#: Private names of psutil.
_private: Any = _pslinux
_sconn: Any = _ntp.sconn
_pconn: Any = _ntp.pconn

#: States by the words of ss(8). psutil's text lacks sockets that are closed.
_STATES = {
    "ESTAB": _psutil.CONN_ESTABLISHED,
    "SYN-SENT": _psutil.CONN_SYN_SENT,
    "SYN-RECV": _psutil.CONN_SYN_RECV,
    "FIN-WAIT-1": _psutil.CONN_FIN_WAIT1,
    "FIN-WAIT-2": _psutil.CONN_FIN_WAIT2,
    "TIME-WAIT": _psutil.CONN_TIME_WAIT,
    "CLOSE-WAIT": _psutil.CONN_CLOSE_WAIT,
    "LAST-ACK": _psutil.CONN_LAST_ACK,
    "LISTEN": _psutil.CONN_LISTEN,
    "CLOSING": _psutil.CONN_CLOSING,
}
_UNIX_TYPES = {
    "u_str": _common.socktype_to_enum(socket.SOCK_STREAM),
    "u_dgr": _common.socktype_to_enum(socket.SOCK_DGRAM),
    "u_seq": _common.socktype_to_enum(socket.SOCK_SEQPACKET),
}
_FIELDS = ("pid", "fd", "inode", "netid", "family", "state", "local", "local_port", "peer", "peer_port", "netns")


class _Socket(NamedTuple):
    pid: int | None
    fd: int | None
    inode: int | None
    netid: str
    family: int
    state: str
    local: str | None
    local_port: int | None
    peer: str | None
    peer_port: int | None
    netns: int | None


def elsewhere() -> bool:
    """Whether psutil was configured to read another folder than /proc."""
    return bool(_psutil.PROCFS_PATH != "/proc")


def _address(text: str | None, port: int | None) -> Any:
    if not text or not port:
        return ()
    ip = text.rpartition(":")[0]
    if ip.startswith("["):
        ip = ip[1:-1]
        if ip.startswith("::"):
            # The end may be written as an address of version 4.
            ip = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, ip))
    return _ntp.addr(ip, port)


def _connection(of: _Socket, wanted: dict[str, tuple[Any, Any]]) -> tuple[Any, ...] | None:
    """Family, type, addresses and status; None if psutil does not show the socket, or it is not wanted."""
    if of.netid in _UNIX_TYPES:
        found = wanted.get("unix")
        # psutil finds no name with a space in the text.
        path = (of.local or "").replace("\0", "@")
        path = path if len(path.split()) == 1 else ""
        return found and (found[0], _UNIX_TYPES[of.netid], path, "", _psutil.CONN_NONE)
    found = wanted.get(f"{of.netid}6" if of.family == socket.AF_INET6 else of.netid)
    if found is None:
        return None
    status = _STATES.get(of.state) if of.netid == "tcp" else _psutil.CONN_NONE
    # The kernel lists no socket without a port.
    if status is None or not of.local_port:
        return None
    local, peer = _address(of.local, of.local_port), _address(of.peer, of.peer_port)
    return (*found, local, peer, status)


def _sockets(orphans: bool) -> Iterator[_Socket]:
    """The sockets of this network namespace."""
    own = os.stat("/proc/self/ns/net").st_ino
    table = sockets(_FIELDS, orphans=orphans)
    for row in map(_Socket._make, zip(*(table[name].to_list() for name in _FIELDS))):
        if row.netns in (own, None):
            yield row


def _wanted(kind: str) -> dict[str, tuple[Any, Any]]:
    return {name: (family, type_) for name, family, type_ in _private._net_connections.tmap[kind]}


def net_connections(kind: str = "inet") -> list[Any]:
    """The connections of this machine: see ``psutil.net_connections``."""
    if elsewhere() or kind not in _private._net_connections.tmap:
        return _of_psutil(kind)
    wanted = _wanted(kind)
    found: set[Any] = set()
    # Of several processes that have a socket, psutil shows the last one.
    last: dict[int, list[_Socket]] = {}
    for one in _sockets(True):
        if one.pid is None or one.inode is None:
            found.update(_shown([one], wanted, _sconn))
            continue
        holders = last.setdefault(one.inode, [one])
        if holders[0].pid == one.pid:
            if holders[0] is not one:
                holders.append(one)
        elif (holders[0].pid or 0) < one.pid:
            last[one.inode] = [one]
    for holders in last.values():
        found.update(_shown(holders, wanted, _sconn))
    return list(found)


def _shown(holders: list[_Socket], wanted: dict[str, tuple[Any, Any]], kind: Any) -> Iterator[Any]:
    """The connections of a socket that a process has: of a unix socket one for each descriptor."""
    connection = _connection(holders[0], wanted)
    if connection is None:
        return
    for one in holders if holders[0].netid in _UNIX_TYPES else holders[:1]:
        fd = -1 if one.fd is None else one.fd
        yield kind(fd, *connection, one.pid) if kind is _sconn else kind(fd, *connection)


def connections_by_process() -> dict[int, list[Any]]:
    """The connections of each process, by its pid, as ``Process.net_connections()`` has them."""
    wanted = _wanted("inet")
    by_socket: dict[tuple[int, int], list[_Socket]] = {}
    for one in _sockets(False):
        if one.pid is not None and one.inode is not None:
            by_socket.setdefault((one.pid, one.inode), []).append(one)
    found: dict[int, set[Any]] = {}
    for (pid, _), holders in by_socket.items():
        found.setdefault(pid, set()).update(_shown(holders, wanted, _pconn))
    return {pid: list(connections) for pid, connections in found.items()}


def files_by_process() -> dict[int, list[Any]]:
    """The open files of each process, by its pid, as ``Process.open_files()`` has them."""
    names = ("pid", "fd", "pos", "flags", "name")
    table = files(names, filter="kind == file && held_as == fd")
    found: dict[int, list[Any]] = {}
    for pid, fd, pos, flags, name in zip(*(table[field].to_list() for field in names)):
        if None in (pos, flags, name) or not name.startswith("/"):
            continue
        path = name
        if path.endswith(" (deleted)") and not _common.path_exists_strict(path):
            path = path[: -len(" (deleted)")]
        if _common.isfile_strict(path):
            mode = _private.file_flags_to_mode(flags)
            found.setdefault(pid, []).append(_ntp.popenfile(path, fd, pos, mode, flags))
    return found
