"""The psutil interface: the same values as psutil's, from one snapshot."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import psutil as real
import pytest
from conftest import wait_until

from fastproc import psutil
from fastproc.psutil import _snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

SERVED = sorted(_snapshot.NEEDS)
#: Seconds for a program to run: the machine may be busy.
TIMEOUT = 600


@pytest.fixture
def sleeper() -> Any:
    """An idle process whose name is too long for the kernel; if root starts it, with ids that all differ."""
    become = "os.setresgid(4, 5, 6); os.setresuid(1, 2, 3)" if os.geteuid() == 0 else "pass"
    program = f"import os, time; {become}; print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        # It prints before it is idle.
        wait_until("it rests", lambda: real.Process(child.pid).status() == real.STATUS_SLEEPING)
        yield child
        child.kill()


def infos(module: Any, attrs: list[str]) -> dict[int, dict[str, Any]]:
    return {process.pid: process.info for process in module.process_iter(attrs)}


def between(pid: int, attrs: list[str], read: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """psutil's values of an idle process, the same before and after; and what was read between."""
    process = real.Process(pid)
    seen: list[Any] = []

    def rested() -> bool:
        seen[:] = process.as_dict(attrs), read(), process.as_dict(attrs)
        # The kernel may have taken a page from it meanwhile, or run it for a moment.
        return bool(seen[0] == seen[2])

    wait_until("two equal looks at a process at rest", rested)
    return seen[0], seen[1]


def test_a_process_at_rest_has_the_values_of_psutil(sleeper: subprocess.Popen[bytes]) -> None:
    # A share of CPU time is over the time since the reading before: the first of each object is 0.
    served = [name for name in SERVED if name != "cpu_percent"]
    theirs, ours = between(sleeper.pid, served, lambda: infos(psutil, SERVED)[sleeper.pid])
    assert set(ours) == set(SERVED)
    assert isinstance(ours["cpu_percent"], float)
    for name in served:
        assert ours[name] == theirs[name], name
        assert type(ours[name]) is type(theirs[name]), name


def test_connections_are_those_of_psutil(tmp_path: Path) -> None:
    tcp = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(tcp.getsockname())
    accepted, _ = tcp.accept()
    tcp6 = socket.create_server(("::1", 0), family=socket.AF_INET6) if socket.has_dualstack_ipv6() else client
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    unix.bind(str(tmp_path / "bound"))
    one, other = socket.socketpair()
    unused = socket.socket()
    for kind in ("all", "inet", "tcp4", "udp6", "unix"):

        def of_this(module: Any, kind: str = kind) -> set[Any]:
            return {connection for connection in module.net_connections(kind) if connection.pid == os.getpid()}

        theirs = of_this(real)
        assert of_this(psutil) == theirs
        assert theirs or kind == "udp6"
        # Types are those of psutil, too.
        assert sorted(map(repr, of_this(psutil))) == sorted(map(repr, theirs))
    with pytest.raises(ValueError, match="invalid"):
        psutil.net_connections("no such kind")
    for each in (tcp, client, accepted, tcp6, udp, unix, one, other, unused):
        each.close()


