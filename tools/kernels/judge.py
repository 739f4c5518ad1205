"""From a guest's report to findings, and how they differ from what kernels/expected.toml expects of a kernel.

A finding is what one program showed, reduced to what must not change: a dictionary with the keys of `finding()`.
"""

import json
import re
from typing import Any

import cadvisor
from debian import numbers, split

Json = Any
Finding = dict[str, Any]

# Fields of schedstat, which `verify` renders from records of threads, but not from those of the source procfs.
OF_SCHEDSTAT = 3
# The best first.
SOURCES = ["bpf", "bpf-iter", "procfs"]
# The smallest relative fall of a ratio that counts as a defect. Instructions are counted, so the same programs on the same
# kernel differ by less than a hundredth from run to run.
WORSE = 0.05
# Values that storms compare at least, all runs together.
STORMS = {"namespace_storms": 10_000, "cgroup_storms": 100_000, "storms_32": 20_000, "storms_255": 20_000}
# How many times cheaper a thousand cgroups are at least by BPF, on 6.12 and 7.3.
CGROUP_COSTS = {"cgroup_cost": {"open-14": 72, "kept-14": 27}, "cgroup_cost_big": {"open-14": 60, "kept-14": 23}}


def finding(**known: Any) -> Finding:
    """Return a finding that shows nothing but what is known."""
    nothing: Finding = {"status": 0, "error": "", "source": "", "usable": [], "refused": {}, "service": "", "fields": 0}
    return nothing | {"lines": 0, "text": set(), "old_interrupts": False, "groups": {}, "ratios": {}} | known


class Outcome:
    """A scenario on a kernel: what its programs showed, and what is wrong in any case."""

    def __init__(self, series: str, scenario: str, text: str, given_up: str) -> None:
        self.series = series
        self.scenario = scenario
        self.found: dict[str, Finding] = {}
        self.unproven: dict[str, set[str]] = {}
        self.wrong: list[str] = []
        self.facts: list[str] = []
        self.reports: list[Json] = []
        self.metrics: list[str] = []
        complete = re.search(rf"(?ms)^@begin {scenario} \S+$(.*?)^@end {scenario}$", text)
        if not complete:
            # What follows from a part of a report says nothing.
            self.wrong.append(given_up or "the kernel panicked or restarted before the end of the scenario")
            self.wrong += re.findall(r"(?m)^@wrong (.*)$", text.partition(f"@begin {scenario} ")[2].partition("\n@begin ")[0])
            return
        part = complete[1]
        runs = re.findall(r"(?ms)^@run (.*?)$\n(.*?)^@status (\d+)$", part)
        for name, said, status in runs:
            shown = {
                mark: re.sub(rf"(?m)^{re.escape(mark)}", "", "".join(re.findall(rf"(?m)^{re.escape(mark)}.*\n", said)))
                for mark in "|!"
            }
            self.program(name, int(status), shown["|"], shown["!"])
        self.wrong += re.findall(r"(?m)^@wrong (.*)$", part)
        self.facts += re.findall(r"(?m)^@fact (.*)$", part)
        if scenario == "cadvisor" and len(self.metrics) == 3:
            facts, wrong = cadvisor.compare(*self.metrics)
            self.facts += facts
            self.wrong += wrong
        checked = re.findall(r"(?m)^@ok ", part)
        if checked:
            self.facts.append(f"{len(checked)} checks passed")
        if not runs and not checked and not self.wrong:
            self.wrong.append("no program was run, and nothing was checked")
        if scenario in STORMS:
            self.storm(STORMS[scenario])

    def program(self, name: str, status: int, out: str, errors: str) -> None:
        """Take what a program showed."""
        found = self.found[name] = finding(status=status)
        kind = name.split(" ")[0]
        first = (errors.splitlines() or [""])[0].rstrip(":")
        try:
            if kind == "verify" and status == 2:
                # The program says why it cannot verify that source here: the table shows whether that was expected.
                found["error"] = first
            elif kind == "verify" and status in (0, 1):
                self.verify(name, found, whole(out))
            elif kind == "doctor" and status == 0:
                doctor(found, whole(out))
            elif kind == "bench" and status == 0:
                ratios(found, whole(out))
            elif kind == "metrics" and status == 0:
                self.metrics.append(out)
                del self.found[name]
            elif kind == "cost" and status == 0:
                self.cost(name, whole(out))
            else:
                self.wrong.append(f"{name}: status {status}: {first} {out[-2000:] if status else ''}".strip())
        except (ValueError, KeyError, TypeError) as error:
            self.wrong.append(f"{name}: its output is not understood: {error!r}")

    def verify(self, name: str, found: Finding, report: Json) -> None:
        """Take a report of `verify`: of processes and the machine, or of cgroups."""
        self.reports.append(report)
        if report["verify"] == "cgroups":
            wrong = [f"{report['wrong']} values are wrong: {report['examples']}"] if report["wrong"] else []
            del self.found[name]
            self.facts.append(f"{name}: {report['compared']} values compared")
        else:
            compared = [field for field in report["fields"] if field["compared"]]
            found["source"] = report["source"]
            found["fields"] = len(compared)
            idle = [field for field in compared if not field["equal"] or not field["nonzero"]]
            self.unproven[name] = {f"{field['file']} {field['field']}" for field in idle}
            counters = [line for line in report["counters"] if line["compared"]]
            found["lines"], found["text"] = by_source((line["file"], line["line"], line["from"]) for line in counters)
            if self.scenario == "hotplug" and found["lines"]:
                # Chance decides which lines are read during a change, and come from the text until the next.
                found["lines"], found["text"] = 0, set()
            old = report.get("aged_interrupts") or {"compared": 0}
            found["old_interrupts"] = bool(old["compared"] and old["kept"] and old["renewed"])
            texts = report["machine_texts"]
            judged = [*report["fields"], *report["texts"], *texts, *report["counters"], *([old] if old["compared"] else [])]
            wrong = [str(one) for one in judged if one["wrong"]]
            if report["wrong"] and not wrong:
                wrong = [f"{report['wrong']} values are wrong"]
            if not texts or not all(text["compared"] for text in texts):
                wrong.append("the machine's files were not compared as a whole")
        if not report["compared"]:
            wrong.append("nothing was compared")
        self.wrong += [f"{name}: {one}" for one in wrong]

    def cost(self, name: str, report: Json) -> None:
        """Take the cost of cgroups, or only show a cost."""
        rows = {row["case"]: row for row in report["rows"]}
        for than, times in CGROUP_COSTS.get(self.scenario, {}).items():
            medians = [rows[case]["cpu_us_per_cgroup"]["median"] for case in (than, "bpf-pressure")]
            if medians[0] < times * medians[1]:
                self.wrong.append(f"{medians[0] / medians[1]:.1f} times cheaper than {than}; at least {times} are expected")
        del self.found[name]
        for case, row in rows.items():
            self.facts.append(f"{name}: {case}: {json.dumps(row)}")

    def storm(self, enough: int) -> None:
        """Check that all comparisons of a storm together are many, and that no process was missing."""
        compared, missing = (sum(report.get(key) or 0 for report in self.reports) for key in ("compared", "missing"))
        self.found = {}
        self.facts.append(f"{compared} values compared in {len(self.reports)} runs")
        if compared < enough or missing:
            self.wrong.append(f"{compared} values compared, of at least {enough}; {missing} processes were missing")


