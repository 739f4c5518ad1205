"""Converts tables to data frames of other packages, each of which is imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastproc import Column, Table


def to_arrow(table: Table) -> Any:
    import pyarrow

    return pyarrow.table(table)


def to_polars(table: Table) -> Any:
    import polars

    return polars.DataFrame(table)


def to_pandas(table: Table) -> Any:
    import pandas

    return pandas.DataFrame({key: _values(table[key]) for key in table.columns})


def _values(column: Column) -> Any:
    """The values of a column in a form that all versions of pandas accept; a copy, which may be written to."""
    import numpy
    import pandas

    kind, has_nulls = column.kind, column.null_count > 0
    if kind == "real":
        return numpy.array(column.to_list(), dtype="float64") if has_nulls else numpy.array(column)
    if kind in ("unsigned", "signed") and not has_nulls:
        numbers = numpy.array(column)
        # Signed, since differences may be negative.
        return numbers if len(numbers) and numbers.max() >= 1 << 63 else numbers.astype("int64")
    values = column.to_list()
    if kind in ("unsigned", "signed"):
        most = max((value for value in values if value is not None), default=0)
        return pandas.array(values, dtype="Int64" if most < 1 << 63 else "UInt64")
    if kind == "truth":
        return pandas.array(values, dtype="boolean" if has_nulls else "bool")
    if kind == "date":
        return pandas.to_datetime(values, utc=True)
    if kind == "text" and not any(isinstance(value, bytes) for value in values):
        # Since pandas 3 text has its own type, which cannot hold text that is not UTF-8. Arrow replaces it by U+FFFD,
        # too.
        texts = [value if value is None or value.isascii() else _utf8(value) for value in values]
        return pandas.Series(texts, dtype=pandas.Series([""]).dtype)
    return pandas.Series(values, dtype=object)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
