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

    return pandas.DataFrame({column.key: _values(column) for column in table.columns})


def _values(column: Column) -> Any:
    """The values of a column in a form that all versions of pandas accept; a copy, which may be written to."""
    import numpy
    import pandas

    kind, has_nulls = column.kind, column.null_count > 0
    if kind == "real":
        return numpy.array(column.filled(float("nan")))
    if kind in ("unsigned", "signed"):
        numbers = numpy.array(column.filled(0))
        if not len(numbers) or numbers.max() < 1 << 63:
            # Signed, since differences may be negative.
            numbers = numbers.astype("int64")
        return pandas.arrays.IntegerArray(numbers, numpy.array(column.is_null())) if has_nulls else numbers
    values = column.to_list()
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
