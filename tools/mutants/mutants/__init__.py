"""Seeds faults, and demands that a check fails."""
