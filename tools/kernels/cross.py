"""A toolchain that compiles and links programs for arm64 on another machine.

It is clang and Rust's linker, which every build has, and the libraries of Debian's packages for arm64. They are unpacked
into the cache; only Rust's standard library is installed, by rustup.
"""

import os
import platform
from pathlib import Path

from debian import Apt, output

TARGET = "aarch64-unknown-linux-gnu"
# The C library and the compiler's own, and those that libbpf needs.
PACKAGES = """libc6 libc6-dev libelf-dev libelf1 libgcc-12-dev libgcc-s1 linux-libc-dev zlib1g zlib1g-dev""".split()


def environment(cache: Path) -> dict[str, str]:
    """Fetch what is missing in the cache; return variables for cargo, build scripts, make and Go."""
    rust = Path(output(os.environ.get("RUSTC", "rustc"), "--print", "sysroot").strip())
    if not (rust / "lib/rustlib" / TARGET).exists():
        output("rustup", "target", "add", TARGET)
    folder = cache / "cross-arm64"
    sysroot = folder / "sysroot"
    if not sysroot.exists():
        print("fetching the libraries of arm64", flush=True)
        # The rest of an interrupted attempt may be there.
        new = folder / "sysroot.new"
        output("rm", "-rf", new)
        apt = Apt(cache, "arm64")
        for package in PACKAGES:
            apt.unpack(package, new)
        new.rename(sysroot)
    compiler = folder / "cc"
    clang = os.environ.get("CLANG", "clang")
    # rustup installs a linker; a distribution's Rust uses the one of the package lld.
    linker = rust / "lib/rustlib" / f"{platform.machine()}-unknown-linux-gnu" / "bin/gcc-ld"
    # One name for the compiler and its options, as cargo, make and Go need it.
    text = (
        f"#!/bin/sh\nexec '{clang}' --target=aarch64-linux-gnu '--sysroot={sysroot}' '-B{linker}' -fuse-ld=lld "
        '-Wno-unused-command-line-argument "$@"\n'
    )
    if not compiler.exists() or compiler.read_text() != text:
        written = folder / "cc.new"
        written.write_text(text)
        written.chmod(0o755)
        written.rename(compiler)
    triple = TARGET.replace("-", "_")
    return {
        f"CARGO_TARGET_{triple.upper()}_LINKER": str(compiler),
        # The emulator of the package qemu-user.
        f"CARGO_TARGET_{triple.upper()}_RUNNER": f"qemu-aarch64 -L {sysroot}",
        f"CC_{triple}": str(compiler),
        f"AR_{triple}": "ar",
        f"LIBBPF_SYS_LIBRARY_PATH_{triple}": str(sysroot / "usr/lib/aarch64-linux-gnu"),
        "FASTPROC_CROSS_CC": str(compiler),
        "FASTPROC_CROSS_SYSROOT": str(sysroot),
    }
