"""Figures of a run of a benchmark, as text and tables."""

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def short(number: float | None) -> str:
    """Three digits."""
    if number is None:
        return "–"
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """In Markdown: the first column is text, the others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def median(row: Row, key: str) -> float:
    return float(row[key]["median"])


def spread(row: Row, key: str) -> str:
    return f"{short(row[key]['min'])} – {short(row[key]['max'])}"
