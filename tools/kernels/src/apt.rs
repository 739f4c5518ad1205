//! apt, with a private configuration: it uses other suites than the system, and does not change the system.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{architecture::Architecture, cache::Cache, mirrors::Mirrors};

/// The suites in which kernels are sought. Backports have the newest; security updates have the newest of each release.
const SUITES: [&str; 4] = [
    "bullseye-security",
    "bookworm-security",
    "trixie-security",
    "trixie-backports",
];

/// The release of the libraries with which programs for arm64 are linked. They are static, so one release is enough,
/// and any will do.
const LIBRARIES: &str = "bookworm";

/// A private apt for the packages of one architecture.
pub struct Apt {
    home: PathBuf,
    /// Suites for which the system has no mirror.
    skipped: Vec<&'static str>,
}

impl Apt {
    /// Writes the configuration; [`Apt::update`] reads the lists.
    pub fn new(cache: &Cache, mirrors: &Mirrors, architecture: Architecture) -> Result<Self> {
        let name = architecture.own("apt");
        let home = cache.folder(&name)?;
        for folder in ["lists/partial", "archives/partial"] {
            cache.folder(&format!("{name}/{folder}"))?;
        }
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        let (lines, skipped) = source_list(mirrors, &Mirrors::signed_by(), architecture);
        write("sources.list", &lines)?;
        write("status", "")?;
        write("apt.conf", &configuration(&home, architecture))?;
        Ok(Self { home, skipped })
    }

    /// Suites that are not used, because the system's sources have no mirror for them.
    pub fn skipped(&self) -> &[&'static str] {
        &self.skipped
    }

    /// Reads the archive's lists, unless the cache has them and `anew` is false. A suite that cannot be read is
    /// reported: the requested kernels may be in the others. If none can be read, that is an error.
    pub fn update(&self, anew: bool) -> Result<()> {
        let stamp = self.home.join("updated");
        // Another set of suites or mirrors needs other lists.
        let sources = fs::read(self.home.join("sources.list"))?;
        if !anew && fs::read(&stamp).is_ok_and(|read| read == sources) {
            return Ok(());
        }
        println!(
            "reading the lists of {} suites",
            String::from_utf8_lossy(&sources).lines().count()
        );
        let update = |arguments: &[&str]| {
            self.run("apt-get", arguments, &self.home).context(
                "the archive's lists cannot be read from the system's mirror (see /etc/apt, and whether the network is there)",
            )
        };
        let Err(error) = update(&["update", "-qq", "--error-on=any"]) else {
            fs::write(&stamp, sources)?;
            return Ok(());
        };
        // The next run tries all of them again.
        let _ = fs::remove_file(&stamp);
        // Without that option apt uses the suites that are available.
        if update(&["update", "-qq"]).is_err() || self.packages("linux-image-")?.is_empty() {
            return Err(error.context("no kernel can be fetched, so nothing was tested"));
        }
        println!("ATTENTION: not every suite could be read: {error:#}");
        Ok(())
    }

    /// The names of all packages on the lists that start with `prefix`.
    pub fn packages(&self, prefix: &str) -> Result<Vec<String>> {
        let names = self.run("apt-cache", &["pkgnames", prefix], &self.home)?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Downloads a package into `folder`, and returns the path of its file.
    pub fn download(&self, package: &str, folder: &Path) -> Result<PathBuf> {
        self.run("apt-get", &["download", "-qq", package], folder)
            .with_context(|| format!("{package} cannot be fetched from the system's mirror"))?;
        let wanted = format!("{package}_");
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let found = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                // apt writes the colon of an epoch as %3a and does not change the rest of the name.
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(&wanted))
            });
        found.with_context(|| format!("{package} was fetched, but is not in {}", folder.display()))
    }

    fn run(&self, program: &str, arguments: &[&str], folder: &Path) -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env("APT_CONFIG", self.home.join("apt.conf"))
            .env("LC_ALL", "C.UTF-8")
            .output()
            .with_context(|| {
                format!("cannot run {program}: Debian's kernels are fetched with apt")
            })?;
        if !output.status.success() {
            bail!(
                "{program} {}: {}\n{}",
                arguments.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Unpacks a package into a folder.
pub fn unpack(package: &Path, folder: &Path) -> Result<()> {
    let status = Command::new("dpkg")
        .arg("-x")
        .args([package, folder])
        .status()
        .context("cannot run dpkg")?;
    if !status.success() {
        bail!("dpkg -x {}: {status}", package.display());
    }
    Ok(())
}

/// The source list of the suites on the system's mirrors, and the suites for which there is no mirror.
fn source_list(
    mirrors: &Mirrors,
    signed_by: &str,
    architecture: Architecture,
) -> (String, Vec<&'static str>) {
    let debian = architecture.debian();
    let libraries = (architecture == Architecture::Arm64).then_some(LIBRARIES);
    let mut lines = Vec::new();
    let mut skipped = Vec::new();
    for suite in SUITES.into_iter().chain(libraries) {
        let archive = if suite.ends_with("-security") {
            mirrors.security.as_ref()
        } else {
            Some(&mirrors.main)
        };
        let Some(address) = archive else {
            skipped.push(suite);
            continue;
        };
        // The lists of a release that is no longer maintained stay out of date.
        lines.push(format!(
            "deb [arch={debian} check-valid-until=no{signed_by}] {address} {suite} main\n"
        ));
    }
    (lines.concat(), skipped)
}

/// Moves into `home` everything that apt writes, and the system's choice of packages that it reads; how to reach the
/// mirror (for example a proxy) is still the system's own configuration.
fn configuration(home: &Path, architecture: Architecture) -> String {
    let debian = architecture.debian();
    let home = home.display();
    format!(
        r#"Dir::Etc::SourceList "{home}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{home}";
Dir::State::Lists "{home}/lists";
Dir::State::Status "{home}/status";
Dir::Cache "{home}";
Dir::Cache::Archives "{home}/archives";
APT::Architecture "{debian}";
APT::Architectures "{debian}";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Retries "3";
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_without_a_mirror_are_skipped_and_said() {
        let main = Mirrors {
            main: "http://mirror.example/debian/".into(),
            security: None,
        };
        let (lines, skipped) = source_list(&main, " signed-by=/k.gpg", Architecture::Amd64);
        assert_eq!(
            lines,
            "deb [arch=amd64 check-valid-until=no signed-by=/k.gpg] http://mirror.example/debian/ trixie-backports main\n"
        );
        assert_eq!(
            skipped,
            ["bullseye-security", "bookworm-security", "trixie-security"]
        );

        let security = Some("http://mirror.example/security/".into());
        let mirrors = Mirrors { security, ..main };
        let (lines, skipped) = source_list(&mirrors, "", Architecture::Amd64);
        assert!(lines.contains("deb [arch=amd64 check-valid-until=no] http://mirror.example/security/ trixie-security main\n"));
        assert_eq!((lines.lines().count(), skipped.len()), (4, 0));
        let (lines, _) = source_list(&mirrors, "", Architecture::Arm64);
        assert!(lines.contains(
            "deb [arch=arm64 check-valid-until=no] http://mirror.example/debian/ bookworm main\n"
        ));
    }
}
