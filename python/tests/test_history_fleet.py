"""The histories of many hosts as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import fleet
import pytest
from conftest import PROGRAMS

import fastproc

if TYPE_CHECKING:
    from pathlib import Path


def test_the_sums_over_a_fleet_are_those_of_each_host(tmp_path: Path) -> None:
    fleet.make(PROGRAMS, tmp_path, 3, 20, 3, 1)
    assert len(fleet.ask(tmp_path)) == 20
    assert fleet.differences(PROGRAMS, tmp_path) == []
    of_hosts = [fleet.ask(tmp_path, f"host-0{number}") for number in range(3)]
    assert of_hosts[0] != of_hosts[1]
    for comm, seconds in fleet.ask(tmp_path).items():
        assert seconds == pytest.approx(sum(sums.get(comm, 0) for sums in of_hosts))
    # No other hour is read: this one cannot be.
    other = tmp_path / "host=host-02/date=2026-11-30/hour=04"
    other.mkdir()
    for table in ("processes", "exits"):
        (other / f"{table}.parquet").write_bytes(b"damaged")
    assert len(fleet.ask(tmp_path)) == 20
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"select count(time) from '{tmp_path}/host=*/date=*/hour=*/processes.parquet'").fetchall()
    with pytest.warns(RuntimeWarning, match="hour=04/processes"):
        hosts = fastproc.history(fields="host,pid", folder=tmp_path)
    assert set(hosts["host"].to_list()) == {"host-00", "host-01", "host-02"}
