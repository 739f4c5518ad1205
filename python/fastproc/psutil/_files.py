"""Open files and connections in psutil's form, from the tables of open files and sockets."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

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
#: The values of these fields. A class with names takes longer to make than the connection.
_Row = tuple[Any, ...]
#: Makes a named tuple from a tuple, without a call of Python code.
_named = tuple.__new__


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
    return _named(_ntp.addr, (ip, port))


class _Shown:
    """What psutil shows of sockets of these kinds."""

    def __init__(self, kind: str) -> None:
        kinds = {name: (family, type_) for name, family, type_ in _private._net_connections.tmap[kind]}
        #: By the word of ss(8) and the family.
        self.inet = {
            (name.rstrip("6"), socket.AF_INET6 if name.endswith("6") else socket.AF_INET): found
            for name, found in kinds.items()
            if name != "unix"
        }
        self.unix = kinds.get("unix")

    def connection(self, row: _Row) -> _Row | None:
        """Family, type, addresses and status; None if psutil does not show the socket, or it is not wanted."""
        _, _, _, netid, family, state, local, local_port, peer, peer_port, _ = row
        found = self.inet.get((netid, family))
        if found is None:
            if self.unix is None or netid not in _UNIX_TYPES:
                return None
            # psutil finds no name with a space in the text.
            path = (local or "").replace("\0", "@")
            path = path if len(path.split()) == 1 else ""
            return self.unix[0], _UNIX_TYPES[netid], path, "", _psutil.CONN_NONE
        status = _STATES.get(state) if netid == "tcp" else _psutil.CONN_NONE
        # The kernel lists no socket without a port.
        if status is None or not local_port:
            return None
        return *found, _address(local, local_port), _address(peer, peer_port), status

    def of_process(self, holders: list[_Row]) -> Iterator[_Row]:
        """The connections of a socket that a process has, behind their descriptor: of a unix socket one for each."""
        connection = self.connection(holders[0])
        if connection is not None:
            for row in holders if holders[0][3] in _UNIX_TYPES else holders[:1]:
                yield -1 if row[1] is None else row[1], *connection


def _sockets(orphans: bool) -> Iterator[_Row]:
    """The sockets of this network namespace."""
    own = os.stat("/proc/self/ns/net").st_ino
    table = sockets(_FIELDS, orphans=orphans)
    for row in zip(*(table[name].to_list() for name in _FIELDS)):
        if row[-1] == own or row[-1] is None:
            yield row


def net_connections(kind: str = "inet") -> list[Any]:
    """The connections of this machine: see ``psutil.net_connections``."""
    if elsewhere() or kind not in _private._net_connections.tmap:
        return _of_psutil(kind)
    shown = _Shown(kind)
    without: set[_Row] = set()
    # Of several processes that have a socket, psutil shows the last one.
    last: dict[int, list[_Row]] = {}
    for row in _sockets(True):
        pid, inode = row[0], row[2]
        if pid is None or inode is None:
            connection = shown.connection(row)
            if connection is not None:
                without.add(_named(_sconn, (-1 if row[1] is None else row[1], *connection, pid)))
            continue
        holders = last.get(inode)
        if holders is None or holders[0][0] < pid:
            last[inode] = [row]
        elif holders[0][0] == pid:
            holders.append(row)
    found = list(without)
    for holders in last.values():
        pid = (holders[0][0],)
        found.extend([_named(_sconn, one + pid) for one in shown.of_process(holders)])
    return found


def connections_by_process() -> dict[int, list[Any]]:
    """The connections of each process, by its pid, as ``Process.net_connections()`` has them."""
    shown = _Shown("inet")
    by_socket: dict[tuple[int, int], list[_Row]] = {}
    for row in _sockets(False):
        pid, inode = row[0], row[2]
        if pid is not None and inode is not None:
            by_socket.setdefault((pid, inode), []).append(row)
    found: dict[int, list[Any]] = {}
    for (pid, _), holders in by_socket.items():
        found.setdefault(pid, []).extend([_named(_pconn, one) for one in shown.of_process(holders)])
    return found


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
