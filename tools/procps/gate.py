"""Notes comparisons and repeats, as tools/testbed/src/gate.rs does: `make test` sums up the notes."""

import os
import sys
from pathlib import Path


def repeated(name: str, what: str) -> None:
    """A difference showed, and did not show again in the second round."""
    # One line for each, whatever it contains.
    line = what.replace("\n", " | ")
    print(f"REPEATED: {name}: {line}", file=sys.stderr, flush=True)
    note(f"repeated {line}: {name}")


def compared(name: str, judged: int, moved: int) -> None:
    """This number of values was compared; the others changed meanwhile and were not judged."""
    note(f"compared {judged} {moved}: {name}")


def note(line: str) -> None:
    """Appends to the file that FASTPROC_NOTES names, if set."""
    path = os.environ.get("FASTPROC_NOTES")
    if path:
        with Path(path).open("a") as notes:
            notes.write(f"{line}\n")
