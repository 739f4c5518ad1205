"""The file system that a guest starts with."""

import json
import os
import re
import subprocess
from pathlib import Path

import cross
from debian import Failed, busybox, output

ROOT = Path(__file__).resolve().parents[2]
GUEST = ROOT / "tools/guest"
# The package of each program that every guest has, those that measure, and those that run beside cAdvisor.
PROGRAMS = {"fastproc": "fastproc-cli", "fastproc-testbed": "fastproc-testbed", "fastproc-enter": "fastproc-guest"}
BENCH = {"fastproc-bench": "fastproc-bench"}
EXPORTER = {"fastproc-exporter": "fastproc-exporter"}
# Crates whose test programs the scenario `tests` runs.
TESTED = ["fastproc", "fastproc-history", "fastproc-service"]
PROFILES = {"guest": "tools/guest/apparmor.profiles", "pod": "packaging/kubernetes/apparmor"}


def initramfs(cache: Path, arch: str, scenarios: list[str]) -> Path:
    """Build the programs that these scenarios need, and pack them."""
    programs = dict(PROGRAMS)
    if any("cost" in scenario for scenario in scenarios):
        programs |= BENCH
    files = {"init": (GUEST / "init").read_bytes(), "bin/busybox": busybox(cache, arch).read_bytes()}
    for scenario in (GUEST / "scenarios").iterdir():
        files[f"scenarios/{scenario.name}"] = scenario.read_bytes()
    if any("cadvisor" in scenario for scenario in scenarios):
        programs |= EXPORTER
        peer = os.environ.get("FASTPROC_CADVISOR") or ""
        if not peer:
            raise Failed("FASTPROC_CADVISOR is not set; make cadvisor builds cAdvisor and sets it")
        files["bin/cadvisor"] = Path(peer).read_bytes()
    links: dict[str, str] = {}
    paths, libraries = build(cache, arch, programs)
    for name, path in paths.items():
        files[f"bin/{name}" if name in programs else f"tests/{name}"] = path.read_bytes()
        # Tests run the programs where they were built.
        links |= {str(path).lstrip("/"): f"/bin/{name}"} if name in programs else {}
    files |= {name: path.read_bytes() for name, path in libraries.items()}
    if "apparmor" in scenarios:
        for name, text in PROFILES.items():
            files[f"apparmor/{name}"] = profile(ROOT / text)
    folders = {str(parent) for name in files | links for parent in Path(name).parents} - {"."}
    packed = cache / "images" / f"initramfs-{arch}"
    packed.parent.mkdir(parents=True, exist_ok=True)
    new = packed.with_name(packed.name + ".new")
    new.write_bytes(archive(sorted(folders | {"dev", "proc", "sys", "tmp", "run", "etc"}), files, links))
    new.rename(packed)
    return packed


def profile(text: Path) -> bytes:
    """Compile AppArmor's profiles for a guest's kernel, which mediates what it supports of these features."""
    words = ["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--stdout", "--quiet"]
    words += ["--features-file", "/etc/apparmor.d/abi/3.0", str(text)]
    # The compiler may be among root's programs.
    compiled = subprocess.run(words, capture_output=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})
    if compiled.returncode != 0:
        raise Failed(f"{text} is no profile of AppArmor: {compiled.stderr.decode().strip()}")
    return compiled.stdout


def build(cache: Path, arch: str, programs: dict[str, str]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Build programs and tests as `make check` does, after which nothing is compiled again.

    Return their paths, by their names in the guest, and what they load, by its paths there; tests are named PACKAGE.tests.
    """
    environment = dict(os.environ)
    words = ["build", "--locked", "--bins", "--message-format=json", "--quiet"]
    sysroot, trace = "", ["env", "LD_TRACE_LOADED_OBJECTS=1"]
    if arch == "amd64" and os.environ.get("FASTPROC_GUEST_RELEASE"):
        # As users have them, for what they cost; without tests.
        words += ["--release", *(word for package in sorted(set(programs.values())) for word in ("-p", package))]
    elif arch == "amd64":
        # Fewer crates would have other features, and be compiled again.
        words += ["--tests", "--workspace"]
    else:
        environment |= cross.environment(cache) | {"CARGO_PROFILE_DEV_STRIP": "symbols"}
        packages = {*programs.values(), *TESTED}
        words += ["--tests", f"--target={cross.TARGET}", *(word for package in packages for word in ("-p", package))]
        sysroot = environment["FASTPROC_CROSS_SYSROOT"]
        trace = ["qemu-aarch64", "-L", sysroot, "-E", "LD_TRACE_LOADED_OBJECTS=1"]
    cargo = environment.get("CARGO", "cargo")
    made = subprocess.run([cargo, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Failed(f"the guest's programs cannot be built: {cargo} {' '.join(words)}")
    paths = {}
    for message in map(json.loads, made.stdout.splitlines()):
        target = message.get("target", {})
        package = Path(message.get("manifest_path", "")).parent.name
        if target.get("kind") == ["bin"] and target["name"] in programs and not message["profile"]["test"]:
            paths[target["name"]] = Path(message["executable"])
        elif target.get("kind") == ["test"] and package in TESTED:
            paths[f"{package}.tests"] = Path(message["executable"])
    libraries = {name for path in paths.values() for name in re.findall(r"/\S+(?= \(0x)", output(*trace, path))}
    return paths, {name.lstrip("/"): Path(sysroot + name) for name in libraries}


def archive(folders: list[str], files: dict[str, bytes], links: dict[str, str]) -> bytes:
    """Pack a cpio archive of the form newc (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    packed = bytearray()

    def entry(name: str, mode: int, content: bytes) -> None:
        fields = [len(packed), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        for part in (b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0", content):
            packed.extend(part)
            packed.extend(bytes(-len(packed) % 4))

    for folder in folders:
        entry(folder, 0o040755, b"")
    for name, content in files.items():
        entry(name, 0o100755, content)
    for name, to in links.items():
        entry(name, 0o120777, to.encode())
    entry("TRAILER!!!", 0, b"")
    return bytes(packed)
