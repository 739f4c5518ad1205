"""Counts of comparisons, and the values that were outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .rules import FLICKER, OUTSIDE, RIGHT, UNKNOWN, Verdict

EXAMPLES = 5


@dataclass
class Tally:
    """The counts of one or more runs."""

    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    outside: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    # Rows by source, and whether they come from the kernel's text.
    rows: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def add(self, run: tuple[str, str], kind: str, name: str, value: Any, verdict: Verdict, where: str) -> None:
        """Counts a compared value; `run` is the storm and the source."""
        storm, source = run
        self.counts[storm, source, kind, verdict.outcome] += 1
        if verdict.outcome == OUTSIDE:
            key = storm, source, name
            self.outside[key] += 1
            examples = self.examples.setdefault(key, [])
            if len(examples) < EXAMPLES:
                examples.append(f"{where}: {_short(value)}; the kernel: {verdict.expected}")

    def total(self, outcome: str) -> int:
        """The number of values with this outcome."""
        return sum(count for (*_, one), count in self.counts.items() if one == outcome)

    def compared(self) -> int:
        """The number of values that could be compared."""
        return self.total(RIGHT) + self.total(FLICKER) + self.total(OUTSIDE)

    def compared_by(self, source: str) -> int:
        """The same for one source."""
        outcomes = (RIGHT, FLICKER, OUTSIDE)
        return sum(count for (_, one, _, outcome), count in self.counts.items() if one == source and outcome in outcomes)

    def texts_of(self, source: str) -> float:
        """The share of the source's rows that come from the kernel's text, because their records were torn."""
        return self.rows[source, True] / max(1, self.rows[source, True] + self.rows[source, False])

    def of(self, storm: str, source: str) -> Counter[str]:
        """The outcomes of one run."""
        out: Counter[str] = Counter()
        for (one, other, _, outcome), count in self.counts.items():
            if (one, other) == (storm, source):
                out[outcome] += count
        return out

    def as_json(self) -> dict[str, Any]:
        """All results, for programs."""
        return {
            "compared": self.compared(),
            "outside": self.total(OUTSIDE),
            "flickering": self.total(FLICKER),
            "unbracketed": self.total(UNKNOWN),
            "counts": [
                {"storm": storm, "source": source, "class": kind, "outcome": outcome, "count": count}
                for (storm, source, kind, outcome), count in sorted(self.counts.items())
            ],
            "faults": [
                {
                    "storm": storm,
                    "source": source,
                    "field": name,
                    "count": count,
                    "examples": self.examples[storm, source, name],
                }
                for (storm, source, name), count in self.outside.most_common()
            ],
        }

    def report(self, short: bool) -> str:
        """A table for people, and the faults; short: without the table."""
        lines = [f"{'storm':<13} {'source':<9} {'class':<18} {'compared':>9} {'flicker':>8} {'outside':>8} {'unframed':>8}"]
        groups = sorted({key[:3] for key in self.counts})
        if short:
            lines, groups = [], []
        for storm, source, kind in groups:
            right, flicker, outside, unknown = (
                self.counts[storm, source, kind, outcome] for outcome in (RIGHT, FLICKER, OUTSIDE, UNKNOWN)
            )
            total = right + flicker + outside
            lines.append(f"{storm:<13} {source:<9} {kind:<18} {total:>9} {flicker:>8} {outside:>8} {unknown:>8}")
        for (storm, source, name), count in self.outside.most_common():
            lines.append(f"OUTSIDE {count} times: {name} in {storm} by {source}")
            lines += [f"    {example}" for example in self.examples[storm, source, name]]
        lines.append(
            f"{self.compared()} comparisons: {self.total(OUTSIDE)} outside, {self.total(FLICKER)} flickered and were possible; "
            f"{self.total(UNKNOWN)} more could not be framed"
        )
        return "\n".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else text[:200] + "…"
