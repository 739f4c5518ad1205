"""The counters of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import wait_until

import fastproc


def counters(name: str) -> dict[str, list[int]]:
    lines = [line.split() for line in Path("/proc", name).read_text().splitlines()]
    return {line[0].rstrip(":"): [int(word) for word in line[1:] if word.isdigit()] for line in lines}


@pytest.mark.parametrize("max_age", [0.0, 1.0])
def test_counters_lie_between_two_readings_of_proc(max_age: float) -> None:
    before, vm_before = counters("stat"), counters("vmstat")
    system = fastproc.system(interrupts_max_age=max_age)

    # The kernel counts a fork a moment before the tracepoint.
    def has_every_fork() -> bool:
        nonlocal system
        if system.processes < before["processes"][0]:
            system = fastproc.system(interrupts_max_age=max_age)
        return system.processes >= before["processes"][0]

    wait_until("the announcement of every fork", has_every_fork)
    after, vm_after = counters("stat"), counters("vmstat")
    for name in ["ctxt", "processes", "btime"]:
        assert before[name][0] <= getattr(system, name) <= after[name][0]
    assert before["intr"][0] <= system.intr <= after["intr"][0]
    assert before["softirq"][0] <= system.softirq <= after["softirq"][0]
    tick = 10_000_000
    assert before["cpu"][0] - 1 <= system.cpu.user_ns // tick <= after["cpu"][0] + 1
    assert list(system.cpus) == [int(name[3:]) for name in before if name.startswith("cpu") and name != "cpu"]
    assert list(system.vmstat) == list(vm_before)
    assert repr(system).startswith(f"<fastproc.System: {len(system.cpus)} CPUs, load ")
    assert vm_before["pgfault"][0] <= system.vmstat["pgfault"] <= vm_after["pgfault"][0]
    names = [line.split(":")[0].strip() for line in Path("/proc/softirqs").read_text().splitlines()[1:]]
    assert list(system.softirqs) == names


def test_memory_and_load() -> None:
    system = fastproc.system()
    assert system.meminfo["MemTotal"] == counters("meminfo")["MemTotal"][0] * 1024
    assert 1 <= system.loadavg.running < system.loadavg.threads
    assert system.loadavg.one_minute >= 0
