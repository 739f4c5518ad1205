"""Tables: their values, their formats, their errors."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import east_asian_width

import duckdb
import numpy
import polars
import pyarrow
import pytest
from conftest import wait_until

import fastproc

#: Seconds to wait: the machine may be busy.
TIMEOUT = 600


def own(table: fastproc.Table) -> fastproc.Row:
    return next(row for row in table if row.pid == os.getpid())


def test_a_column_has_what_proc_says_of_this_process(source: str) -> None:
    row = own(fastproc.processes("pid,ppid,comm,state,num_threads,euid,nice,cmdline,exe,nspid", source=source))
    assert row.ppid == os.getppid()
    assert row.comm == Path("/proc/self/comm").read_text().strip()
    # With the service, it waits while the service reads.
    assert row.state == "R" or source == "service"
    assert row.euid == os.geteuid()
    assert row.nice == os.nice(0)
    assert row.cmdline == Path("/proc/self/cmdline").read_text().rstrip("\0").split("\0")
    assert row.exe == os.readlink("/proc/self/exe")
    assert row.nspid[0] == os.getpid()


#: Becomes what each line says, and answers when it has.
CHAMELEON = """
import os, sys
for line in sys.stdin:
    what, value = line.split()
    if what == "comm": open("/proc/self/comm", "w").write(value)
    if what == "nice": os.nice(int(value))
    if what == "user": os.setresuid(int(value), int(value), int(value))
    print("done", flush=True)
    if what == "exec": os.execv(value, [value])
"""


def test_a_collector_shows_what_has_changed_since_its_last_table(source: str) -> None:
    # A table has the values of unchanged processes from the table before.
    collector = fastproc.Collector("pid,comm,euid,nice,num_threads,groups", source=source)
    changes = [("comm one", {"comm": "one"}), ("comm two", {"comm": "two"}), ("nice 3", {"nice": os.nice(0) + 3})]
    if os.geteuid() == 0:
        changes.append(("user 65534", {"euid": 65534}))
    changes.append(("exec /bin/cat", {"comm": "cat"}))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", CHAMELEON], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def shown() -> dict[str, object]:
            table = collector.snapshot()
            assert len(table) == len(set(table["pid"].to_list()))
            row = next(row for row in table if row.pid == process.pid)
            return {"comm": row.comm, "nice": row.nice, "euid": row.euid}

        expected = shown()
        for line, change in changes:
            for _ in range(5):
                assert shown() == expected
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            process.stdout.readline()
            expected.update(change)
            if line.startswith("exec"):
                wait_until("the program", lambda: shown()["comm"] == "cat")
        for _ in range(5):
            assert shown() == expected
        process.stdin.close()


def test_the_version_is_the_package_s() -> None:
    """The version, in the usual attribute and in pip's metadata."""
    assert fastproc.__version__ == importlib.metadata.version("fastproc")


@pytest.mark.filterwarnings("ignore:.* only over an interval")
def test_every_field_is_there_by_every_name(source: str) -> None:
    names = fastproc.fields()
    table = fastproc.processes(list(names), source=source)
    assert table.columns == [key for key, _, _ in names.values()]
    for name, (key, aliases, _) in names.items():
        for other in [name, key, *aliases]:
            assert table[other].key == key


@pytest.mark.filterwarnings("ignore:.* only over an interval")
def test_arrow_has_the_same_values(source: str) -> None:
    table = fastproc.processes(list(fastproc.fields()), source=source)
    arrow = pyarrow.table(table)
    arrow.validate(full=True)
    assert arrow.column_names == table.columns
    for key in table.columns:
        texts = [value for value in table[key].to_list() if isinstance(value, str)]
        if all(text.isprintable() for text in texts):
            assert arrow[key].to_pylist() == table[key].to_list(), key
    assert pyarrow.array(table["pid"]).to_pylist() == table["pid"].to_list()


def test_duckdb_takes_it_by_name(source: str) -> None:
    snapshot = fastproc.processes("pid,comm,rss,read_bytes,cmdline", source=source)
    rows = duckdb.sql("select pid, rss_bytes, read_bytes, cmdline from snapshot").fetchall()
    assert rows == list(zip(*(snapshot[name].to_list() for name in ("pid", "rss", "read_bytes", "cmdline"))))
    counted = duckdb.sql("select count(*), sum(rss_bytes) from snapshot").fetchall()
    assert counted == [(len(snapshot), sum(snapshot["rss"].to_list()))]


