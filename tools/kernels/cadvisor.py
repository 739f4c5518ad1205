"""Compares metrics of cgroups with those of cAdvisor, series by series."""

import re

# Series that may differ, as docs/cadvisor.md says: what the kernel's log named since it started, a counter of version 1, and
# how full file systems are, which changes.
DIFFERENT = [
    "container_oom_events_total",
    "container_memory_kernel_usage",
    "container_fs_usage_bytes",
    "container_fs_inodes_free",
]
Series = dict[tuple[str, tuple[str, ...]], float]


def series(text: str) -> Series:
    """Return the values by metric and labels, without empty labels. No value of these labels has a comma."""
    found = {}
    for name, labels, value in re.findall(r"(?m)^(\w+)\{(.*?)\} (\S+)", text):
        kept = sorted(label for label in labels.split(",") if not label.endswith('=""'))
        found[name, tuple(kept)] = float(value)
    return found


def compare(before: str, ours: str, after: str) -> tuple[list[str], list[str]]:
    """Return facts, and what is wrong. `before`, `after`: what cAdvisor served around ours."""
    types = [dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)", text)) for text in (before, ours)]
    wrong = [f"{name} is a {kind}" for name, kind in types[1].items() if types[0].get(name, kind) != kind]
    theirs, own, later = series(before), series(ours), series(after)
    equal = above_zero = 0
    facts: list[str] = []
    for key in theirs.keys() & own.keys():
        # Times of theirs have microseconds.
        if any(abs(own[key] - other) <= abs(other) * 1e-9 + 1.1e-6 for other in (theirs[key], later.get(key, theirs[key]))):
            equal += 1
            above_zero += theirs[key] != 0
        else:
            (facts if key[0] in DIFFERENT else wrong).append(f"{key}: {own[key]} instead of {theirs[key]}")
    facts.append(f"{equal} series that both have are equal, {above_zero} of them above zero")
    for who, these, those in (("cAdvisor", theirs, own), ("fastproc", own, theirs)):
        facts.append(
            f"metrics with series that only {who} has: {' '.join(sorted({name for name, _ in these.keys() - those.keys()}))}"
        )
    if above_zero <= 50:
        wrong.append(f"only {above_zero} series were compared")
    return facts, wrong