def whole(out: str) -> Json:
    """Return an object of JSON; the names of test processes may come before."""
    return json.loads(out[max(out.find("{"), 0) :])


def doctor(found: Finding, report: Json) -> None:
    """Take a report of `doctor`."""
    for source in report["sources"]:
        if source["usable"]:
            found["usable"].append(source["source"])
        else:
            found["refused"][source["source"]] = reason(source["error"])
    found["source"] = report["source"]
    found["groups"] = {group["group"]: group["from"] for group in report["fields"] if group["from"] != report["source"]}
    if report["service"].get("version") is not None:
        serves = report["service"].get("shares") is not None
        found["service"] = "serves" if serves else reason(report["service"]["error"])
    counters = report["counters"]
    if not counters["available"]:
        found["error"] = reason(counters["error"])
    found["lines"], found["text"] = by_source((line["file"], line["line"], line["from"]) for line in counters["lines"])


def reason(text: str | None) -> str:
    """Return the first line of a reason."""
    return (text or "no reason is given").splitlines()[0].rstrip(":")


def by_source(lines: Any) -> tuple[int, set[str]]:
    """Return the number of lines that come from a program, and those that come from the text; all CPUs are one line."""
    read: set[str] = set()
    text: set[str] = set()
    for file, line, source in lines:
        (read if source == "bpf" else text).add(f"{file} {re.sub(r'^cpu.+', 'cpuN', line)}")
    return len(read), text if read or not text else {"all"}


def ratios(found: Finding, report: Json) -> None:
    """Take the costs of fastproc's cases, in relation to those of the kernel's texts."""
    # Of a machine whose clock counts instructions, and which does nothing else. The CPU time of Linux 5.10 lags behind.
    wall = {row["case"]: row.get("wall_us_per_process", {}).get("median") for row in report["rows"]}
    for row in report["rows"]:
        if not row["case"].startswith("proc-"):
            if text := wall.get("proc-3files"):
                found["ratios"][row["case"]] = round(text / wall[row["case"]], 2)
            else:
                found["ratios"][row["case"]] = round(row["ratio_vs_proc_stat"], 2)
                found["ratios"][row["case"] + " to interrupts"] = round(row["ratio_vs_proc_interrupts"], 2)


