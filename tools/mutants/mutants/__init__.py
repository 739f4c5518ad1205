"""Seeds faults, and requires that a check fails."""
