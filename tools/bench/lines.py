#!/usr/bin/env python3
"""Counts the cache lines that a walk of `bpf` fetches for each process, from the sources and this kernel's structures.

The walk loads a word of each line ahead (`TOUCH` in bpf/ahead.h, `LINE` in bpf/tasks/proof.h). This script reads these
lists, finds the offsets of the members in /sys/kernel/btf/vmlinux, and counts the lines and the objects that they are in.
docs/scale.md has the result.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BTF = Path("/sys/kernel/btf/vmlinux")
LINE = 64
GROUPS = {
    "the fields of `top`": "CPU MEMORY",
    "every field of the three files": "CPU MEMORY USERS SCHEDULING MEMORY_DETAILS LAYOUT CREDENTIALS SIGNALS NAMESPACES "
    "SCHEDULING_DETAILS LIMITS",
}
# asm-generic/resource.h, which defines no enum.
CONSTANTS = {"RLIMIT_RSS": 5, "RLIMIT_SIGPENDING": 11}
STRUCT, UNION, ENUM, TYPEDEF, ARRAY, POINTER = 4, 5, 6, 8, 3, 2
MODIFIERS = (TYPEDEF, 9, 10, 11, 18)  # and volatile, const, restrict, type tag


class Type(NamedTuple):
    kind: int
    name: str
    size: int  # or the type that it refers to
    members: list[tuple[str, int, int]]  # name, type, bits from the start; of an array: its element, and how many
    has_bit_fields: bool


class Types:
    """The type information of the running kernel."""

    def __init__(self, raw: bytes) -> None:
        _, _, _, head, types_at, types_size, strings_at, _ = struct.unpack_from("<HBBIIIII", raw)
        strings = head + strings_at
        self.all = [Type(0, "", 0, [], False)]
        self.by_name: dict[str, int] = {}
        self.constants = dict(CONSTANTS)

        def text(at: int) -> str:
            return raw[strings + at : raw.index(b"\0", strings + at)].decode()

        at, end = head + types_at, head + types_at + types_size
        while at < end:
            name_at, info, size = struct.unpack_from("<III", raw, at)
            at += 12
            count, kind = info & 0xFFFF, info >> 24 & 0x1F
            name, members = text(name_at), []
            if kind in (STRUCT, UNION):
                for _ in range(count):
                    member, of, bits = struct.unpack_from("<III", raw, at)
                    members.append((text(member), of, bits))
                    at += 12
                if name:
                    self.by_name.setdefault(name, len(self.all))
            elif kind == ENUM:
                for _ in range(count):
                    constant, value = struct.unpack_from("<Ii", raw, at)
                    self.constants.setdefault(text(constant), value)
                    at += 8
            elif kind == ARRAY:
                element, _, length = struct.unpack_from("<III", raw, at)
                members.append(("", element, length))
                at += 12
            else:
                # int, function prototype, variable, section, declaration tag, 64-bit enum
                at += {1: 4, 13: 8 * count, 14: 4, 15: 12 * count, 17: 4, 19: 12 * count}.get(kind, 0)
            self.all.append(Type(kind, name, size, members, bool(info >> 31)))

    def bare(self, of: int) -> Type:
        """The type without names and qualifiers."""
        while self.all[of].kind in MODIFIERS:
            of = self.all[of].size
        return self.all[of]

    def size(self, of: int) -> int:
        of_type = self.bare(of)
        if of_type.kind == ARRAY:
            _, element, length = of_type.members[0]
            return length * self.size(element)
        return 8 if of_type.kind == POINTER else of_type.size

    def member(self, of: Type, name: str) -> tuple[int, int] | None:
        """The type of a member and its offset in bytes."""
        for member, kind, bits in of.members:
            start = (bits & 0xFFFFFF if of.has_bit_fields else bits) // 8
            if member == name:
                return kind, start
            if not member and (found := self.member(self.bare(kind), name)):
                return found[0], start + found[1]
        return None

    def place(self, base: str, path: str) -> tuple[str, int] | None:
        """The object in which a path from a structure ends, and the offset there. `None`: this kernel lacks a member."""
        of, at, name, before = self.by_name[base], 0, base, ""
        for link, member, index in re.findall(r"(->|\.)(\w+)(?:\[(\w+)\])?", path):
            if link == "->" and (pointer := self.bare(of)).kind == POINTER:
                of, at = pointer.size, 0
                name += f"->{before}"
            found = self.member(self.bare(of), member)
            if not found:
                return None
            of, at, before = found[0], at + found[1], member
            if index and self.bare(of).kind == ARRAY:
                of = self.bare(of).members[0][1]
                at += self.size(of) * (int(index) if index.isdigit() else self.constants[index])
        return name, at


BASES = {"t": "task_struct", "s": "signal_struct", "signal": "signal_struct", "mm": "mm_struct"}


class Counted:
    """The lines of the kernel's objects that are fetched for a process."""

    def __init__(self, types: Types, groups: str) -> None:
        self.types = types
        self.groups = {f"FP_{name}" for name in groups.split()} | {"ALWAYS"}
        self.lines: set[tuple[str, int]] = set()
        self.record = 0

    def place(self, expression: str) -> tuple[str, int] | None:
        base, path = re.fullmatch(r"(\w+)(.*)", expression.strip()).groups()  # type: ignore[union-attr]
        return self.types.place(BASES[base], path)

    def touch(self, expression: str) -> None:
        if expression.startswith("r->"):
            self.record += 1
            return
        place = self.place(expression)
        if place is None:
            sys.exit(f"this kernel has no {expression}")
        self.lines.add((place[0], place[1] // LINE))

    def holds(self, condition: str) -> bool:
        """Whether a condition of the sources holds here, for a process that has executed a program and has memory."""

        def group(match: re.Match[str]) -> str:
            return str(any(name.strip() in self.groups for name in match[1].split("|")))

        text = re.sub(r"(?:WANTED|NEEDED)\(([^()]*)\)", group, condition)
        text = re.sub(r"bpf_core_field_exists\(([^()]*)\)", lambda match: str(self.place(match[1]) is not None), text)
        text = re.sub(r"HAS_RSS_PARTS\([^()]*\)|\b(?:t->mm|proof->mm)\b", "True", text)
        text = re.sub(r"may_be_grouped\(.*\)$|!r$", "False", text)
        if re.sub(r"True|False|&&|\s", "", text):
            sys.exit(f"the condition is not understood: {condition}")
        return all(part.strip() == "True" for part in text.split("&&"))

    def function(self, source: str, name: str) -> None:
        """The `TOUCH`es of a function, under the conditions around them, which the indentation shows."""
        body = re.search(rf"^static __always_inline \w+ {name}\(.*?^}}", source, re.MULTILINE | re.DOTALL)
        if not body:
            sys.exit(f"there is no {name}()")
        conditions: list[tuple[int, bool]] = []
        without_macros = re.sub(r"^#define (?:.*\\\n)*.*\n", "", body[0], flags=re.MULTILINE)
        for line in without_macros.splitlines()[1:]:
            indent = len(line) - len(line.lstrip("\t"))
            conditions = [(at, value) for at, value in conditions if at < indent]
            if match := re.match(r"\t+if \((.*)\)(?: \{)?$", line):
                conditions.append((indent, self.holds(match[1])))
            elif all(value for _, value in conditions):
                if match := re.match(r"\t+TOUCH\((.*)\);$", line):
                    self.touch(match[1])
                elif "TOUCH_RSS(mm)" in line:
                    for at in (0, 2, 3):
                        self.touch(f"mm->rss_stat[{at}].count")

    def words(self, source: str) -> int:
        """The lines of a proof. Returns how many words it has."""
        count = 0
        for group, words in re.findall(r"^#define WORDS_OF_(\w+)\(LINE, WORD, VALUE\)((?:.*\\\n)*.*)$", source, re.MULTILINE):
            if group in self.groups:
                for kind, expression in re.findall(r"(LINE|WORD|VALUE)\(\w+, (.*?)\)\s*\\?$", words, re.MULTILINE):
                    count += 1
                    if kind == "LINE" and self.place(expression) is not None:
                        self.touch(expression)
        if not count:
            sys.exit("there is no list of words")
        return count

    def objects(self) -> dict[str, int]:
        return {name: sum(of == name for of, _ in self.lines) for name in sorted({of for of, _ in self.lines})}


def main() -> None:
    types = Types(BTF.read_bytes())
    ahead, proof = ((ROOT / path).read_text() for path in ("bpf/ahead.h", "bpf/tasks/proof.h"))
    print(f"Linux {os.uname().release}: lines of {LINE} bytes for each process, in the objects of the kernel")
    for title, groups in GROUPS.items():
        kept = Counted(types, groups)
        words = kept.words(proof)
        kept.function(proof, "touch_words")
        read = Counted(types, groups)
        for name in ("touch_task", "touch_around", "touch_far", "touch_record"):
            read.function(ahead, name)
        # struct fp_proof: six more words; struct fp_place: half a line; the index: eight bytes.
        beside = f"and {(words + 6) * 8 / LINE:.1f} of its proof, 0.5 of its place, 0.1 of the index"
        print(f"{title}:")
        print(f"  kept: {len(kept.lines)} in {len(kept.objects())} objects {kept.objects()}, {beside}")
        print(f"  read: {len(read.lines)} in {len(read.objects())} objects {read.objects()}, and {read.record} of its record")


if __name__ == "__main__":
    main()