def test_arrow_has_no_copy() -> None:
    table = fastproc.processes("pid,rss,minflt")
    for name in ["pid", "minflt"]:
        where = numpy.asarray(table[name]).ctypes.data
        assert pyarrow.table(table)[table[name].key].chunk(0).buffers()[1].address == where
        assert polars.DataFrame(table)[table[name].key].to_numpy().ctypes.data == where


def test_arrow_outlives_the_table() -> None:
    arrow = pyarrow.table(fastproc.processes("pid,comm"))
    assert os.getpid() in arrow["pid"].to_pylist()


def test_a_stream_that_nobody_reads_is_released() -> None:
    table = fastproc.processes("pid,comm,cmdline")
    for _ in range(100):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
        table["cmdline"].__arrow_c_array__()


def test_numbers_are_arrays() -> None:
    column = fastproc.processes("pid,rss")["pid"]
    assert numpy.asarray(column).tolist() == column.to_list()
    assert numpy.asarray(column).dtype == numpy.uint64
    assert not numpy.asarray(column).flags.writeable


def test_unknown_values_are_null() -> None:
    column = fastproc.processes("read_bytes_per_second")["read/s"]
    assert column.null_count == len(column)
    assert set(column.to_list()) == {None}
    assert pyarrow.array(column).null_count == len(column)
    assert numpy.asarray(column).tolist() == column.to_list()


@contextmanager
def running(folder: Path, name: bytes) -> Iterator[int]:
    """A process of this name."""
    program = folder / os.fsdecode(name)
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "600"]) as child:
        try:
            wait_until("its name", lambda: Path(f"/proc/{child.pid}/comm").read_bytes() == name + b"\n")
            yield child.pid
        finally:
            child.kill()


def test_names_that_are_not_text_survive(tmp_path: Path) -> None:
    name = b"a\xff<b>"
    with running(tmp_path, name) as pid:
        condition = f"pid == {pid}"
        text = fastproc.processes("comm", filter=condition)
        assert os.fsencode(text[0].comm) == name
        assert pyarrow.table(text)["comm"].to_pylist() == ["a\ufffd<b>"]
        raw = fastproc.processes("comm", filter=condition, text=False)
        assert raw[0].comm == name
        assert pyarrow.table(raw)["comm"].to_pylist() == [name]
        assert "&lt;b&gt;" in text._repr_html_()


def test_a_filter_takes_names_that_are_not_text(tmp_path: Path) -> None:
    with running(tmp_path, b"a\xffb") as pid:
        (row,) = fastproc.processes("comm", filter=f"pid == {pid}")
        table = fastproc.processes("pid", filter=f"comm == '{row.comm}' && comm =~ '^a(?-u:\\xff)'")
        assert table["pid"].to_list() == [pid]
    for wrong, says in [(f"comm =~ '{row.comm}'", r"\(\?-u:\\xff\)"), (f"comm == 'a\\{row.comm[1:]}'", "backslash")]:
        with pytest.raises(fastproc.FilterError, match=says):
            fastproc.processes("pid", filter=wrong)
        with pytest.raises(fastproc.FilterError, match=says):
            fastproc.Cgroups(filter=wrong.replace("comm", "path"))


def test_columns_of_wide_characters_are_aligned(tmp_path: Path) -> None:
    with running(tmp_path, "\u9032\u7a0b".encode()) as wide, running(tmp_path, b"narrow") as narrow:
        table = fastproc.processes("comm,pid", filter=f"pid == {wide} || pid == {narrow}")
    *lines, _ = repr(table).splitlines()
    widths = {sum(2 if east_asian_width(character) == "W" else 1 for character in line) for line in lines}
    assert len(lines) == 3
    assert len(widths) == 1, lines


def test_rows_are_filtered_and_sorted() -> None:
    table = fastproc.processes("pid,rss", filter="rss > 0", sort="-rss,pid", top=3)
    sizes = table["rss"].to_list()
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)


def test_threads_have_rows() -> None:
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    try:
        table = fastproc.processes("pid,tid", threads=True, filter=f"pid == {os.getpid()}")
        assert thread.native_id in table["tid"].to_list()
    finally:
        done.set()
        thread.join()


def test_a_table_is_shown() -> None:
    table = fastproc.processes()
    assert repr(table).splitlines()[0].split()[:3] == ["PID", "USER", "S"]
    assert table._repr_html_().startswith("<table>")
    assert repr(table[0]).startswith("Row(pid=")
    assert dict(table[-1]) == table[-1].to_dict()
    assert list(table.to_dict()) == table.columns


