//! The file system that a guest starts with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{architecture::Architecture, cache::Cache, cpio::Archive, profiles, programs};

/// The path in the guest, the package, and the program's name.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("init", "fastproc-guest", "fastproc-guest"),
    ("fastproc", "fastproc-cli", "fastproc"),
    ("fastproc-bench", "fastproc-bench", "fastproc-bench"),
    ("fastproc-testbed", "fastproc-testbed", "fastproc-testbed"),
];

/// Builds the guest's programs and packs them: `/init` is PID 1.
pub fn build(cache: &Cache, architecture: Architecture) -> Result<PathBuf> {
    let mut archive = Archive::default();
    for directory in ["apparmor", "dev", "proc", "sys", "tmp", "run"] {
        archive.directory(directory);
    }
    let programs = programs::build(
        cache,
        architecture,
        PROGRAMS
            .iter()
            .map(|&(_, package, program)| (package, program)),
    )?;
    for (name, _, program) in PROGRAMS {
        archive.program(name, &read(&programs.join(program))?);
    }
    for (name, text) in profiles::PROFILES {
        archive.program(name, &profiles::compile(text)?);
    }
    let path = cache.folder("images")?.join(architecture.own("initramfs"));
    let whole = path.with_extension("new");
    fs::write(&whole, archive.finish())
        .and_then(|()| fs::rename(&whole, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
