"""Parts of tables: selected rows and columns, masks, sums; and tables that are sent to another process."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy
import polars
import pytest

import fastproc

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = "pid,comm,rss,read_bytes,kthread,lstart,cmdline,cpus,read_at,pcpu,nice"


@pytest.fixture(scope="module")
def table() -> fastproc.Table:
    return fastproc.processes(FIELDS)


@pytest.fixture(scope="module")
def empty() -> fastproc.Table:
    return fastproc.processes(FIELDS, filter="pid == 0")


def lists(table: fastproc.Table) -> dict[str, list[object]]:
    return table.to_dict()


def test_slices_and_lists_of_numbers_are_tables(table: fastproc.Table) -> None:
    for part in [slice(3), slice(-2, None), slice(None, None, -1), slice(1, 8, 3), slice(5, 2), slice(9, None, -4)]:
        assert lists(table[part]) == {key: column[part] for key, column in lists(table).items()}
        assert table["cmdline"][part].to_list() == table["cmdline"].to_list()[part]
    for rows in [[0, 2, 1], [-1], [], numpy.array([1, 1])]:
        assert table[rows]["cmdline"].to_list() == [table["cmdline"][row] for row in rows]
        assert table["cpus"][rows].to_list() == [table["cpus"][row] for row in rows]
    part = table[1:3]
    assert (part.source, part.time, part.boottime_ns) == (table.source, table.time, table.boottime_ns)
    assert part.to_arrow().to_pydict()["cmdline"] == table["cmdline"].to_list()[1:3]


def test_a_list_of_names_is_a_table_of_those_columns(table: fastproc.Table) -> None:
    assert table[["comm", "rss", "rss_bytes"]].keys == ["comm", "rss_bytes"]
    assert lists(table[["pid"]]) == {"pid": table["pid"].to_list()}
    with pytest.raises(fastproc.UnknownField, match="did you mean 'rss'"):
        table[["pid", "rsss"]]


def test_a_comparison_is_a_mask_that_selects(table: fastproc.Table) -> None:
    pids = table["pid"].to_list()
    mask = table["pid"] == os.getpid()
    assert mask.to_list() == [pid == os.getpid() for pid in pids]
    assert table[mask]["pid"].to_list() == [os.getpid()]
    assert numpy.asarray(mask).dtype == numpy.bool_
    assert numpy.asarray(table["pid"])[mask].tolist() == [os.getpid()]
    assert table.to_pandas()[numpy.asarray(mask)]["pid"].to_list() == [os.getpid()]
    assert table.to_polars().filter(numpy.asarray(mask))["pid"].to_list() == [os.getpid()]
    # Masks of other packages select as well.
    frame = table.to_pandas()
    assert table[frame["pid"] == os.getpid()]["pid"].to_list() == [os.getpid()]
    assert table[polars.DataFrame(table)["pid"] == os.getpid()]["pid"].to_list() == [os.getpid()]
    assert table[[pid == os.getpid() for pid in pids]]["pid"].to_list() == [os.getpid()]
    assert (numpy.array(pids) == table["pid"]).all()
    assert (table["pid"] == numpy.array(pids)).all()


def test_comparisons_are_python_s(table: fastproc.Table) -> None:
    for name, value in [
        ("pid", 2),
        ("pid", 2.5),
        ("pid", True),
        ("pid", 10**40),
        ("pid", -(10**40)),
        ("pid", float("inf")),
        ("pid", numpy.int32(2)),
        ("pid", numpy.float32(2)),
        ("rss", 1e7),
        ("nice", -1),
        ("pcpu", 0),
        ("comm", "kthreadd"),
        ("comm", "k\udcff"),
        ("kthread", True),
        ("lstart", datetime.now(timezone.utc)),
        ("lstart", datetime.now().astimezone(timezone(timedelta(hours=5)))),
        ("read_at", table[2].read_at),
    ]:
        values = table[name].to_list()
        assert (table[name] == value).to_list() == [one == value for one in values], (name, value)
        assert (table[name] != value).to_list() == [one != value for one in values], (name, value)
        if isinstance(value, str):
            # In the order of their bytes.
            values = [os.fsencode(one) for one in values]
        least = os.fsencode(value) if isinstance(value, str) else value
        assert (table[name] < value).to_list() == [one < least for one in values], (name, value)
        assert (table[name] >= value).to_list() == [one >= least for one in values], (name, value)
    assert (table["pid"] == table["rss"]).sum() == sum(row.pid == row.rss for row in table)
    raw = fastproc.processes("comm", text=False)
    assert (raw["comm"] == b"kthreadd").to_list() == [name == b"kthreadd" for name in raw["comm"].to_list()]


def test_unknown_values_match_no_comparison() -> None:
    column = fastproc.processes("read/s")["read/s"]
    for mask in [column == 0, column != 0, column < 1, column == column[:]]:
        assert not mask.any()
    assert column.is_null().all()
    assert (column.sum(), column.mean(), column.min(), column.max()) == (0, None, None, None)


def test_masks_are_joined(table: fastproc.Table) -> None:
    kernel, big = table["kthread"], table["rss"] > 1 << 22
    pairs = list(zip(kernel.to_list(), big.to_list()))
    assert (kernel & big).to_list() == [one and other for one, other in pairs]
    assert (kernel | big).to_list() == [one or other for one, other in pairs]
    assert (kernel ^ big).to_list() == [one != other for one, other in pairs]
    assert (~big).to_list() == [not other for _, other in pairs]
    assert (big & numpy.asarray(kernel)).tolist() == (kernel & big).to_list()
    assert len(table[~kernel & big]) == (~kernel & big).sum() == sum(other and not one for one, other in pairs)
    assert big.any()
    assert not (big & ~big).any()
    assert (big | ~big).all()


def test_columns_have_sums(table: fastproc.Table) -> None:
    sizes = table["rss"].to_list()
    assert table["rss"].sum() == sum(sizes) == numpy.sum(table["rss"])
    assert (table["rss"].min(), table["rss"].max()) == (min(sizes), max(sizes))
    assert numpy.max(table["rss"]) == max(sizes)
    assert numpy.mean(table["rss"]) == table["rss"].mean() == pytest.approx(sum(sizes) / len(sizes))
    assert table["pcpu"].sum() == pytest.approx(sum(table["pcpu"].to_list()))
    assert table["comm"].max() == max(table["comm"].to_list(), key=os.fsencode)
    assert table["read_at"].min() == min(table["read_at"].to_list())
    known = [size for size in table["read_bytes"].to_list() if size is not None]
    assert table["read_bytes"].sum() == sum(known)
    # Sums do not wrap.
    sets = fastproc.processes("capbnd")["capbnd"]
    assert sets.sum() == sum(sets.to_list())


def test_an_empty_table_has_all_of_it(empty: fastproc.Table) -> None:
    assert len(empty) == 0
    assert empty[:5].keys == empty.keys
    assert len(empty[empty["pid"] == 1]) == 0
    assert (empty["rss"].sum(), empty["rss"].max(), empty["rss"].mean()) == (0, None, None)
    assert list(empty.to_pandas().columns) == empty.to_polars().columns == empty.keys
    assert len(pickle.loads(pickle.dumps(empty))) == 0


def test_wrong_operands_raise_with_what_to_do(table: fastproc.Table) -> None:
    pid = table["pid"]
    for wrong, kind, words in [
        (lambda: pid == "1", TypeError, "a number, and not with str"),
        (lambda: pid == None, TypeError, r"is_null\(\)"),  # noqa: E711
        (lambda: pid == [1], TypeError, "a number, and not with list"),
        (lambda: table["comm"] == 1, TypeError, "a text, and not with int"),
        (lambda: table["cmdline"] == "sh", TypeError, r"to_list\(\)"),
        (lambda: table["lstart"] < 5, TypeError, "a datetime that has a time zone"),
        (lambda: table["lstart"] < datetime(2026, 1, 1), TypeError, "datetime without a time zone"),
        (lambda: bool(pid == 1), ValueError, r"any\(\)"),
        (lambda: pid & pid, TypeError, "no mask"),
        (lambda: ~pid, TypeError, "no mask"),
        (lambda: (pid == 1) & (pid[:1] == 1), ValueError, "of one length"),
        (lambda: pid == pid[:1], ValueError, "of one length"),
        (lambda: table[pid[:1] == 1], IndexError, "a value for each row"),
        (lambda: table[1.5], TypeError, "in brackets"),
        (lambda: table[None], TypeError, "in brackets"),
        (lambda: table[[0, "pid"]], TypeError, "in brackets"),
        (lambda: table[[0, len(table)]], IndexError, "no place"),
        (lambda: table[10**30], IndexError, "no such place"),
        (lambda: table[::0], ValueError, "zero"),
        (lambda: pid[["comm"]], TypeError, "rows"),
        (table["comm"].sum, TypeError, "no sum"),
        (table["lstart"].mean, TypeError, "no mean"),
        (table["cmdline"].min, TypeError, "lists"),
        (pid.any, TypeError, "no mask"),
        (lambda: table[0]["nothing"], fastproc.UnknownField, "no field"),
        (lambda: table[0][99], IndexError, "no place 99 among"),
    ]:
        with pytest.raises(kind, match=words):
            wrong()


def test_a_row_is_the_sequence_of_its_values(table: fastproc.Table) -> None:
    row = table[["pid", "comm"]][0]
    pid, comm = row
    assert (pid, comm) == (row.pid, row.comm) == (row[0], row[-1]) == tuple(row)
    assert (len(row), comm in row, row.index(comm), row.count(pid)) == (2, True, 1, 1)


def first(table: fastproc.Table) -> fastproc.Row:
    return table[0]


def pid_of(row: fastproc.Row) -> int:
    pid: int = row.pid
    return pid


def test_tables_and_rows_go_to_the_processes_of_a_pool(table: fastproc.Table) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert dict(pool.apply(first, (table,))) == dict(table[0])
        assert pool.map(pid_of, table) == table["pid"].to_list()


def test_pickles_have_everything() -> None:
    collector = fastproc.Collector(list(fastproc.fields()))
    collector.mark()
    for table in [collector.snapshot(), collector.since_mark(), fastproc.processes("comm,cmdline", text=False)]:
        again = pickle.loads(pickle.dumps(table))
        assert lists(again) == lists(table)
        for name in ["source", "boottime_ns", "time", "took_ns", "torn", "missed", "gone"]:
            assert getattr(again, name) == getattr(table, name)
        assert again.to_arrow().equals(table.to_arrow())
        assert lists(copy.deepcopy(table)) == lists(table)
        for column in table.columns:
            assert pickle.loads(pickle.dumps(column)).to_list() == column.to_list()
        assert dict(pickle.loads(pickle.dumps(table[-1]))) == dict(table[-1])
    mask = table["comm"] == b"sh"
    assert pickle.loads(pickle.dumps(mask)).to_list() == mask.to_list()


def test_a_pickle_that_is_damaged_is_refused() -> None:
    table = fastproc.processes("pid,comm,cmdline,cpus,kthread,pcpu", filter="pid < 50")
    restore, (kept,) = table.__reduce__()
    assert lists(restore(kept)) == lists(table)
    form, text, origin, columns, gone, exited = kept

    def damaged() -> Iterator[tuple[object, ...]]:
        yield (form + 1, *kept[1:])
        yield (form, text, origin, [], gone, exited)
        yield (form, text, ("nobody", *origin[1:]), columns, gone, exited)
        for at, (subject, key, count, known, buffers) in enumerate(columns):
            changed: list[tuple[object, ...]] = [
                ("cmdline" if subject != "cmdline" else "pid", key, count, known, buffers),
                (subject, key, count + 8, known, buffers),
                (subject, key, count, known[:-1], buffers),
                (subject, key, 2**63, known, buffers),
                (subject, key, count, known, buffers[1:]),
            ]
            for nth, one in enumerate(buffers):
                for other in [bytes(len(one) + 8), one[::-1][8:]]:
                    changed.append((subject, key, count, known, [*buffers[:nth], other, *buffers[nth + 1 :]]))
            for column in changed:
                yield (form, text, origin, [*columns[:at], column, *columns[at + 1 :]], gone, exited)

    for bad in damaged():
        with pytest.raises((ValueError, OverflowError)):
            restore(bad)
    with pytest.raises(fastproc.UnknownField):
        restore((form, text, origin, [("nothing", *columns[0][1:])], gone, exited))
