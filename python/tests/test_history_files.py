"""Other engines read the files of a history as they are."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest
from conftest import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

#: The first second of the sample.
BEGIN = datetime(2026, 3, 1, 10, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of ten processes and a minute, which the Rust crate writes."""
    path = tmp_path_factory.mktemp("history") / "processes.parquet"
    subprocess.run([PROGRAMS / "examples/sample", path], check=True)
    return path


def test_arrow_reads_types_nulls_and_meanings(sample: Path) -> None:
    file = pyarrow.parquet.ParquetFile(sample)
    schema = file.schema_arrow
    assert schema.field("time").type == pyarrow.timestamp("us", tz="UTC")
    assert schema.field("pid").type == pyarrow.int64()
    assert schema.field("comm").type == pyarrow.string()
    assert file.metadata.metadata[b"fastproc.table"] == b"processes"
    assert file.metadata.metadata[b"fastproc.column.run_ns"].startswith(b"ns: ")
    chunk = file.metadata.row_group(0).column(schema.get_field_index("run_ns"))
    assert (chunk.encodings, chunk.compression) == (("RLE", "DELTA_BINARY_PACKED"), "ZSTD")
    assert chunk.has_column_index
    assert chunk.has_offset_index
    table = file.read()
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["time"], first["pid"], first["comm"], first["gone"]) == (BEGIN, 100, "naïve-0", None)
    assert table["gone"].null_count == table.num_rows
    assert table["run_ns"].null_count == 0
    assert chunk.statistics.max == pyarrow.compute.max(table["run_ns"]).as_py()


def test_duckdb_reads_types_and_asks_by_time(sample: Path) -> None:
    rows = f"read_parquet('{sample}')"
    types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {rows})").fetchall())
    assert types["time"] == "TIMESTAMP WITH TIME ZONE"
    assert types["pid"] == types["run_ns"] == types["gone"] == "BIGINT"
    assert types["boot_id"] == types["comm"] == "VARCHAR"
    asked = f"SELECT count(DISTINCT pid), count(gone), min(comm) FROM {rows} WHERE time = '2026-03-01 10:00:00+00'"
    assert duckdb.sql(asked).fetchall() == [(10, 0, "naïve-0")]
