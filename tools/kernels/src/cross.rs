//! A toolchain that compiles and links programs for arm64 on another machine: clang and Rust's linker, which every
//! build has, and the libraries of Debian's packages for arm64. They are unpacked into the cache; only Rust's standard
//! library is installed, by rustup.

use std::{
    env,
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    apt::{Apt, unpack},
    architecture::Architecture,
    cache::Cache,
    mirrors::Mirrors,
};

/// The libraries with which a program is linked: the C library and the compiler's own, and those that libbpf needs.
const PACKAGES: [&str; 9] = [
    "libc6",
    "libc6-dev",
    "libelf-dev",
    "libelf1",
    "libgcc-12-dev",
    "libgcc-s1",
    "linux-libc-dev",
    "zlib1g",
    "zlib1g-dev",
];

const TARGET: &str = Architecture::Arm64.target();

/// A toolchain for arm64.
pub struct Toolchain {
    sysroot: PathBuf,
    compiler: PathBuf,
}

impl Toolchain {
    /// Fetches what is missing in the cache.
    pub fn fetch(cache: &Cache) -> Result<Self> {
        let rust = rust_sysroot()?;
        standard_library(&rust)?;
        let folder = cache.folder("cross-arm64")?;
        let sysroot = folder.join("sysroot");
        if !sysroot.exists() {
            unpack_sysroot(cache, &sysroot)?;
        }
        let compiler = folder.join("cc");
        write_compiler(&compiler, &sysroot, &rust)?;
        Ok(Self { sysroot, compiler })
    }

    /// The environment for cargo, build scripts, make and Go.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let triple = TARGET.replace('-', "_");
        let cargo = format!("CARGO_TARGET_{}", triple.to_uppercase());
        let libraries = self.sysroot.join("usr/lib/aarch64-linux-gnu");
        let runner = format!("qemu-aarch64 -L {}", self.sysroot.display());
        [
            (format!("{cargo}_LINKER"), OsString::from(&self.compiler)),
            // The emulator of the package qemu-user.
            (format!("{cargo}_RUNNER"), runner.into()),
            (format!("CC_{triple}"), OsString::from(&self.compiler)),
            (format!("AR_{triple}"), "ar".into()),
            (
                format!("LIBBPF_SYS_LIBRARY_PATH_{triple}"),
                libraries.into(),
            ),
            ("FASTPROC_CROSS_CC".into(), OsString::from(&self.compiler)),
            (
                "FASTPROC_CROSS_SYSROOT".into(),
                OsString::from(&self.sysroot),
            ),
        ]
        .into()
    }
}

/// The folder of rustc's libraries.
fn rust_sysroot() -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .context("cannot run rustc")?;
    if !output.status.success() {
        bail!("rustc --print sysroot: {}", output.status);
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Runs rustup to fetch Rust's standard library for arm64, if it is missing.
fn standard_library(rust: &Path) -> Result<()> {
    if rust.join("lib/rustlib").join(TARGET).exists() {
        return Ok(());
    }
    let status = Command::new("rustup")
        .args(["target", "add", TARGET])
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("rustup target add {TARGET}: {status}"),
        Err(error) => bail!(
            "Rust's standard library for {TARGET} is missing in {}, and rustup cannot be run to fetch it: {error}",
            rust.display()
        ),
    }
}

fn unpack_sysroot(cache: &Cache, sysroot: &Path) -> Result<()> {
    eprintln!("fetching the libraries of arm64");
    let apt = Apt::new(cache, &Mirrors::of_system()?, Architecture::Arm64)?;
    apt.update(false)?;
    let new = sysroot.with_extension("new");
    let packages = sysroot.with_extension("packages");
    for folder in [&new, &packages] {
        // The rest of an interrupted attempt.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for package in PACKAGES {
        unpack(&apt.download(package, &packages)?, &new)?;
    }
    // Renaming is the last step, so that the folder in the cache is complete.
    fs::rename(&new, sysroot)
        .and_then(|()| fs::remove_dir_all(&packages))
        .with_context(|| format!("cannot move {} into its place", new.display()))
}

/// Writes a compiler and linker with one name, as cargo, make and Go need it.
fn write_compiler(path: &Path, sysroot: &Path, rust: &Path) -> Result<()> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let host = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    // rustup installs a linker; a distribution's Rust uses the one of the package lld.
    let linker = rust.join("lib/rustlib").join(host).join("bin/gcc-ld");
    let text = format!(
        "#!/bin/sh\nexec '{clang}' --target=aarch64-linux-gnu '--sysroot={}' '-B{}' -fuse-ld=lld -Wno-unused-command-line-argument \"$@\"\n",
        sysroot.display(),
        linker.display()
    );
    if fs::read_to_string(path).is_ok_and(|written| written == text) {
        return Ok(());
    }
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::set_permissions(&new, Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
