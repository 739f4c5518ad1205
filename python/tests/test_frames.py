"""Data frames of other packages, and their documentation; scripts/test-python runs it with the oldest pandas as
well."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import PRIVILEGED, wait_until

import fastproc

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python/examples"
#: Seconds to wait: the machine may be busy.
TIMEOUT = 600
FIELDS = "pid,comm,rss,read_bytes,cmdline,kthread,lstart,cpus,nice,pcpu,read/s,read_at"


def known(values: list[Any]) -> list[Any]:
    """Replaces NA, NaN and NaT by None."""
    return [None if not isinstance(value, list) and pandas.isna(value) else value for value in values]


def test_to_pandas_has_the_same_values(source: str) -> None:
    table = fastproc.processes(FIELDS, source=source)
    frame = table.to_pandas()
    assert list(frame.columns) == table.columns
    for key, values in expected(table).items():
        assert known(frame[key].to_list()) == values, key
    assert frame["pid"].dtype == "int64"
    assert frame["kthread"].dtype == bool
    assert frame["pcpu"].dtype == frame["read_bytes_per_second"].dtype == "float64"
    assert frame["comm"].dtype == pandas.Series(["a"]).dtype
    for key in ["lstart", "read_at"]:
        assert str(frame[key].dtype).endswith(", UTC]")
    # A difference may be negative, and a copy may be written to.
    assert (frame["pid"] - frame["pid"].max()).min() < 0
    frame.loc[0, "pid"] = 7
    assert frame["pid"][0] == 7


def test_unknown_values_are_na_and_others_exact() -> None:
    table = fastproc.processes("pid,capbnd,sigign")
    frame = table.to_pandas()
    for name in ["capbnd", "sigign"]:
        assert frame[name].to_list() == table[name].to_list()
    if os.geteuid() == 0:
        # Another user, to whom the kernel does not show the I/O of root's processes.
        program = """
import os, subprocess, time, fastproc, numpy, pandas
read = fastproc.processes
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
own = subprocess.Popen(["sleep", "600"])
end = time.monotonic() + 120
while ") S " not in open(f"/proc/{own.pid}/stat").read():
    assert time.monotonic() < end
    time.sleep(0.002)
