#!/usr/bin/env python3
"""Counts the cache lines that a walk of cgroups reads of each cgroup, from the program and this kernel's structures.

The program's relocations name each member of a structure of the kernel that it reads. This script finds the offsets of these
members in /sys/kernel/btf/vmlinux, and counts the lines by what is requested. docs/cgroups.md has the result.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from lines import ARRAY, BTF, LINE, Types

# The function that reads a group, and the structure that starts with the state of its controller.
GROUPS = {
    "what cgroups there are": ("walk go_back step visit", ""),
    "CPU time": ("read_cpu", "task_group"),
    "memory": ("read_memory", "mem_cgroup"),
    "memory.stat": ("read_memory_stat", "mem_cgroup"),
    "processes": ("", "pids_cgroup"),
    "I/O": ("read_io", "blkcg"),
    "I/O, for each device": ("read_device", ""),
    "pressure": ("read_pressure", ""),
    "pressure, for each CPU": ("add_cpu", ""),
}
# Members that visit() reads for another group.
ELSEWHERE = {"pids_cgroup": "processes", "psi_group": "pressure"}
BYTE_OFFSET = 0
Line = tuple[str, int]


def sections(elf: bytes) -> dict[str, tuple[int, bytes, int]]:
    """By name: the number of a section, its bytes, and the number of the section that it is linked to."""
    (at,), (size, count, names) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HHH", elf, 58)
    heads = [struct.unpack_from("<IIQQQQII", elf, at + size * number) for number in range(count)]

    def text(head: tuple[int, ...]) -> bytes:
        return elf[head[4] : head[4] + head[5]]

    def name(offset: int) -> str:
        table = text(heads[names])
        return table[offset : table.index(b"\0", offset)].decode()

    return {name(head[0]): (number, text(head), head[6]) for number, head in enumerate(heads)}


def functions(of: dict[str, tuple[int, bytes, int]]) -> dict[str, list[tuple[int, int, str]]]:
    """By section: start, end and name of its functions."""
    names = {number: name for name, (number, _, _) in of.items()}
    texts = {number: text for number, text, _ in of.values()}
    _, symbols, link = of[".symtab"]
    found: dict[str, list[tuple[int, int, str]]] = {}
    for offset, info, _, section, start, size in struct.iter_unpack("<IBBHQQ", symbols):
        if info & 0xF == 2:
            name = texts[link][offset : texts[link].index(b"\0", offset)].decode()
            found.setdefault(names[section], []).append((start, start + size, name))
    return found


def relocations(elf: bytes) -> Iterator[tuple[str, str, list[int | str]]]:
    """Of each member that is read: the function, the structure, and the names and indices that lead to it."""
    of = sections(elf)
    places = functions(of)
    raw = of[".BTF"][1]
    strings = sum(struct.unpack_from("<I8xI", raw, 4))
    types = Types(raw)

    def text(at: int) -> str:
        return raw[strings + at : raw.index(b"\0", strings + at)].decode()

    extension = of[".BTF.ext"][1]
    head, at, size = (struct.unpack_from("<I", extension, place)[0] for place in (4, 24, 28))
    at, end = head + at, head + at + size
    (step,) = struct.unpack_from("<I", extension, at)
    at += 4
    while at < end:
        section, count = struct.unpack_from("<II", extension, at)
        at += 8
        for _ in range(count):
            place, root, access, kind = struct.unpack_from("<IIII", extension, at)
            at += step
            if kind == BYTE_OFFSET:
                name = next(name for start, stop, name in places[text(section)] if start <= place < stop)
                yield name, types.bare(root).name, members(types, root, [int(i) for i in text(access).split(":")])


def members(types: Types, root: int, indices: list[int]) -> list[int | str]:
    """The names of the members on the way, and indices into arrays."""
    of, way = types.bare(root), list[int | str]()
    for index in indices[1:]:
        if of.kind == ARRAY:
            way.append(index)
            of = types.bare(of.members[0][1])
        else:
            name, kind, _ = of.members[index]
            way += [name] if name else []
            of = types.bare(kind)
    return way


def offset(types: Types, root: str, way: list[int | str]) -> int | None:
    """Where this kernel has it. `None`: it does not."""
    if root not in types.by_name:
        return None
    of, at = types.by_name[root], 0
    for part in way:
        if isinstance(part, int):
            of = types.bare(of).members[0][1]
            at += part * types.size(of)
        elif found := types.member(types.bare(of), part):
            of, at = found[0], at + found[1]
        else:
            return None
    return at


def main(program: str) -> None:
    types = Types(BTF.read_bytes())
    by_function: dict[str, set[Line]] = {}
    flags = offset(types, "cgroup_subsys_state", ["flags"]) or 0
    for function, flavour, way in relocations(Path(program).read_bytes()):
        root = flavour.split("___")[0]
        place = offset(types, root, way)
        if place is None or root in ("task_struct", "css_set", "cgroup_root", "bpf_array"):
            continue
        if root == "cgroup_subsys_state":
            if function == "visit":
                continue
            root = "cgroup"
        reader = ELSEWHERE.get(root, function) if function == "visit" else function
        by_function.setdefault(reader, set()).add((root, place // LINE))
    print(f"Linux {os.uname().release}: lines of {LINE} bytes of each cgroup")
    once = set[Line]()
    for title, (names, controller) in GROUPS.items():
        lines = set[Line]().union(*(by_function.get(name, set()) for name in [*names.split(), title]))
        if controller:
            lines.add((controller, flags // LINE))
        if title == "memory.stat":
            kind, _ = types.member(types.all[types.by_name["memcg_vmstats"]], "events") or (0, 0)
            end = (offset(types, "memcg_vmstats", ["events"]) or 0) + types.size(kind)
            lines |= {("memcg_vmstats", line) for line in range((end + LINE - 1) // LINE)}
        objects = {name: sum(of == name for of, _ in lines) for name in sorted({of for of, _ in lines})}
        print(f"{title}: {len(lines)} ({', '.join(f'{name} {count}' for name, count in objects.items())})")
        if "each" not in title:
            once |= lines
    print(f"together, each line once, without devices and CPUs: {len(once)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: cgroup_lines.py cgroups.bpf.o")
    main(sys.argv[1])
