"""The test programs of the workspace, as cargo builds them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CARGO = os.environ.get("CARGO", "cargo")
# Tests of the first crate start a program of the second, which is built together with its tests.
BESIDE = {"fastproc-cli": "fastproc-exporter"}


@dataclass(frozen=True)
class Program:
    """A test program."""

    # CRATE/PROGRAM, or CRATE/lib and CRATE/bin for the unit tests.
    name: str
    path: str
    folder: str
    environment: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Target:
    """A target of cargo that may be a test program."""

    name: str
    # The option of cargo test.
    option: str
    package: dict[str, Any]


def kind_of(target: dict[str, Any]) -> str:
    """Test, lib or bin if the target has tests."""
    if not target["test"] or target["kind"] == ["custom-build"]:
        return "none"
    return target["kind"][0] if target["kind"][0] in ("test", "bin") else "lib"


def name_of(package: dict[str, Any], target: dict[str, Any]) -> str:
    """The name as CRATE/PROGRAM."""
    kind = kind_of(target)
    return f"{package['name']}/{target['name'] if kind == 'test' else kind}"


def targets(metadata: dict[str, Any]) -> list[Target]:
    """All targets of the workspace."""
    found = []
    for package in metadata["packages"]:
        for target in package["targets"]:
            if (kind := kind_of(target)) != "none":
                option = "--lib" if kind == "lib" else f"--{kind}={target['name']}"
                found.append(Target(name_of(package, target), option, package))
    return found


def chosen(every: list[Target], only: str) -> list[Target]:
    """The targets that a list of CRATE/PROGRAM, PROGRAM or CRATE/ names."""
    found = []
    for word in only.replace(",", " ").split():
        named = [t for t in every if word in (t.name, t.name.partition("/")[2], t.name.partition("/")[0] + "/")]
        if not named:
            sys.exit(f"flakes: there is no test program {word}; there are:\n  " + "\n  ".join(t.name for t in every))
        found += [target for target in named if target not in found]
    return found


def configured(root: Path) -> tuple[tuple[str, str], ...]:
    """What .cargo/config.toml sets for tests; a variable that is already set stays as it is."""
    entries = re.findall(r'^(\w+) = "([^"]*)"$', (root / ".cargo/config.toml").read_text(), re.MULTILINE)
    return tuple((name, value) for name, value in entries if name not in os.environ)


def compiler() -> str:
    """The compiler that builds the programs. Called by its name, rustup may choose another in a package's folder."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, text=True, check=True)
    return os.environ.get("RUSTC", f"{sysroot.stdout.strip()}/bin/rustc")


def variables(package: dict[str, Any], libraries: str, rustc: str) -> tuple[tuple[str, str], ...]:
    """The variables that cargo test sets for the programs of a package."""
    folder = Path(package["manifest_path"]).parent
    version = re.split(r"[.-]", package["version"])
    return (
        ("CARGO", CARGO),
        ("RUSTC", rustc),
        ("CARGO_MANIFEST_DIR", str(folder)),
        ("CARGO_MANIFEST_PATH", package["manifest_path"]),
        ("CARGO_PKG_NAME", package["name"]),
        ("CARGO_PKG_VERSION", package["version"]),
        ("CARGO_PKG_VERSION_MAJOR", version[0]),
        ("CARGO_PKG_VERSION_MINOR", version[1]),
        ("CARGO_PKG_VERSION_PATCH", version[2]),
        ("LD_LIBRARY_PATH", ":".join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")]))),
    )


def build(only: str) -> tuple[list[Program], Path]:
    """Builds the requested programs, or all. Also returns cargo's target folder."""
    described = subprocess.run([CARGO, "metadata", "--format-version", "1", "--no-deps"], stdout=subprocess.PIPE, check=True)
    metadata = json.loads(described.stdout)
    root, target_folder = metadata["workspace_root"], Path(metadata["target_directory"])
    libraries = str(target_folder / "debug/deps")
    rustc = compiler()
    every = targets(metadata)
    wanted = chosen(every, only) if only else every
    packages = sorted({target.package["name"] for target in wanted})
    packages += [BESIDE[name] for name in packages if name in BESIDE and BESIDE[name] not in packages]
    options = [word for name in packages for word in ("-p", name)] if only else ["--workspace"]
    options += sorted({target.option for target in wanted}) if only else ["--bins", "--lib", "--tests"]
    command = [CARGO, "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *options]
    built = subprocess.run(command, stdout=subprocess.PIPE, cwd=root, check=False)
    if built.returncode:
        sys.exit(f"flakes: it does not build: {' '.join(command)}")
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        package = next(p for p in metadata["packages"] if p["id"] == message["package_id"])
        name = name_of(package, message["target"])
        # Programs of other crates may have the same name.
        if any(name == target.name for target in wanted):
            folder = str(Path(package["manifest_path"]).parent)
            environment = configured(Path(root)) + variables(package, libraries, rustc)
            programs.append(Program(name, message["executable"], folder, environment))
    return sorted(set(programs), key=lambda program: program.name), target_folder
