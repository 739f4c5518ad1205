"""A history, as this package and DuckDB read it: each question of docs/history.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import duckdb
import pytest
from conftest import PRIVILEGED, PROGRAMS, wait_until

import fastproc

PAGE = Path(__file__).parents[2] / "docs/history.md"
FOLDER = "/var/lib/fastproc/history"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some seconds, as if their hour was over."""
    while True:
        folder = tmp_path_factory.mktemp("history")
        record(folder)
        files = list((folder / "open").glob("*.parquet"))
        # A quarter of an hour has files of its own. Another one rarely begins meanwhile, and not twice.
        if len({file.name.split("-")[0] for file in files}) == len(files) and not (folder / "host=here").exists():
            break
    for file in files:
        table, begin, _ = file.name.split("-")
        hour = folder / datetime.fromtimestamp(int(begin), timezone.utc).strftime("host=here/date=%Y-%m-%d/hour=%H")
        hour.mkdir(parents=True, exist_ok=True)
        shutil.move(file, hour / f"{table}.parquet")
    return folder


def record(folder: Path) -> None:
    """Records some seconds, in which a command fails and another one runs."""
    source = "bpf" if PRIVILEGED else "procfs"
    arguments = ["record", "--source", source, "--leave", "0", "--host", "here", "--waits", folder]
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    recorder = subprocess.Popen([PROGRAMS / "fastproc", *arguments])

    def walks() -> int:
        return len(list((folder / "open").glob("machine-*")))

    wait_until("it records", lambda: walks() > 0)
    subprocess.run(["false"], check=False)
    begun = walks()
    wait_until("it has recorded that", lambda: walks() > begun)
    recorder.terminate()
    assert recorder.wait() == 0
    busy.kill()
    busy.wait()


def test_its_rows_are_those_of_the_files(history: Path) -> None:
    ours = fastproc.history(fields="host,time,pid,start_ns,comm,run_ns,gone", folder=history)
    assert ours.source == "history"
    assert (ours["time"].kind, ours["comm"].kind, ours["run_ns"].kind) == ("date", "text", "signed")
    frame = ours.to_arrow()
    columns = "host, time::varchar, pid, start_ns, comm, run_ns, gone"
    files = f"read_parquet('{history}/host=*/date=*/hour=*/processes.parquet')"
    database = duckdb.connect()
    database.register("frame", frame)
    rows = [database.execute(f"select {columns} from {table} order by all").fetchall() for table in ("frame", files)]
    assert len(rows[0]) > 1
    assert rows[0] == rows[1]
    everything = fastproc.history(folder=history, table="identities")
    assert everything.columns[0] == "host"
    assert "command_line" in everything
    assert "run_ns" not in everything


def test_a_window_has_its_first_time_but_not_its_last(history: Path) -> None:
    first, second = fastproc.history(fields="time", folder=history, table="machine")["time"].to_list()[:2]
    for begin, end in [(first, second), (first.isoformat(), second.isoformat())]:
        assert fastproc.history(begin, end, "time", folder=history, table="machine")["time"].to_list() == [first]


def test_a_damaged_file_is_left_out_and_named(history: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(history, tmp_path / "damaged")
    [file] = folder.glob("host=*/date=*/hour=*/processes.parquet")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    file.write_bytes(damaged)
    with pytest.warns(RuntimeWarning, match=r"processes\.parquet is damaged, and left out: .*CRC"):
        assert len(fastproc.history(folder=folder)) == 0


def test_the_lines_of_the_page_work(history: Path) -> None:
    text = (PAGE.parent / "python.md").read_text().replace("/srv/history", str(history))
    [block] = re.findall(r"^```python\n([^`]*fastproc\.history.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(compile(block, "docs/python.md", "exec"))


def test_wrong_arguments_are_refused(history: Path, tmp_path: Path) -> None:
    with pytest.raises(fastproc.UnknownField, match="machine has no column 'pid'; it has host, time,"):
        fastproc.history(fields="pid", folder=history, table="machine")
    with pytest.raises(ValueError, match="no table 'process'; it has processes,"):
        fastproc.history(folder=history, table="process")
    with pytest.raises(ValueError, match="'25:00': give a time of day"):
        fastproc.history("25:00", folder=history)
    with pytest.raises(ValueError, match="earlier"):
        fastproc.history("2026-11-30", "2026-11-29", folder=history)
    with pytest.raises(ValueError, match="at least one"):
        fastproc.history(fields=[], folder=history)
    with pytest.raises(fastproc.Error, match="no host there; it has here"):
        fastproc.history(folder=history, host="there")
    with pytest.raises(fastproc.Error, match="holds no history: fastproc record writes one, and folder="):
        fastproc.history(folder=tmp_path)
    with pytest.raises(KeyError, match="no column 'comm'"):
        fastproc.history(fields="pid", folder=history)["comm"]


def statements(folder: Path) -> list[str]:
    """The statements of the page, of this history and its last second."""
    text = PAGE.read_text().split("\n## Fleets")[0].replace(FOLDER, str(folder))
    blocks = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [statement for block in blocks for statement in block.split(";\n") if statement.strip()]


def test_each_question_is_answered(history: Path) -> None:
    database = duckdb.connect()
    has_exits = any(history.glob("host=*/date=*/hour=*/exits.parquet"))
    questions = []
    for statement in statements(history):
        if "exits*.parquet" in statement and not has_exits:
            # Files of /proc show none.
            columns = "null::timestamptz as time, 'here' as host, '' as boot_id, 0 as pid, 0 as ppid, 0 as start_ns, '' as comm"
            numbers = "utime_ns stime_ns run_delay_ns major_faults read_bytes write_bytes status peak_rss".split()
            columns += "".join(f", 0 as {name}" for name in numbers) + ", '' as command_line, '' as \"user\""
            database.execute(f"create view exits as select {columns} where false")
            continue
        if "timestamptz '" in statement:
            database.execute("set variable moment = (select max(time) from machine)")
        elif statement.lstrip().startswith("select"):
            # DuckDB makes no Python objects of times without pytz.
            questions.append(database.execute(f"select columns(*)::varchar from ({statement.strip().rstrip(';')})").fetchall())
        else:
            database.execute(statement)
    assert len(questions) == 21
    ran, by_user, by_command = questions[:3]
    assert len(ran) > 1
    assert by_user
    assert by_command
    assert questions[17]
    assert not PRIVILEGED or any(comm == "false" for _, _, _, comm, *_ in questions[6])
    assert [row[2] for row in questions[19]] == ["started", "stopped"]
    assert any(state == "R" for state, *_ in questions[20])
