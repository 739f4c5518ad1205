//! `fastproc --version --json`: describes this build, for programs.

use std::{
    ffi::OsString,
    io::{self, Write},
};

use fastproc::SourceKind;
use serde::Serialize;

#[derive(Serialize)]
struct Build {
    name: &'static str,
    version: &'static str,
    /// The architecture and the C library of the build.
    target: String,
    /// Where the sources of this build are published. The release sets it.
    repository: Option<&'static str>,
    /// The sources of processes that it supports.
    sources: Vec<&'static str>,
    /// The features chosen for the build.
    features: Vec<&'static str>,
}

/// Whether the command line requests the version as JSON.
pub fn is_asked(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let (mut version, mut json, mut others) = (false, false, false);
    for argument in arguments.into_iter().skip(1) {
        match argument.to_str() {
            Some("--version" | "-V") => version = true,
            Some("--json") => json = true,
            _ => others = true,
        }
    }
    version && json && !others
}

/// Prints the version as JSON.
pub fn print_json() -> io::Result<()> {
    let repository = env!("CARGO_PKG_REPOSITORY");
    let build = Build {
        name: "fastproc",
        version: env!("CARGO_PKG_VERSION"),
        target: format!("{}-linux-{}", std::env::consts::ARCH, environment()),
        repository: (!repository.is_empty()).then_some(repository),
        sources: [SourceKind::Service]
            .iter()
            .chain(&SourceKind::LOCAL)
            .map(|source| source.name())
            .collect(),
        features: if cfg!(feature = "vendored") {
            vec!["vendored"]
        } else {
            Vec::new()
        },
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &build)?;
    writeln!(out)
}

const fn environment() -> &'static str {
    if cfg!(target_env = "gnu") {
        "gnu"
    } else if cfg!(target_env = "musl") {
        "musl"
    } else {
        "unknown"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> bool {
        is_asked(line.split(' ').map(OsString::from))
    }

    #[test]
    fn json_is_asked_for_with_the_version_alone() {
        assert!(asked("fastproc --version --json"));
        assert!(asked("fastproc --json -V"));
        assert!(!asked("fastproc --version"));
        assert!(!asked("fastproc --json"));
        assert!(!asked("fastproc ps --json --version"));
    }
}
