"""A history, as DuckDB reads it: each question of docs/history.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest
from conftest import PRIVILEGED, PROGRAMS, wait_until

PAGE = Path(__file__).parents[2] / "docs/history.md"
FOLDER = "/var/lib/fastproc/history"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some seconds, as if their hour was over."""
    folder = tmp_path_factory.mktemp("history")
    source = "bpf" if PRIVILEGED else "procfs"
    record = [PROGRAMS / "fastproc", "record", "--source", source, "--leave", "0", "--host", "here", folder]
    recorder = subprocess.Popen(record)

    def walks() -> int:
        return len(list((folder / "open").glob("machine-*")))

    wait_until("it records", lambda: walks() > 0)
    subprocess.run(["false"], check=False)
    begun = walks()
    wait_until("it has recorded that", lambda: walks() > begun)
    recorder.terminate()
    assert recorder.wait() == 0
    hour = folder / "host=here/date=2026-11-30/hour=02"
    hour.mkdir(parents=True)
    for file in (folder / "open").glob("*.parquet"):
        table = file.name.split("-")[0]
        assert not (hour / f"{table}.parquet").exists(), "a recorder that has ended leaves one file a table"
        shutil.copy(file, hour / f"{table}.parquet")
    return folder


def statements(folder: Path) -> list[str]:
    """The statements of the page, of this history and its last second."""
    text = PAGE.read_text().replace(FOLDER, str(folder))
    blocks = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [statement for block in blocks for statement in block.split(";\n") if statement.strip()]


def test_each_question_is_answered(history: Path) -> None:
    database = duckdb.connect()
    exits = history / "host=here/date=2026-11-30/hour=02/exits.parquet"
    questions = []
    for statement in statements(history):
        if "exits*.parquet" in statement and not exits.exists():
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
    assert len(questions) == 20
    ran, by_user, by_command = questions[:3]
    assert len(ran) > 1
    assert by_user
    assert by_command
    assert any("record" in line for _, line, _ in questions[17]), "this recorder has a command line"
    assert not PRIVILEGED or any(comm == "false" for _, _, _, comm, *_ in questions[6])
    assert [row[2] for row in questions[19]] == ["started", "stopped"]
