"""Open files and sockets, as tables."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

import fastproc

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("pids", [None, [os.getpid()]])
def test_a_table_has_the_files_of_this_process(tmp_path: Path, pids: list[int] | None) -> None:
    path = tmp_path / "file \udcff"
    with path.open("wb") as file:
        file.write(b"four")
        file.flush()
        table = fastproc.files("pid,fd,size,pos,kind,name", pids=pids, filter=f"pid == {os.getpid()} && kind == file")
        assert table.columns == ["pid", "fd", "size_bytes", "pos_bytes", "kind", "name"]
        rows = {row.fd: row for row in table}
        assert tuple(rows[file.fileno()].to_dict().values()) == (os.getpid(), file.fileno(), 4, 4, "file", str(path))
        assert table.source in {"bpf", "procfs"}
    counted = fastproc.files("pid,fds,sockets", count=True, pids=pids, filter=f"pid == {os.getpid()}")
    assert counted.shape == (1, 3)
    assert counted["fds"][0] >= len(rows)


def test_a_table_has_the_sockets_of_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        listening = f"listen && local_port == {port}"
        [row] = fastproc.sockets("pid,fd,netid,local,peer,inode", filter=listening)
        inode = os.fstat(server.fileno()).st_ino
        assert tuple(row) == (os.getpid(), server.fileno(), "tcp", f"127.0.0.1:{port}", None, inode)
        assert "local" in fastproc.sockets(pids=[os.getpid()])
    assert len(fastproc.sockets(filter=listening, orphans=True)) == 0


def test_wrong_arguments_are_refused() -> None:
    assert "local_port" in fastproc.fields("files")
    with pytest.raises(fastproc.UnknownField, match=r"fields\('files'\)"):
        fastproc.files("pid,nmae")
    with pytest.raises(fastproc.FilterError):
        fastproc.sockets(filter="local_port == www")
    with pytest.raises(ValueError, match="no source"):
        fastproc.files(source="bfp")
    with pytest.raises(ValueError, match="at least one"):
        fastproc.files([])