def test_errors_say_what_to_do() -> None:
    with pytest.raises(fastproc.UnknownField, match="did you mean 'rss'"):
        fastproc.processes("pid,rsss")
    with pytest.raises(fastproc.UnknownField, match=r"fastproc\.fields\(\)"):
        fastproc.processes("pid")["nothing"]
    with pytest.raises(fastproc.FilterError):
        fastproc.processes("pid", filter="rss >")
    with pytest.raises(fastproc.FilterError, match=r"difference\(\)"):
        fastproc.processes("pid", filter="read/s > 1")
    for wrong in [{"sort": "-read_at"}, {"filter": "read_at > 1"}]:
        with pytest.raises(ValueError, match="filter the table itself"):
            fastproc.processes("pid,read_at", **wrong)
    with pytest.raises(AttributeError, match="did you mean 'rss'"):
        _ = fastproc.processes("rss")[0].rsss
    with pytest.warns(UserWarning, match="read_bytes_per_second is known only over an interval"):
        fastproc.processes("read/s")
    with pytest.raises(ValueError, match="not below 0"):
        fastproc.Collector().difference(-1)
    with pytest.raises(ValueError, match="top"):
        fastproc.processes("pid", top=-1)
    with pytest.raises(fastproc.ServiceError, match="fastproc serve") as caught:
        fastproc.Collector("pid", source="service", socket="/nonexistent/socket")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    table = fastproc.processes("pid")
    with pytest.raises(KeyError):
        table["rss"]
    with pytest.raises(IndexError):
        table[len(table)]
    with pytest.raises(AttributeError):
        _ = table[0].nothing
    with pytest.raises(fastproc.UnknownField, match="no field"):
        table[0]["nothing"]
    with pytest.raises(IndexError, match="no place 99 among"):
        table[0][99]


def test_slices_masks_and_comparisons_of_a_table_raise() -> None:
    table = fastproc.processes("pid,comm")
    pid = table["pid"]
    wrong: list[Callable[[], object]] = [
        lambda: pid == 1,
        lambda: pid != 1,
        lambda: pid < 2,
        lambda: pid[:2],
        lambda: table[:2],  # type: ignore[call-overload]
        lambda: table[["pid"]],  # type: ignore[call-overload]
        lambda: table[numpy.asarray(pid)],  # type: ignore[call-overload]
        lambda: table[None],  # type: ignore[call-overload]
    ]
    for one in wrong:
        with pytest.raises(TypeError, match=r"to_polars\(\)"):
            one()


def test_an_empty_table_has_all_columns() -> None:
    empty = fastproc.processes("pid,comm,cmdline,cpus,lstart,read_at,pcpu", filter="pid == 0")
    assert len(empty) == 0
    assert list(empty.to_pandas().columns) == empty.to_polars().columns == empty.columns


def test_a_row_is_the_sequence_of_its_values() -> None:
    row = fastproc.processes("pid,comm")[0]
    pid, comm = row
    assert (pid, comm) == (row.pid, row.comm) == (row[0], row[-1]) == tuple(row)
    assert (len(row), comm in row, row.index(comm), row.count(pid)) == (2, True, 1, 1)


def test_differences_have_rates(source: str) -> None:
    collector = fastproc.Collector("pid,pcpu,minflt/s", source=source)
    collector.mark()
    start = os.times().user
    while os.times().user - start < 0.1:
        pass
    row = own(collector.since_mark())
    assert row.pcpu > 0
    assert row["minflt/s"] is not None


def test_the_gone_are_told() -> None:
    collector = fastproc.Collector("pid")
    with subprocess.Popen(["sleep", "600"]) as child:
        collector.mark()
        child.kill()
    assert child.pid in collector.since_mark().gone


def test_exits_are_rows(source: str) -> None:
    collector = fastproc.Collector("pid,comm,event,exit_code,cmdline,cmdline_cut", source=source, exits=True)
    collector.mark()
    if os.geteuid() != 0:
        with pytest.raises(fastproc.Error):
            collector.exits()
        assert collector.exits_refused
        return
    children = []
    for code in range(3):
        # Of the last one, 4 KiB are kept.
        with subprocess.Popen(["sh", "-c", f"exit {code}", "x" * code * 2500]) as child:
            children.append(child)
    ended: dict[int, fastproc.Row] = {}
    pids = [child.pid for child in children]

    def all_told() -> bool:
        ended.update({row.pid: row for row in collector.exits() if row.pid in pids})
        return len(ended) == len(children)

    wait_until("what has ended is told", all_told)
    assert [ended[child.pid].exit_code >> 8 for child in children] == [0, 1, 2]
    assert {row.event for row in ended.values()} == {"exit"}
    assert {row.cmdline[0] for row in ended.values()} == {"sh"}
    assert [ended[child.pid].cmdline_cut for child in children] == [False, False, True]
    with pytest.raises(fastproc.Error, match="exits=True"):
        fastproc.Collector("pid", source=source).exits()


