//! The programs of a guest, linked statically: the guest has no other files.

use std::{env, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::{architecture::Architecture, cache::Cache, cross::Toolchain};

/// Builds programs of the workspace for a guest, and returns their folder. `packages`: each with its program.
///
/// The build names a target triple, so that the flags apply only to the programs and not to the build scripts; the C
/// libraries that libbpf needs come as static archives from Debian's own packages.
pub fn build<'p>(
    cache: &Cache,
    architecture: Architecture,
    packages: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<PathBuf> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let target = target.join("guest");
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    match architecture {
        Architecture::Amd64 => flags.extend(
            libelf_needs()?
                .into_iter()
                .map(|library| format!("-Clink-arg={library}")),
        ),
        Architecture::Arm64 => {
            cargo.envs(Toolchain::fetch(cache)?.environment());
        }
    }
    let triple = architecture.target();
    cargo.current_dir(&workspace).args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--target",
        triple,
    ]);
    cargo.arg("--target-dir").arg(&target);
    for (package, program) in packages {
        cargo.args(["-p", package, "--bin", program]);
    }
    let status = cargo
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        // Only the kernel's own work is measured here.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the guest's programs cannot be built: {status}");
    }
    Ok(target.join(triple).join("release"))
}

/// The libraries that a static libelf needs besides zlib; from elfutils 0.190 on that may be zstd.
fn libelf_needs() -> Result<Vec<String>> {
    let output = Command::new("pkg-config")
        .args(["--static", "--libs-only-l", "libelf"])
        .output()
        .context("cannot run pkg-config")?;
    if !output.status.success() {
        bail!(
            "libelf's development files are missing: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let needs = String::from_utf8_lossy(&output.stdout);
    let needs = needs
        .split_ascii_whitespace()
        .filter(|flag| !["-lelf", "-lz"].contains(flag));
    Ok(needs.map(str::to_owned).collect())
}
