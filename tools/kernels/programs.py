"""The file system that a guest starts with."""

import json
import os
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
TESTED = ["fastproc", "fastproc-cli", "fastproc-service"]
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
    for name, path in build(cache, arch, programs, "tests" in scenarios).items():
        files[f"bin/{name}" if name in programs else f"tests/{name}"] = path.read_bytes()
        # Tests run the programs where they were built.
        links |= {str(path).lstrip("/"): f"/bin/{name}"} if name in programs else {}
    files["tests/temporary"] = str(target_folder() / "tmp").encode()
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


def build(cache: Path, arch: str, programs: dict[str, str], tested: bool) -> dict[str, Path]:
    """Build programs, linked statically: the guest has no libraries. Return their paths, by their names in the guest.

    The build names a target, so that the flags apply only to the programs and not to the build scripts.
    """
    flags = ["-Ctarget-feature=+crt-static"]
    environment = dict(os.environ)
    if arch == "amd64":
        target = "x86_64-unknown-linux-gnu"
        # The libraries that a static libelf needs besides zlib; from elfutils 0.190 on that may be zstd.
        needs = output("pkg-config", "--static", "--libs-only-l", "libelf").split()
        flags += [f"-Clink-arg={library}" for library in needs if library not in ("-lelf", "-lz")]
    else:
        target = cross.TARGET
        environment |= cross.environment(cache)
    environment |= {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        # Tests unwind, and share what is built with the programs.
        "CARGO_PROFILE_QUICK_PANIC": "unwind",
        "CARGO_PROFILE_QUICK_STRIP": "symbols",
        "CARGO_PROFILE_QUICK_DEBUG": "none",
    }
    common = ["--locked", "--profile=quick", f"--target={target}", f"--target-dir={target_folder()}", "--message-format=json"]
    packages = [word for package in programs.values() for word in ("-p", package)]
    paths = cargo(["build", *common, *packages, *(f"--bin={name}" for name in programs)], environment)
    if tested:
        packages = [word for package in TESTED for word in ("-p", package)]
        paths |= cargo(["test", "--no-run", *common, *packages, "--test=all"], environment)
    return paths


def target_folder() -> Path:
    """Return the folder in which cargo builds for guests."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "guest"


def cargo(words: list[str], environment: dict[str, str]) -> dict[str, Path]:
    """Run cargo, and return the programs that it made, by their names; tests have that of their package, and .tests."""
    program = os.environ.get("CARGO", "cargo")
    made = subprocess.run([program, *words, "--quiet"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Failed(f"the guest's programs cannot be built: {program} {' '.join(words)}")
    paths = {}
    for line in made.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            kind = message["target"]["kind"][0]
            package = Path(message["manifest_path"]).parent.name
            if kind == "test" or words[0] == "build":
                paths[f"{package}.tests" if kind == "test" else message["target"]["name"]] = Path(message["executable"])
    return paths


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