column = read("pid,read_bytes", source="procfs")["read_bytes"]
series = read("pid,read_bytes", source="procfs").to_pandas()["read_bytes"]
own.kill()
assert column.null_count
assert series.dtype == "Int64", series.dtype
assert series.isna().any() and series.notna().any()
"""
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        subprocess.run([sys.executable, "-c", program], env={**os.environ, **paths}, timeout=TIMEOUT, check=True)


def test_a_data_frame_of_pandas_has_the_columns(source: str) -> None:
    table = fastproc.processes(FIELDS, source=source)
    frame = pandas.DataFrame(table)
    assert list(frame.columns) == table.columns
    assert len(frame) == len(table)
    for key, values in expected(table).items():
        assert known(frame[key].to_list()) == values, key
    assert list(pandas.DataFrame(list(table)[:2]).columns) == table.columns


def test_polars_and_arrow_have_the_same_values(source: str) -> None:
    table = fastproc.processes(FIELDS, source=source)
    for other in [table.to_polars().to_dict(as_series=False), table.to_arrow().to_pydict()]:
        assert other == {key: clean(values) for key, values in table.to_dict().items()}


def expected(table: fastproc.Table) -> dict[str, list[Any]]:
    """The contents of a frame: texts are UTF-8, except those in lists of pandas."""
    return {key: values if table[key].kind == "arguments" else clean(values) for key, values in table.to_dict().items()}


def clean(value: Any) -> Any:
    """Texts as in Arrow: UTF-8."""
    if isinstance(value, list):
        return [clean(item) for item in value]
    return os.fsencode(value).decode("utf-8", "replace") if isinstance(value, str) else value


def test_frames_have_names_that_are_not_utf8(tmp_path: Path) -> None:
    program = tmp_path / os.fsdecode(b"a\xff")
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "600"]) as child:
        try:
            wait_until("its name", lambda: Path(f"/proc/{child.pid}/comm").read_bytes() == b"a\xff\n")
            table = fastproc.processes("comm", filter=f"pid == {child.pid}")
            assert table.to_pandas()["comm"][0] == table.to_polars()["comm"][0] == "a\ufffd"
            assert pandas.DataFrame(table)["comm"][0] == "a\ufffd"
            assert os.fsencode(table[0].comm) == os.fsencode(table[0][0]) == b"a\xff"
            assert fastproc.processes("comm", filter=f"pid == {child.pid}", text=False).to_pandas()["comm"][0] == b"a\xff"
        finally:
            child.kill()


def test_a_table_says_when_it_was_read(source: str) -> None:
    collector = fastproc.Collector("pid,read_at", source=source, exits=source == "bpf")
    collector.mark()
    # The clock is kept in whole microseconds, rounded down.
    before = datetime.now(timezone.utc)
    with subprocess.Popen(["true"]):
        pass
    table = collector.snapshot() if source == "procfs" else collector.since_mark()
    after = datetime.now(timezone.utc)
    assert before <= table.time <= after
    read = table["read_at"].to_list()
    assert all(table.time <= time <= after for time in read)
    assert read == sorted(read)
    if source == "procfs":
        # It takes long enough to be seen.
        assert read[0] < read[-1]
    if table.exited is not None:
        ends = table.exited["read_at"].to_list()
        assert all(end is None or end <= after for end in ends)
    assert fastproc.fields()["read_at"][0] == "read_at"
    assert repr(table).split()[:2] == ["PID", "READ_AT"]


@pytest.mark.parametrize("document", ["docs/python.md", "python/README.md", "README.md"])
def test_every_line_of_the_documents_works(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        if "fastproc.history(" in block:
            continue  # test_history.py has a history
        exec(compile(block, document, "exec"), {"__name__": "__main__"})


def test_every_cell_of_the_notebook_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a notebook like Jupyter: the last expression of a cell is shown."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "processes.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    shown = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]))
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, cell["id"], "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            html = getattr(value, "_repr_html_", None)
            assert html() if html is not None else repr(value)
            shown += 1
    assert shown > 5
    assert os.getpid() in names["again"]["pid"].to_list()


def test_the_recorder_writes_what_all_frames_read(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    began = datetime.now(timezone.utc)
    command = [sys.executable, EXAMPLES / "record.py", folder, "--interval", "0.05", "--minutes-a-file", "0.002"]
    with subprocess.Popen([*command, "--filter", f"pid == {os.getpid()}"], stderr=subprocess.PIPE) as recorder:
        # It continues until it is stopped, and loses nothing then.
        deadline = time.monotonic() + TIMEOUT
        while len(list(folder.glob("*.parquet"))) < 2:
            assert recorder.poll() is None, "the recorder has ended"
            assert time.monotonic() < deadline, "there are no two files"
            time.sleep(0.01)
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(TIMEOUT) == 0
    assert not list(folder.glob("*.unfinished"))
    day = pandas.read_parquet(folder)
    assert set(day["pid"]) == {os.getpid()}
    assert day["read_at"].is_unique
    assert day["read_at"].min() > began
    assert day["rss_bytes"].min() > 0
    assert polars.read_parquet(folder / "*.parquet").height == pyarrow.parquet.read_table(folder).num_rows == len(day)
    ended = subprocess.run(
        [*command, "--hours", "0", "--filter", "x >"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("record.py: ")
    assert "Traceback" not in ended.stderr


def test_the_first_rows_are_a_table() -> None:
    table = fastproc.processes("pid,read_bytes,kthread,comm,cmdline,cpus")
    head = table.head(7)
    assert (head.shape, head.columns) == ((7, 6), table.columns)
    assert list(map(tuple, head)) == list(map(tuple, table))[:7]
    assert table.head(len(table) + 9).shape == table.shape
    # Of top they are those of ps.
    shares = fastproc.processes("pcpu", top=9)["pcpu"].to_list()
    assert shares == sorted(shares, reverse=True)


def test_exits_of_some_time_are_a_table() -> None:
    if not PRIVILEGED:
        with pytest.raises(fastproc.Error, match="run Python as root"):
            fastproc.exits()
        return

    with subprocess.Popen(["sh", "-c", "while :; do sh -c 'exit 3'; done"]) as parent:

        def has_exits() -> bool:
            table = fastproc.exits("ppid,status", seconds=0.3, filter=f"ppid == {parent.pid}", top=2)
            return set(map(tuple, table)) == {(parent.pid, "3")}

        try:
            wait_until("exits are in a table", has_exits)
        finally:
            parent.kill()
