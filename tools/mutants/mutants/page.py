"""Writes the table of the checks that caught each fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .faults import Fault

BEGIN, END = "<!-- written by make mutants: begin -->", "<!-- end -->"


def line(fault: Fault, result: dict[str, Any] | None) -> str:
    """The row of one fault."""
    if result is None:
        caught, seconds = ("only by `make test-storms`" if fault.storms else "not run yet"), ""
    elif result["caught"]:
        tests = ", ".join(f"`{test}`" for test in result["tests"][:2])
        more = f" and {len(result['tests']) - 2} more" if len(result["tests"]) > 2 else ""
        caught = f"{tests}{more} of `{result['by'].partition(' -- ')[0].removeprefix('cargo test ')}`"
        seconds = f"{result['build_seconds']:.0f} + {result['seconds']:.0f}"
    else:
        caught, seconds = "**nothing**", f"{result['build_seconds']:.0f} + {result['seconds']:.0f}"
    return f"| {fault.name} | {fault.about} | `{fault.file}` | {caught} | {seconds} |"


def write(path: Path, faults: list[Fault], results: dict[str, Any]) -> None:
    """Puts the table between the marks of the page."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    known = [results[fault.name] for fault in faults if fault.name in results]
    lines = [
        f"{len(faults)} faults: {sum(result['caught'] for result in known)} caught, "
        f"{sum(not result['caught'] for result in known)} not caught, {len(faults) - len(known)} not run yet.",
        "",
        "| fault | what it does | where | caught by | seconds to build + to run |",
        "|---|---|---|---|---|",
        *(line(fault, results.get(fault.name)) for fault in faults),
    ]
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
