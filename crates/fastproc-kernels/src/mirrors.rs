//! Where this system gets Debian's packages from, by its own apt sources: the mirrors are never named here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The keyring that signs every Debian archive, for systems whose sources do not name one.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The names by which Debian's releases go in a source's suites.
const RELEASES: [&str; 12] = [
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "stable",
    "testing",
    "unstable",
    "oldstable",
    "oldoldstable",
    "oldoldoldstable",
];

/// An archive that packages come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The base address.
    pub uri: String,
    /// The keys that sign it, where the system's source says so or has Debian's own keyring.
    pub signed_by: Option<PathBuf>,
}

/// The two archives of Debian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrors {
    /// Releases and their backports.
    pub main: Archive,
    /// Security updates, where the system uses them.
    pub security: Option<Archive>,
}

/// One archive and suite, as a source names them.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    uri: String,
    suite: String,
    signed_by: Option<PathBuf>,
}

impl Mirrors {
    /// Reads the sources under `etc`, which is `/etc/apt` but in tests.
    pub fn of_system(etc: &Path) -> Result<Self> {
        let mut files = vec![etc.join("sources.list")];
        if let Ok(folder) = fs::read_dir(etc.join("sources.list.d")) {
            let mut parts: Vec<_> = folder
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            parts.sort();
            files.append(&mut parts);
        }
        let mut sources = Vec::new();
        for file in files.iter().filter(|file| file.is_file()) {
            let parse = match file.extension().and_then(|extension| extension.to_str()) {
                Some("list") => one_line,
                Some("sources") => deb822,
                // apt reads no others.
                _ => continue,
            };
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            sources.append(&mut parse(&text));
        }
        Self::choose(&sources).with_context(|| format!("the apt sources under {}", etc.display()))
    }

    fn choose(sources: &[Source]) -> Result<Self> {
        let archive = |source: &Source| Archive {
            uri: source.uri.clone(),
            signed_by: source
                .signed_by
                .clone()
                .or_else(|| Path::new(KEYRING).exists().then(|| KEYRING.into())),
        };
        let debian = || sources.iter().filter(|source| is_debian(&source.suite));
        let security = debian()
            .find(|source| is_security(&source.suite))
            .map(archive);
        let Some(main) = debian()
            .find(|source| !is_security(&source.suite))
            .map(archive)
        else {
            bail!("name no Debian archive, so there is nowhere to fetch Debian's kernels from");
        };
        Ok(Self { main, security })
    }
}

fn is_security(suite: &str) -> bool {
    suite.ends_with("-security") || suite.ends_with("/updates")
}

fn is_debian(suite: &str) -> bool {
    RELEASES.iter().any(|release| {
        suite
            .strip_prefix(release)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
    })
}

/// `deb [option=value …] uri suite component…`, one a line.
fn one_line(text: &str) -> Vec<Source> {
    text.lines()
        .filter_map(|line| {
            let line = line.split('#').next()?.trim();
            let mut rest = line
                .strip_prefix("deb")?
                .strip_prefix([' ', '\t'])?
                .trim_start();
            let mut signed_by = None;
            if let Some(after) = rest.strip_prefix('[') {
                let (options, after) = after.split_once(']')?;
                signed_by = options
                    .split_ascii_whitespace()
                    .find_map(|option| option.strip_prefix("signed-by="));
                rest = after;
            }
            let mut words = rest.split_ascii_whitespace();
            let (uri, suite) = (words.next()?, words.next()?);
            is_remote(uri).then(|| Source {
                uri: uri.into(),
                suite: suite.into(),
                signed_by: keyring(signed_by),
            })
        })
        .collect()
}

/// Stanzas of `Field: value`, a line that starts with a blank goes on with the field before it.
fn deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in lines.split(|line| line.trim().is_empty()) {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in stanza {
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = fields.last_mut() {
                    value.push(' ');
                    value.push_str(line.trim());
                }
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let field = |wanted: &str| {
            fields
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_str())
        };
        let words = |wanted: &str| field(wanted).unwrap_or_default().split_ascii_whitespace();
        if !words("types").any(|kind| kind == "deb") || field("enabled").is_some_and(is_no) {
            continue;
        }
        for uri in words("uris").filter(|uri| is_remote(uri)) {
            for suite in words("suites") {
                let signed_by = keyring(field("signed-by"));
                sources.push(Source {
                    uri: uri.into(),
                    suite: suite.into(),
                    signed_by,
                });
            }
        }
    }
    sources
}