def test_files_and_connections_of_processes_are_those_of_psutil(tmp_path: Path) -> None:
    removed = tmp_path / "removed"
    with (tmp_path / "file").open("a+b") as appended, removed.open("wb") as gone, socket.create_server(("127.0.0.1", 0)):
        appended.write(b"four")
        appended.flush()
        gone.write(b"x")
        removed.unlink()
        process = real.Process()
        for found in psutil.process_iter(["num_fds", "open_files", "net_connections"]):
            if found.pid == os.getpid():
                assert set(found.info["open_files"]) == set(process.open_files())
                assert set(found.info["net_connections"]) == set(process.net_connections())
                # The readers of the tables stay open.
                assert abs(found.info["num_fds"] - process.num_fds()) < 64


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become somebody else")
def test_another_user_sees_no_more_than_with_psutil() -> None:
    program = (
        "import os, sys\n"
        "from fastproc import psutil\n"
        "import psutil as real\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "attrs = ['pid', 'io_counters', 'exe', 'uids', 'create_time', 'num_fds', 'open_files', 'net_connections']\n"
        "theirs = {p.pid: p.info for p in real.process_iter(attrs)}\n"
        "ours = {p.pid: p.info for p in psutil.process_iter(attrs)}\n"
        "again = {p.pid: p.info for p in real.process_iter(attrs)}\n"
        "both = [pid for pid in theirs.keys() & ours.keys() & again.keys() if pid != os.getpid()\n"
        "        and theirs[pid]['uids'] == again[pid]['uids'] and theirs[pid]['create_time'] == again[pid]['create_time']]\n"
        "assert both\n"
        "for pid in both:\n"
        "    for name in attrs:\n"
        "        shown = [info[pid][name] is not None for info in (theirs, ours, again)]\n"
        "        assert shown[0] != shown[2] or shown[1] == shown[0], (pid, name)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_same_objects_come_again() -> None:
    psutil.process_iter.cache_clear()
    first = {process.pid: process for process in psutil.process_iter()}
    again = {process.pid: process for process in psutil.process_iter()}
    assert first[os.getpid()] is again[os.getpid()]
    assert first[os.getpid()] == psutil.Process()
    assert isinstance(first[os.getpid()], real.Process)


def test_cpu_percent_is_over_the_time_between() -> None:
    def percent() -> float:
        value: float = infos(psutil, ["cpu_percent"])[os.getpid()]["cpu_percent"]
        return value

    psutil.process_iter.cache_clear()
    assert percent() == 0.0
    start = os.times()
    while os.times().user - start.user < 0.2:
        pass
    used, passed = os.times().user - start.user, os.times().elapsed - start.elapsed
    # The snapshots were taken a little before and after.
    assert 0 < percent() <= 100 * (used + 1) / passed + 100


def test_oneshot_and_as_dict_are_served_from_the_snapshot(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    attrs = ["name", "memory_info", "uids", "status"]
    expected, processes = between(sleeper.pid, attrs, lambda: list(psutil.process_iter()))
    process = next(process for process in processes if process.pid == sleeper.pid)

    def fail(*_: Any) -> None:
        raise AssertionError("it read a file")

    monkeypatch.setattr(psutil, "MAX_AGE", 1e9)
    with monkeypatch.context() as patch:
        patch.setattr("psutil._pslinux.open_binary", fail)
        patch.setattr("psutil._pslinux.bcat", fail)
        assert process.as_dict(["memory_info", "uids", "status"]) == {k: v for k, v in expected.items() if k != "name"}
        with process.oneshot():
            assert process.num_threads() == 1
            assert process.ppid() == os.getpid()
    monkeypatch.setattr(psutil, "MAX_AGE", 0)
    assert process.as_dict(["name", "memory_info"])["name"] == expected["name"]


def test_a_change_is_seen_by_the_object_that_made_it(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "MAX_AGE", 1e9)

    def found() -> psutil.Process:
        return next(process for process in psutil.process_iter(["nice", "status"]) if process.pid == sleeper.pid)

    process = found()
    process.nice(process.nice() + 1)
    assert process.as_dict(["nice"])["nice"] == os.getpriority(os.PRIO_PROCESS, sleeper.pid)
    process = found()
    process.cpu_affinity(process.cpu_affinity())
    assert process._proc.found is None
    process = found()
    process.suspend()
    wait_until("it stops", lambda: process.as_dict(["status"])["status"] == psutil.STATUS_STOPPED)
    process = found()
    process.kill()
    process = found()
    process.wait()
    with pytest.raises(psutil.NoSuchProcess):
        process.as_dict(["nice"])


def test_a_terminal_that_is_new_has_its_name() -> None:
    real._psposix.get_terminal_map.cache_clear()
    real._psposix.get_terminal_map()
    leader, terminal = pty.openpty()
    program = "import fcntl, termios, time; fcntl.ioctl(0, termios.TIOCSCTTY, 0); print(flush=True); time.sleep(600)"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            name = os.ttyname(terminal)
            assert infos(psutil, ["terminal"])[child.pid]["terminal"] == name
            del real._psposix.get_terminal_map()[os.stat(name).st_rdev]
            assert psutil.Process(child.pid).terminal() == name
        finally:
            child.kill()
            os.close(leader)
            os.close(terminal)


def test_a_zombie_and_one_that_is_gone() -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        process = psutil.Process(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert infos(psutil, ["status"])[child.pid]["status"] == psutil.STATUS_ZOMBIE
        assert process.status() == psutil.STATUS_ZOMBIE
        assert process.is_running()
        assert process.is_running()
        with pytest.raises(psutil.ZombieProcess):
            process.exe()
        child.wait()
    assert not process.is_running()
    assert child.pid not in infos(psutil, ["status"])
    with pytest.raises(psutil.NoSuchProcess):
        process.name()
    with pytest.raises(psutil.NoSuchProcess):
        psutil.Process(child.pid)


def test_unchanged_processes_keep_their_objects(sleeper: subprocess.Popen[bytes]) -> None:
    psutil.process_iter.cache_clear()
    attrs = ["cpu_times", "gids", "memory_info"]

    def busy() -> float:
        times: Any = infos(psutil, attrs)[os.getpid()]["cpu_times"]
        return float(times.user + times.system)

    def is_kept() -> bool:
        theirs, (first, again) = between(sleeper.pid, attrs, lambda: (infos(psutil, attrs), infos(psutil, attrs)))
        first, again = first[sleeper.pid], again[sleeper.pid]
        assert first == again == theirs
        # The kernel may have run it for less than a clock tick: then the object is made again, and equal.
        return all(first[name] is again[name] for name in attrs)

    wait_until("values that are kept", is_kept)
    # What changes, changes, beside values that do not.
    start, spent = busy(), os.times().user
    while os.times().user - spent < 0.1:
        pass
    assert busy() > start


def test_another_process_with_the_same_pid_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    process = psutil.Process(sleeper.pid)
    # The second time it is recognised by its folder.
    assert process.is_running()
    assert process.is_running()
    process._ident = (process.pid, (process._ident[1] or 0) + 100)
    assert not process.is_running()
    with pytest.raises(psutil.NoSuchProcess, match="PID has been reused"):
        process.ppid()


def test_wrong_attributes_are_refused() -> None:
    with pytest.raises(ValueError, match="invalid attr name"):
        list(psutil.process_iter(["nothing"]))
    with pytest.raises(TypeError):
        list(psutil.process_iter("pid"))


def test_all_attributes() -> None:
    info = infos(psutil, [])[os.getpid()]
    assert set(info) == set(real.Process().as_dict())


def test_processes_that_come_and_go_are_no_error() -> None:
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            subprocess.run(["true"], check=True)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for _ in range(20):
            assert os.getpid() in infos(psutil, ["name", "exe", "cmdline", "cpu_times", "num_fds"])
    finally:
        stop.set()
        thread.join()


def test_popen_is_a_process() -> None:
    with psutil.Popen(["sleep", "600"]) as child:
        assert isinstance(child, psutil.Process)
        assert child.name() == "sleep"
        child.terminate()
    assert child.returncode is not None


def test_the_child_of_a_fork_iterates_too() -> None:
    infos(psutil, ["name"])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if os.getpid() in infos(psutil, ["name"]) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_everything_else_is_of_psutil() -> None:
    assert psutil.virtual_memory().total == real.virtual_memory().total
    assert psutil.pids()
    assert psutil.NoSuchProcess is real.NoSuchProcess
    assert set(dir(real)) <= set(dir(psutil))


def test_a_star_imports_all_names_of_psutil() -> None:
    names: dict[str, Any] = {}
    exec("from fastproc.psutil import *", names)
    assert {*real.__all__, "install"} <= names.keys()
    assert names["Process"] is psutil.Process


def test_the_folder_of_processes_that_is_set_here_is_psutils(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with mock.patch.object(psutil, "PROCFS_PATH", str(tmp_path)):
        assert psutil.pids() == [1]
    assert real.PROCFS_PATH == psutil.PROCFS_PATH == "/proc"


def test_every_process_is_of_the_class_here(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    process = psutil.Process(sleeper.pid)
    parent = process.parent()
    assert parent == psutil.Process()
    assert process in psutil.Process().children()
    # Another folder than /proc, for psutil: it reads processes one by one.
    monkeypatch.setattr(psutil, "PROCFS_PATH", "/proc/")
    relatives = [parent, *process.parents(), *psutil.Process().children(recursive=True), *psutil.process_iter()]
    assert {type(relative) for relative in relatives} == {psutil.Process}
    assert os.getpid() in {relative.pid for relative in relatives}


def test_a_program_runs_with_it(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        "import sys, psutil, fastproc.psutil\n"
        "assert psutil.Process is fastproc.psutil.Process and psutil.process_iter is fastproc.psutil.process_iter\n"
        "assert isinstance(psutil.Popen(['true']), psutil.Process)\n"
        "assert psutil.Process().as_dict()\n"
        "print(sys.argv[1:], __name__)\n"
    )
    program.chmod(0o755)
    command = [sys.executable, "-m", "fastproc.psutil"]
    shown = subprocess.run([*command, program, "a", "b"], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert shown.stdout == "['a', 'b'] __main__\n"
    shown = subprocess.run([*command, "-m", "this"], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert "Zen" in shown.stdout
    # As by `python program.py`: the program need not be executable, and may import modules beside it.
    Path(tmp_path, "beside.py").write_text("name = 'beside'\n")
    Path(tmp_path, "plain.py").write_text("import beside\nprint(beside.name)\n")
    plain = [*command, os.path.relpath(tmp_path / "plain.py", "/")]
    shown = subprocess.run(plain, cwd="/", capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert shown.stdout == "beside\n"
    for wrong in ([], ["/nonexistent"], [os.path.realpath(sys.executable)]):
        failed = subprocess.run([*command, *wrong], capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert failed.returncode == 1
        assert "fastproc.psutil" in failed.stderr
        assert "Traceback" not in failed.stderr


def test_without_psutil_it_says_what_to_do(tmp_path: Path) -> None:
    Path(tmp_path, "psutil.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import fastproc.psutil"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert failed.stderr.splitlines()[-1].startswith("ImportError: fastproc.psutil needs psutil")


def test_glances_shows_the_same_process_with_it(sleeper: subprocess.Popen[bytes]) -> None:
    def look(*runner: str) -> dict[str, Any]:
        # The second refresh, headless.
        program = Path(sys.executable).with_name("glances")
        options = ["--stdout-json", "processlist", "--stop-after", "2", "--time", "1", "--disable-check-update"]
        shown = subprocess.run([*runner, str(program), *options], capture_output=True, text=True, timeout=TIMEOUT, check=True)
        rows = json.loads(shown.stdout.splitlines()[-1])["processlist"]
        assert os.getpid() in {row["pid"] for row in rows}
        row: dict[str, Any] = next(row for row in rows if row["pid"] == sleeper.pid)
        return row

    theirs, ours = look(), look(sys.executable, "-m", "fastproc.psutil")
    assert set(ours) == set(theirs)
    for name in ["cmdline", "gids", "name", "nice", "num_threads", "status", "username"]:
        assert ours[name] == theirs[name], name
    assert ours["memory_info"]["vms"] == theirs["memory_info"]["vms"]
