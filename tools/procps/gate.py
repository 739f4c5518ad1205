"""Notes what was compared and what was repeated, as tools/testbed/src/gate.rs does: `make test` sums up the notes."""

import os
import sys
from pathlib import Path


def repeated(name: str, what: str) -> None:
    """A difference showed, and not again at the second look."""
    # One line for each, whatever is in it.
    line = what.replace("\n", " | ")
    print(f"REPEATED: {name}: {line}", file=sys.stderr, flush=True)
    note(f"repeated {line}: {name}")


def compared(name: str, judged: int, moved: int) -> None:
    """So many values were compared, and so many moved meanwhile and were not judged."""
    note(f"compared {judged} {moved}: {name}")


def note(line: str) -> None:
    """To the file that FASTPROC_NOTES names; nowhere without."""
    path = os.environ.get("FASTPROC_NOTES")
    if path:
        with Path(path).open("a") as notes:
            notes.write(f"{line}\n")
