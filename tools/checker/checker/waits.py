"""How long threads waited for a CPU: their own schedstat, and the sum of those of a process."""

from __future__ import annotations

from typing import Any

from . import kernel
from .rules import FLICKER, NOT_KNOWN, OK, Moment, Rule, Verdict, grows, part, rate, wrong


def _threads_change(moment: Moment) -> bool:
    """Whether threads may have exited: what they waited is then in no file. A zombie may have had threads."""
    return "num_threads" in moment.volatile | moment.passing or moment.row["state"] == "Z"


def waits(name: str) -> Rule:
    """A number of schedstat: of a thread its own; of a process the sum of its threads, and what exited ones have left."""
    own = grows(part("schedstat", name))

    def rule(moment: Moment, value: Any) -> Verdict:
        if moment.is_thread:
            return OK if value is None and _never_ran(moment) else own(moment, value)
        before, after = moment.before("schedstats"), moment.after("schedstats")
        if before is None or after is None:
            return NOT_KNOWN
        first, last = kernel.schedstat(before), kernel.schedstat(after)
        is_alone = all(kernel.schedstat(text)["threads"] == "1" for text in moment.texts("schedstats"))
        changes = _threads_change(moment)
        if value is None:
            # The source that reads text does not open a file for each thread.
            return OK if (moment.of_text and (changes or not is_alone)) or _never_ran(moment) else wrong("a number")
        low, high = int(first[name]), int(last[name])
        if value < low:
            # While a thread exits, or if a source cannot read what exited ones waited.
            return Verdict(FLICKER, f"at least {low}") if changes else wrong(f"at least {low}")
        if value > high and is_alone and not changes:
            return wrong(f"at most {high}")
        return OK

    return rule


def _never_ran(moment: Moment) -> bool:
    return b"0 0 0\n" in moment.texts("schedstat")


_OF_THREAD = rate("run_delay", 100 / 1e9, bound=True)
_OF_PROCESS = rate("run_delay", 100 / 1e9, bound=False)


def share(moment: Moment, value: Any) -> Verdict:
    """The share of time that was waited."""
    if moment.row["run_delay"] is None or moment.previous is None or moment.previous.get("run_delay") is None:
        return OK if value is None or value >= 0 else wrong("not negative")
    if moment.is_thread:
        return _OF_THREAD(moment, value)
    if _threads_change(moment) or moment.of_text:
        # The sum may have been less for a moment, or have come from the text, and nothing counts twice.
        return OK if value is None or value >= 0 else wrong("not negative")
    return _OF_PROCESS(moment, value)


def delay(_: Moment, value: Any) -> Verdict:
    """A time of delay accounting, of which the kernel shows only one in a file: unknown, or possible."""
    return OK if value is None or 0 <= value < 1 << 63 else wrong("not known, or a time")
