//! The file system that a guest starts with.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use fastproc_guest::scenario::Scenario;

use crate::{architecture::Architecture, cache::Cache, cpio::Archive, profiles, programs};

/// The path in the guest, the package, and the program's name.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("init", "fastproc-guest", "fastproc-guest"),
    ("fastproc", "fastproc-cli", "fastproc"),
    (BENCH, BENCH, BENCH),
    ("fastproc-testbed", "fastproc-testbed", "fastproc-testbed"),
    (EXPORTER, EXPORTER, EXPORTER),
];

/// The program that only scenarios that measure need.
const BENCH: &str = "fastproc-bench";
/// The program that only scenarios with cAdvisor need, and the variable that names cAdvisor's.
const EXPORTER: &str = "fastproc-exporter";
const CADVISOR: &str = "FASTPROC_CADVISOR";

/// Builds the programs that a guest needs for these scenarios, and packs them: `/init` is PID 1.
pub fn build(cache: &Cache, architecture: Architecture, scenarios: &[Scenario]) -> Result<PathBuf> {
    let measures = scenarios.iter().any(|scenario| scenario.measures());
    let has_peer = scenarios.iter().any(|scenario| scenario.needs_cadvisor());
    let needed = PROGRAMS.into_iter().filter(|(_, _, program)| {
        (measures || *program != BENCH) && (has_peer || *program != EXPORTER)
    });
    let mut archive = Archive::default();
    for directory in ["apparmor", "dev", "proc", "sys", "tmp", "run"] {
        archive.directory(directory);
    }
    let programs = programs::build(
        cache,
        architecture,
        needed
            .clone()
            .map(|(_, package, program)| (package, program)),
    )?;
    for (name, _, program) in needed {
        archive.program(name, &read(&programs.join(program))?);
    }
    if has_peer {
        let peer = env::var_os(CADVISOR).with_context(|| {
            format!("{CADVISOR} is not set; make cadvisor builds it and sets it")
        })?;
        archive.program("cadvisor", &read(Path::new(&peer))?);
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