def test_watching() -> None:
    collector = fastproc.Collector("pid,pcpu")
    assert [os.getpid() in table["pid"].to_list() for table in collector.watch(0.01, 2)] == [True, True]

    async def watch() -> list[int]:
        return [len(table) async for table in collector.watch(0.01, 2)]

    assert all(asyncio.run(watch()))
    with pytest.raises(ValueError, match="interval"):
        collector.watch(0)


def test_threads_share_a_collector() -> None:
    collector = fastproc.Collector("pid,comm,rss")
    found: list[bool] = []

    def work() -> None:
        for _ in range(20):
            found.append(os.getpid() in collector.snapshot()["pid"].to_list())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_the_child_of_a_fork_opens_its_own(source: str) -> None:
    collector = fastproc.Collector("pid", source=source)
    fastproc.processes("pid", source=source)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            try:
                collector.snapshot()
            except fastproc.Forked:
                table = fastproc.processes("pid", source=source)
                status = 0 if os.getpid() in table["pid"].to_list() and fastproc.system().ctxt else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_an_exception_while_iterating_leaves_nothing_behind() -> None:
    def fail(table: fastproc.Table) -> None:
        for row in table:
            raise RuntimeError(row.pid)

    for _ in range(10):
        with pytest.raises(RuntimeError):
            fail(fastproc.processes("pid"))


def resident() -> int:
    """Without pages of files, which the kernel adds and removes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


def test_snapshots_do_not_grow(request: pytest.FixtureRequest, source: str) -> None:
    times: int = request.config.getoption("--snapshots")
    if source == "procfs":
        # It reads files of every process, which takes minutes.
        times //= 10
    names = "pid,comm,rss,utime,user"
    collector = fastproc.Collector(names, source=source)
    ways = [collector.since_mark, collector.snapshot, lambda: fastproc.processes(names, source=source)]

    def work(count: int) -> int:
        most = 0
        for nth in range(count):
            table = ways[nth % len(ways)]()
            table["pid"].to_list()
            pyarrow.table(table)
            most = max(most, len(table))
        return most

    earlier = work(times // 10)
    before = resident()
    # Room for as many processes as ever existed: each reader keeps some KiB per process.
    more = max(0, work(times) - earlier)
    assert resident() - before < (2 << 20) + (16 << 10) * more


@pytest.mark.parametrize(
    "program",
    [
        "import fastproc; c = fastproc.Collector('pid'); c.snapshot()",
        "import fastproc, threading; c = fastproc.Collector('pid'); "
        "t = threading.Thread(target=lambda: [c.snapshot() for _ in range(10**6)], daemon=True); t.start()",
        "import fastproc; w = fastproc.Collector('pid').watch(0.01); next(w)",
        "import fastproc; t = fastproc.processes('pid'); s = t.__arrow_c_stream__()",
    ],
)
def test_the_interpreter_ends_with_a_live_collector(program: str) -> None:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=TIMEOUT, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_subinterpreter_reads_as_well_or_cannot_import_it() -> None:
    inner = (
        "import os\n"
        "try: import fastproc\n"
        "except ImportError as error: assert 'interpreter' in str(error), error\n"
        "else: assert os.getpid() in fastproc.processes('pid')['pid'].to_list()\n"
    )
    program = (
        "import sys, fastproc\n"
        "if sys.version_info >= (3, 13): import _interpreters as s\n"
        "else: import _xxsubinterpreters as s\n"
        "fastproc.processes('pid')\n"
        "one = s.create()\n"
        f"raised = s.run_string(one, {inner!r})\n"
        "assert raised is None, raised\n"
        "s.destroy(one)\n"
        "fastproc.processes('pid')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=TIMEOUT, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_python_m_fastproc_shows_a_table() -> None:
    command = [sys.executable, "-m", "fastproc", "pid,comm", "--sort", "pid", "--top", "3"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert shown.stdout.splitlines()[0].split() == ["PID", "COMM"]
    failed = subprocess.run([*command, "--filter", "x >"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert failed.returncode == 2
    assert "fastproc: " in failed.stderr
    for wrong in [["--interval", "-1"], ["--interval", "1e300"], ["--interval", "nan"], ["--top", "-1"], ["--sort", "read_at"]]:
        failed = subprocess.run([*command, *wrong], capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as nobody:
        ended = subprocess.run(command, stdout=nobody, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
