"""Lists what the released programs are linked with, from cargo's metadata of the folder it is run in: bill.py text|cyclonedx

`text` has the licences of each part in full; `cyclonedx` is a bill of materials in that format, for programs. Both are the same
bytes each time.
"""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

# What is released; the rest of the workspace tests it.
RELEASED = ("fastproc-cli", "fastproc-exporter", "fastproc-c", "fastproc-procps", "fastproc-python")
# Built from sources that libbpf-sys carries, and linked in: a name, a licence, and the file that tells the version.
CARRIED = (
    ("elfutils", "LGPL-3.0-or-later OR GPL-2.0-or-later", "configure.ac", r"AC_INIT\(\[elfutils\],\[([0-9.]+)\]"),
    (
        "libbpf",
        "LGPL-2.1-only OR BSD-2-Clause",
        "src/libbpf_version.h",
        r"MAJOR_VERSION (\d+)\s+#define LIBBPF_MINOR_VERSION (\d+)",
    ),
    ("zlib", "Zlib", "zlib.h", r'ZLIB_VERSION "([0-9.]+)"'),
)
LICENCE_FILES = ("LICEN[CS]E*", "COPYING*", "UNLICENSE*", "NOTICE*")


class Part(NamedTuple):
    """Something that is linked in."""

    name: str
    version: str
    licence: str
    folder: Path
    # What the others call it that need it.
    ref: str
    sum: str | None
    needs: list[str]
    is_own: bool


def parts() -> list[Part]:
    cargo = [
        os.environ.get("CARGO", "cargo"),
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform=x86_64-unknown-linux-gnu",
    ]
    metadata = json.loads(subprocess.run(cargo, check=True, stdout=subprocess.PIPE).stdout)
    locked = re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', Path("Cargo.lock").read_text())
    sums = {(name, version): sum for name, version, sum in locked}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [id for id in metadata["workspace_members"] if packages[id]["name"] in RELEASED]
    seen: dict[str, list[str]] = {}
    while waiting:
        id = waiting.pop()
        if id not in seen:
            deps = nodes[id]["deps"]
            seen[id] = [dep["pkg"] for dep in deps if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            waiting += seen[id]
    refs = {id: f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}" for id in seen}
    found = []
    for id, needs in seen.items():
        package = packages[id]
        folder = Path(package["manifest_path"]).parent
        needed = sorted(refs[need] for need in needs)
        if package["name"] == "libbpf-sys":
            for name, licence, file, pattern in CARRIED:
                match = re.search(pattern, (folder / name / file).read_text())
                if not match:
                    raise SystemExit(f"{folder}/{name}/{file} tells no version")
                version = ".".join(match.groups())
                found.append(Part(name, version, licence, folder / name, f"pkg:generic/{name}@{version}", None, [], False))
                needed.append(found[-1].ref)
        name, version, licence = package["name"], package["version"], package["license"] or "see its files"
        found.append(
            Part(name, version, licence, folder, refs[id], sums.get((name, version)), needed, package["source"] is None)
        )
    return sorted(found, key=lambda part: (part.name, part.version))


def text(all_parts: list[Part]) -> str:
    others = [part for part in all_parts if not part.is_own]
    lines = [
        "The programs and libraries of fastproc are linked with these. Each one's sources are in the crate of its name and"
    ]
    lines += ["version; those of elfutils, libbpf and zlib are in the crate libbpf-sys.", ""]
    lines += [f"{part.name} {part.version}: {part.licence}" for part in others]
    users: dict[str, list[str]] = {}
    for part in others:
        for path in sorted({path for pattern in LICENCE_FILES for path in part.folder.glob(pattern) if path.is_file()}):
            users.setdefault(path.read_text(errors="replace").strip(), []).append(part.name)
    for licence, names in users.items():
        lines += ["", "-" * 80, f"{', '.join(sorted(set(names)))}:", "", licence]
    return "\n".join(lines)


def cyclonedx(all_parts: list[Part]) -> str:
    components = []
    for part in all_parts:
        component: dict[str, Any] = {"type": "library", "bom-ref": part.ref, "name": part.name, "version": part.version}
        component |= {"purl": part.ref, "licenses": [{"expression": part.licence.replace("/", " OR ")}]}
        if part.sum:
            component["hashes"] = [{"alg": "SHA-256", "content": part.sum}]
        components.append(component)
    released = [part for part in all_parts if part.name in RELEASED]
    subject = {"type": "application", "bom-ref": "fastproc", "name": "fastproc", "version": released[0].version}
    needs = {part.ref: sorted(part.needs) for part in all_parts} | {"fastproc": [part.ref for part in released]}
    now = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(components, sort_keys=True))}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", now), "component": subject},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": needed} for ref, needed in sorted(needs.items())],
    }
    return json.dumps(bill, indent=1)


if __name__ == "__main__":
    print({"text": text, "cyclonedx": cyclonedx}[sys.argv[1]](parts()))