class Expected:
    """What is expected of each kernel: kernels/expected.toml."""

    def __init__(self, table: Json) -> None:
        self.table = table
        self.kernels: dict[str, Json] = table.setdefault("kernels", {})

    def stand_in(self, series: str) -> str | None:
        """Return the series with which one is compared: itself, or the next older one of its flavour."""
        older = [one for one in self.kernels if split(one)[1] == split(series)[1] and numbers(one) <= numbers(series)]
        return max(older, key=numbers, default=None)

    def circumstance(self, series: str, scenario: str, program: str) -> dict[str, str]:
        """Combine everything that changes what a kernel permits to a program."""
        together: dict[str, str] = {}
        for one in self.table.get("circumstances", []):
            applies = one.get("scenario") in (None, scenario) and program.endswith(one.get("reader", ""))
            if applies and ("older_than" not in one or numbers(series) < numbers(one["older_than"])):
                together |= one
        return together

    def finding(self, series: str, scenario: str, program: str) -> Finding:
        """Return what is expected of a program in a scenario on a kernel that has a row."""
        kernel = self.kernels[series]
        circumstance = self.circumstance(series, scenario, program)
        # A kernel's own reason only holds for root.
        own = kernel.get("refused", {})
        service = (own.get("service") if " as " not in program else None) or circumstance.get("service_because") or "serves"
        refused = {}
        for source in ("bpf", "bpf-iter"):
            alone = circumstance.get("bpf_because") if source == "bpf" else None
            if why := circumstance.get("procfs_because") or alone or own.get(source):
                refused[source] = why
        usable = [source for source in SOURCES if source not in refused]
        expected = finding()
        text = circumstance.get("text_because") or own.get("counters")
        if text:
            counters = {"error": text, "lines": 0, "text": {"all"}}
        else:
            hidden = kernel.get("lines_by_symbols", []) if circumstance.get("symbols_hidden") else []
            lines = max(kernel["lines"] - len(hidden), 0)
            counters = {"lines": lines, "text": {*kernel.get("lines_from_text", []), *hidden}}
        kind, _, rest = program.partition(" ")
        if kind == "bench":
            expected["ratios"] = kernel.get("counter_ratios" if rest == "counters" else "ratios", {})
        elif kind == "doctor":
            expected |= {"usable": usable, "source": usable[0], "refused": refused} | counters
            if scenario == "service":
                expected["service"] = service
        elif kind == "verify":
            if rest in refused:
                return finding(status=2, error=f"fastproc: {refused[rest]}")
            # `doctor` reports the reason.
            source = rest if rest in SOURCES else usable[0]
            by_text = source == "procfs" and scenario != "service"
            fields = kernel["fields"] + (0 if by_text else OF_SCHEDSTAT)
            expected |= {"source": source, "fields": fields} | counters | {"error": ""}
            if rest == "procfs":
                expected |= {"lines": 0, "text": {"all"}}
            expected["old_interrupts"] = scenario in ("big", "interrupts") and expected["lines"] > 0
            if scenario == "hotplug" and expected["lines"] > 0:
                expected |= {"lines": 0, "text": set()}
        if scenario == "service" and service == "serves" and expected["source"]:
            expected["source"] = "service"
        return expected

    def judge(self, outcome: Outcome) -> list[str]:
        """Return how an outcome differs from what is expected, one line each."""
        series, scenario = outcome.series, outcome.scenario
        known = self.stand_in(series)
        if known is None:
            return [f"nothing is expected of Linux {series} yet: make kernels-expected KERNELS={series}"]
        wrong = []
        for program, found in outcome.found.items():
            compare = differences if known == series else losses
            wrong += [f"{program}: {line}" for line in compare(self.finding(known, scenario, program), found)]
            unproven = outcome.unproven.get(program, set()) & self.to_be_proven(scenario, program, outcome)
            if unproven:
                wrong.append(f"{program}: never seen equal and not zero: {', '.join(sorted(unproven))}")
        return wrong

    def to_be_proven(self, scenario: str, program: str, outcome: Outcome) -> set[str]:
        """Return the fields that a program must show equal and in use. Other users see less, and other scenarios little."""
        by_memory = set(self.table.get("used_by_memory", []))
        if scenario == "memory":
            return by_memory
        if scenario == "conformance" and " as " not in program:
            return outcome.unproven.get(program, set()) - by_memory - set(self.table.get("not_in_use", []))
        return set()

    def update(self, outcome: Outcome, release: str) -> None:
        """Take what a scenario showed as what is expected from now on."""
        kernel = self.kernels.setdefault(outcome.series, {"release": "", "fields": 0, "lines": 0})
        kernel["release"] = release
        found = outcome.found
        if outcome.scenario in ("cost", "interrupts_cost"):
            name, key = ("bench scan", "ratios") if outcome.scenario == "cost" else ("bench counters", "counter_ratios")
            kernel[key] = found[name]["ratios"]
        elif outcome.scenario == "conformance":
            root, reader = found["doctor"], found["doctor as reader"]
            served = {key: why for key, why in kernel.get("refused", {}).items() if key == "service"}
            kernel["refused"] = root["refused"] | served | ({"counters": root["error"]} if root["error"] else {})
            kernel["fields"] = found["verify procfs"]["fields"]
            kernel["lines"] = root["lines"]
            kernel["lines_from_text"] = sorted(root["text"] - {"all"})
            kernel["lines_by_symbols"] = sorted(reader["text"] - root["text"]) if root["lines"] else []
        elif outcome.scenario == "service":
            kernel.setdefault("refused", {}).pop("service", None)
            if found["doctor"]["service"] != "serves":
                kernel["refused"]["service"] = found["doctor"]["service"]

    def text(self) -> str:
        """Return the table as its file has it."""
        lines = [HEADING]
        for key in ("not_in_use", "used_by_memory"):
            lines.append(assignment(key, sorted(self.table.get(key, []))))
        for circumstance in self.table.get("circumstances", []):
            lines += ["", "[[circumstances]]", *(assignment(key, value) for key, value in circumstance.items())]
        for series, kernel in sorted(self.kernels.items(), key=lambda row: (len(split(row[0])[1]), numbers(row[0]))):
            own = {key: value for key, value in kernel.items() if value or value == 0}
            lines += ["", f'[kernels."{series}"]']
            lines += [assignment(key, value) for key, value in own.items() if not isinstance(value, dict)]
            for key, value in own.items():
                if isinstance(value, dict):
                    lines += ["", f'[kernels."{series}".{key}]', *(assignment(name, value[name]) for name in sorted(value))]
        return "\n".join(lines) + "\n"