/// apt's words for no.
fn is_no(value: &str) -> bool {
    ["no", "false", "without", "off", "disable", "0"]
        .iter()
        .any(|no| value.eq_ignore_ascii_case(no))
}

/// Whether this program can look for other suites there too; a CD has only its own.
fn is_remote(uri: &str) -> bool {
    !uri.starts_with("cdrom:")
}

/// A key may also be written out in the source, or be a fingerprint; only a file serves other suites as well.
fn keyring(signed_by: Option<&str>) -> Option<PathBuf> {
    signed_by
        .filter(|value| value.starts_with('/') && !value.contains(char::is_whitespace))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suite: &str, signed_by: Option<&str>) -> Source {
        Source {
            uri: uri.into(),
            suite: suite.into(),
            signed_by: signed_by.map(PathBuf::from),
        }
    }

    #[test]
    fn one_line_sources_are_read() {
        let text = "\
# deb http://mirror.example/commented bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb http://mirror.example/debian bookworm main contrib # as it should be
deb-src http://mirror.example/debian bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] https://mirror.example/security bookworm-security main
\tdeb\thttp://mirror.example/tabs\tsid\tmain
deb http://mirror.example/no-suite
";
        let expected = [
            source("http://mirror.example/debian", "bookworm", None),
            source(
                "https://mirror.example/security",
                "bookworm-security",
                Some("/usr/share/keyrings/a.gpg"),
            ),
            source("http://mirror.example/tabs", "sid", None),
        ];
        assert_eq!(one_line(text), expected);
    }

    #[test]
    fn deb822_sources_are_read() {
        let text = "\
Types: deb deb-src
# http://mirror.example/comment
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
uris: http://mirror.example/security
 http://other.example/security
Suites: trixie-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
Enabled: no
URIs: http://mirror.example/disabled
Suites: trixie

Types: deb-src
URIs: http://mirror.example/sources
Suites: trixie
";
        let expected = [
            source(
                "http://mirror.example/debian",
                "trixie",
                Some("/usr/share/keyrings/a.gpg"),
            ),
            source(
                "http://mirror.example/debian",
                "trixie-updates",
                Some("/usr/share/keyrings/a.gpg"),
            ),
            source("http://mirror.example/security", "trixie-security", None),
            source("http://other.example/security", "trixie-security", None),
        ];
        assert_eq!(deb822(text), expected);
    }

    #[test]
    fn the_archives_are_told_apart_by_their_suites() {
        let sources = [
            source(
                "http://mirror.example/nodesource",
                "nodistro",
                Some("/n.gpg"),
            ),
            source(
                "http://mirror.example/security",
                "bookworm-security",
                Some("/s.gpg"),
            ),
            source(
                "http://mirror.example/debian",
                "bookworm-updates",
                Some("/d.gpg"),
            ),
        ];
        let mirrors = Mirrors::choose(&sources).unwrap();
        let archive = |uri: &str, key: &str| Archive {
            uri: uri.into(),
            signed_by: Some(key.into()),
        };
        assert_eq!(
            mirrors.main,
            archive("http://mirror.example/debian", "/d.gpg")
        );
        assert_eq!(
            mirrors.security,
            Some(archive("http://mirror.example/security", "/s.gpg"))
        );
    }

    #[test]
    fn a_system_without_debian_is_told_so() {
        for sources in [
            vec![],
            vec![source("http://mirror.example/ubuntu", "noble", None)],
        ] {
            let error = Mirrors::choose(&sources).unwrap_err();
            assert!(error.to_string().contains("no Debian archive"), "{error}");
        }
    }

    #[test]
    fn files_that_apt_does_not_read_are_not_read() {
        let etc = std::env::temp_dir().join(format!("fastproc-mirrors-{}", std::process::id()));
        fs::create_dir_all(etc.join("sources.list.d")).unwrap();
        fs::write(
            etc.join("sources.list"),
            "deb http://mirror.example/debian bookworm main\n",
        )
        .unwrap();
        fs::write(
            etc.join("sources.list.d/a.list.bak"),
            "deb http://mirror.example/bak sid-security main\n",
        )
        .unwrap();
        let mirrors = Mirrors::of_system(&etc);
        fs::remove_dir_all(&etc).unwrap();
        let mirrors = mirrors.unwrap();
        assert_eq!(mirrors.main.uri, "http://mirror.example/debian");
        assert_eq!(mirrors.security, None);
    }
}
