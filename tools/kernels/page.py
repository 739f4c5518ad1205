"""docs/dev/kernels.md: the table for users who want to know what works on their kernel."""

from collections.abc import Iterable

from debian import architecture
from judge import SOURCES, Expected
from machine import refuses

HEADING = """\
# Supported kernels

<!-- Written by `make kernels-expected`, from kernels/expected.toml. -->

`make test-kernels` boots Debian's kernels in an emulator. On each, fastproc compares every field of every process, including a
testbed of odd processes, and every line of the machine's counters with the kernel's own files. A difference from this page is a
failure. A value counts as proven if it was equal to the kernel's and not zero. `kernels/expected.toml` has the details.

The newest series moves with the archive. Until `make kernels-expected` lists it here, it is compared with the next older one: the
test fails if a source that loads there does not load, if a counter line that BPF reads there comes from the text, if a value is
wrong, or if fewer fields are compared. Improvements and costs are not compared.
"""

# Remove this once `make kernels-expected` has run every scenario on these kernels.
UNTRIED = """
The programs are compiled on another architecture. 7.3 and the kernel with 16 KiB pages were tried in each circumstance that has a
source, the others in the first three: of the rest, the table shows what x86-64 shows.
"""

COST = """
Reading `stat`, `statm` and `status` of every process takes this many times as many emulated instructions. The numbers show changes,
not speed: the test fails if one of them falls by more than 5 %.
"""

COST_OF_COUNTERS = """
A machine with 255 possible CPUs, one of them online, and thousands of interrupt numbers. `stat` is what fastproc reads instead of
`/proc/stat`, with a count for each number; `stat-kept` the same if these counts may be old (`--stat-irqs-latency`). Reading
`/proc/stat` takes this many times as many instructions, and reading `/proc/interrupts`, which has a column for each online CPU, as
many as the column “to interrupts” says. Below 1 the text is cheaper. The kernel prints unused numbers by copying. fastproc also
reads of each absent CPU whether it was online since the last reading, which takes three calls before Linux 6.2.
"""

AFTER_CIRCUMSTANCES = """
The cells name the source that fastproc used.

\\* also tested with `--stat-irqs-latency`: interrupt counts were reused within the allowed time, were correct, and were then \
read again.
"""

# Words for a scenario, its name, and the program whose source shows the result.
CIRCUMSTANCES = [
    ("root", "conformance", "doctor"),
    ("a user with CAP_BPF and CAP_PERFMON", "conformance", "doctor as reader"),
    ("an unprivileged user", "conformance", "doctor as nobody"),
    ("root, with the service", "service", "doctor"),
    ("an unprivileged user, with the service", "service", "doctor as nobody"),
    ("kptr_restrict=2", "kptr_restrict", "doctor"),
    ("lockdown=confidentiality", "lockdown", "doctor"),
    ("CPUs going offline and online", "hotplug", "doctor"),
    ("swap and huge pages in use", "memory", "doctor"),
    ("hidepid=2, a user with CAP_BPF and CAP_PERFMON", "hidepid", "doctor as reader"),
    ("in a pid namespace", "namespaces", "doctor in pid-namespace"),
    ("in a user namespace", "namespaces", "doctor in user-namespace"),
    ("64 CPUs, hundreds of interrupts", "big", "verify"),
    ("thousands of interrupt numbers", "interrupts", "verify"),
]


def page(expected: Expected) -> str:
    """Make the page."""
    text = HEADING
    for arch, name in (("amd64", "x86-64"), ("arm64", "arm64")):
        series = [one for one in expected.kernels if architecture(one) == arch]
        if series:
            text += f"\n## {name}\n" + (UNTRIED if arch == "arm64" else "")
            text += sources(expected, series) + circumstances(expected, series) + AFTER_CIRCUMSTANCES
            text += ratios(expected, series, "Cost", "ratios", COST)
            text += ratios(expected, series, "Cost of interrupt counts", "counter_ratios", COST_OF_COUNTERS)
            text += refusals(expected, series)
    unused = listed(expected.table["not_in_use"])
    return f"{text}\n## Not proven\n\nNo scenario makes a process use these fields, so they may be zero everywhere: {unused}.\n"


def table(heading: str, rows: Iterable[list[str]]) -> str:
    """Make a table of Markdown; the first row names the columns."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * lines[0].count(" | ") + "---|")
    return f"\n### {heading}\n\n" + "\n".join(lines) + "\n"


def listed(names: Iterable[str]) -> str:
    """Return names, as code."""
    return ", ".join(f"`{name}`" for name in sorted(names))


def sources(expected: Expected, series: list[str]) -> str:
    """Make the table of sources."""
    heading = ["kernel", "source", "`bpf`", "`bpf-iter`", "`procfs`", "fields compared", "counter lines by BPF", "by text"]
    rows = [heading]
    for one in series:
        kernel = expected.kernels[one]
        doctor = expected.finding(one, "conformance", "doctor")
        loads = ["yes" if source in doctor["usable"] else "no" for source in SOURCES]
        text = "all" if "all" in doctor["text"] else str(len(doctor["text"]))
        numbers = [str(kernel["fields"]), str(doctor["lines"]), text]
        rows.append([f"{one} ({kernel['release']})", f"`{doctor['source']}`", *loads, *numbers])
    return table("Sources", rows)


def circumstances(expected: Expected, series: list[str]) -> str:
    """Make the table of circumstances."""
    rows = [["circumstance", *series]]
    for words, scenario, program in CIRCUMSTANCES:
        cells = []
        for one in series:
            shown = expected.finding(one, scenario, program)
            old = " \\*" if shown["old_interrupts"] else ""
            cells.append("–" if refuses(scenario, one, big=True) else f"`{shown['source']}`{old}")
        rows.append([words, *cells])
    return table("Circumstances", rows)


def ratios(expected: Expected, series: list[str], heading: str, key: str, words: str) -> str:
    """Make a table of ratios, if any kernel has some, and words about it."""
    known = {one: expected.kernels[one][key] for one in series if expected.kernels[one].get(key)}
    cases = sorted({case for row in known.values() for case in row})
    if not cases:
        return ""
    rows = [["kernel", *cases]]
    for one, row in known.items():
        rows.append([one, *(f"{row[case]:.1f}" if case in row else "–" for case in cases)])
    return table(heading, rows) + words


def refusals(expected: Expected, series: list[str]) -> str:
    """List what each kernel refuses, and why."""
    text = "\n### Refused\n\n"
    for one in series:
        kernel = expected.kernels[one]
        for what, why in sorted(kernel.get("refused", {}).items()):
            # Other users are served, or refused because of their rights.
            to = ", to root" if what == "service" else ""
            text += f"- Linux {one}, `{what}`{to}: {why}.\n"
        if kernel.get("lines_from_text"):
            text += f"- Linux {one}, lines that come from the text: {listed(kernel['lines_from_text'])}.\n"
        if kernel.get("lines_by_symbols"):
            hidden = listed(kernel["lines_by_symbols"])
            text += f"- Linux {one}, lines that come from the text if the kernel hides its symbols: {hidden}.\n"
    return text
