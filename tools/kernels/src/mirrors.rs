//! The sources of this system's Debian packages, according to its apt: no mirror is named here.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

/// The keyring with the keys of every Debian archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The addresses of the two archives of Debian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors {
    /// Releases and their backports.
    pub main: String,
    /// Security updates, if the system uses them.
    pub security: Option<String>,
}

impl Mirrors {
    /// Asks apt, and runs it to read its lists first if it has none: the lists contain the origin of each archive.
    pub fn of_system() -> Result<Self> {
        let mut listed = targets()?;
        if listed.trim().is_empty() {
            apt_get(&["update", "-qq"])?;
            listed = targets()?;
        }
        Self::choose(&listed)
    }

    /// Chooses from lines of origin, release and address.
    fn choose(listed: &str) -> Result<Self> {
        let archive = |wanted: bool| {
            listed.lines().find_map(|line| {
                let (release, address) = line.strip_prefix("Debian ")?.split_once(' ')?;
                let security = release.ends_with("-security") || release.ends_with("/updates");
                (security == wanted && !address.starts_with("cdrom:")).then(|| address.to_owned())
            })
        };
        let main = archive(false).context(
            "the system's apt sources name no Debian archive, so there is nowhere to fetch Debian's kernels from",
        )?;
        Ok(Self {
            main,
            security: archive(true),
        })
    }

    /// The option of a source list that names the keys, if the system has Debian's keyring.
    pub fn signed_by() -> String {
        if Path::new(KEYRING).exists() {
            format!(" signed-by={KEYRING}")
        } else {
            String::new()
        }
    }
}

fn targets() -> Result<String> {
    apt_get(&[
        "indextargets",
        "--format",
        "$(ORIGIN) $(RELEASE) $(REPO_URI)",
        "Identifier: Packages",
    ])
}

fn apt_get(arguments: &[&str]) -> Result<String> {
    let output = Command::new("apt-get")
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .context("cannot run apt-get: Debian's kernels are fetched with apt")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("apt-get {}: {}", arguments.join(" "), why.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archives_are_told_apart_by_their_releases() {
        let listed = "\
Node Source nodistro http://mirror.example/nodesource/
Debian bookworm-security http://mirror.example/security/
Debian bookworm cdrom:[Debian 12]/
Debian bookworm-updates http://mirror.example/debian/
";
        let mirrors = Mirrors::choose(listed).unwrap();
        assert_eq!(mirrors.main, "http://mirror.example/debian/");
        assert_eq!(
            mirrors.security.as_deref(),
            Some("http://mirror.example/security/")
        );
    }

    #[test]
    fn a_system_without_debian_is_told_so() {
        for listed in ["", "Ubuntu noble http://mirror.example/ubuntu/\n"] {
            let error = Mirrors::choose(listed).unwrap_err();
            assert!(error.to_string().contains("no Debian archive"), "{error}");
        }
    }
}