HEADING = """\
# What fastproc shows on each kernel; tools/kernels/judge.py says what follows from it for each scenario and program.
# `make test-kernels` fails on any difference. `make kernels-expected` writes the kernels' rows anew from what they show,
# together with docs/dev/kernels.md; the rest is written by hand.
"""


def assignment(key: str, value: Any) -> str:
    """Return a line of TOML. Its strings and numbers are those of JSON."""
    if isinstance(value, list):
        return f"{key} = [\n" + "".join(f"    {json.dumps(item)},\n" for item in value) + "]"
    name = key if re.fullmatch(r"[\w-]+", key) else json.dumps(key)
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def differences(expected: Finding, found: Finding) -> list[str]:
    """Return how a finding differs from what is expected of this kernel, one line each."""
    all_keys = [key for key in expected if key != "ratios"]
    wrong = [
        f"{key}: {expected[key] or 'none'} expected, {found[key] or 'none'}" for key in all_keys if expected[key] != found[key]
    ]
    for case, before in sorted(expected["ratios"].items()):
        now = found["ratios"].get(case)
        if now is None or now < before * (1 - WORSE):
            wrong.append(f"{case}: {before} times cheaper expected, {now} times")
    return wrong


def losses(expected: Finding, found: Finding) -> list[str]:
    """Return what a newer kernel lacks; it may print more or less, and at another cost."""
    lost = {key: expected[key] != found[key] for key in ("status", "source", "service", "groups")}
    lost["error"] = not expected["error"] and bool(found["error"])
    lost["usable"] = not set(expected["usable"]) <= set(found["usable"])
    lost["fields"] = found["fields"] < expected["fields"]
    # A line that the kernel no longer prints is not lost; one that now comes from the text is.
    lost["lines"] = found["lines"] < expected["lines"] and not found["text"] <= expected["text"]
    lost["old_interrupts"] = expected["old_interrupts"] and not found["old_interrupts"]
    lost["ratios"] = not expected["ratios"].keys() <= found["ratios"].keys()
    return [f"{key}: {expected[key] or 'none'} before, {found[key] or 'none'}" for key, is_lost in lost.items() if is_lost]


def gains(expected: Finding, found: Finding) -> list[str]:
    """Return costs that have fallen, or are new: as long as they are not recorded, they could rise unnoticed."""
    known = {case: expected["ratios"].get(case, 0) for case in sorted(found["ratios"])}
    better = {case: before for case, before in known.items() if before < found["ratios"][case] * (1 - WORSE)}
    return [f"{case}: {better[case] or 'no'} times cheaper expected, {found['ratios'][case]} times" for case in better]
