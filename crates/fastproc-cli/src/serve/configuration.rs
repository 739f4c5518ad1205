//! The configuration files. The exporter parses them; this process, which has the privileges, opens them at the start
//! and at each reload.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use fastproc_metrics::link::{Link, Message, Question, lend, read, refusal, take};
use rustix::io::Errno;

/// The paths of the files.
#[derive(Debug)]
pub struct Files {
    /// The rules of groups.
    pub groups: Option<PathBuf>,
    /// The web configuration.
    pub web: Option<PathBuf>,
    /// Its text, which names certificates and keys.
    pub names: Vec<u8>,
}

impl Files {
    pub fn are_none(&self) -> bool {
        self.groups.is_none() && self.web.is_none()
    }

    /// Answers one question for a file.
    pub fn answer(&mut self, link: &Link, question: Message) -> io::Result<()> {
        match self.text(question).and_then(|text| lend(&text)) {
            Ok(text) => link.send([0; 4], Some(text.as_fd())),
            Err(error) => link.send([refusal(&error), 0, 0, 0], None),
        }
    }

    fn text(&mut self, question: Message) -> io::Result<Vec<u8>> {
        let none = || io::Error::from(Errno::ACCESS);
        match Question::of(&question) {
            Some(Question::Groups) => read(self.groups.as_ref().ok_or_else(none)?),
            Some(Question::Web) => {
                let text = read(self.web.as_ref().ok_or_else(none)?)?;
                self.names.clone_from(&text);
                Ok(text)
            }
            Some(Question::Named) => self.named(question.descriptor.ok_or_else(none)?),
            Some(Question::Configured) | None => Err(none()),
        }
    }

    /// Opens a file that the web configuration names, and no other: the process that requests it communicates with the
    /// network.
    fn named(&self, name: OwnedFd) -> io::Result<Vec<u8>> {
        let name = take(name)?;
        let web = self.web.as_ref().filter(|_| names(&self.names, &name));
        let folder = web.ok_or(Errno::ACCESS)?.parent().unwrap_or(Path::new(""));
        let name = str::from_utf8(&name).map_err(|_| Errno::ACCESS)?;
        read(&folder.join(name))
    }
}

/// Whether a text has this name after one of these keys, on the same line. This is not a YAML parser: it does not find
/// a name in double quotes with a backslash, a name in single quotes with a quote, and one on another line than its
/// key, or with an anchor or a tag. A file with one of these is not read.
fn names(text: &[u8], name: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let mut values = text.lines().flat_map(values);
    !name.is_empty() && values.any(|value| value.as_bytes() == name)
}

/// The values of the keys on this line.
fn values(line: &str) -> impl Iterator<Item = &str> {
    const KEYS: [&str; 3] = ["cert_file", "key_file", "client_ca_file"];
    let mut hashes = line.match_indices('#').map(|(at, _)| &line[..at]);
    let comment = hashes.find(|before| before.is_empty() || before.ends_with([' ', '\t']));
    let line = comment.unwrap_or(line);
    KEYS.into_iter()
        .flat_map(move |key| line.match_indices(key).map(move |(at, _)| (at, key.len())))
        .filter(|&(at, _)| {
            // The key is the first of its line, or of a mapping in braces.
            let before = line[..at].trim_end_matches(['"', '\'']).trim_end();
            before.is_empty() || before.ends_with(['{', ','])
        })
        .filter_map(move |(at, length)| {
            let rest = line[at + length..].trim_start_matches(['"', '\'']);
            Some(rest.trim_start().strip_prefix(':')?.trim())
        })
        .flat_map(|value| match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let (inner, rest) = value[1..].split_once(quote).unwrap_or_default();
                let escaped = inner.contains('\\') && quote == '"' || rest.starts_with(quote);
                [(!escaped).then_some(inner), None]
            }
            // In braces the value ends before a comma or a brace.
            _ => [Some(value), value.split([',', '}']).next().map(str::trim)],
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_a_key_of_a_file_is_named() {
        let text = b"# key_file: /etc/shadow\nx: 1 # cert_file: /etc/shadow\n\
            basic_auth_users:\n  /etc/passwd: x\n  note, key_files: /etc/hosts\n\
            tls_server_config:\n  cert_file: a b.pem  # ours\n  key_file: \"/etc/x/server.key\"\n\
            \x20 client_ca_file : 'ca#1.pem'\n\
            \x20 \"cert_file\": \"a\\tb\"\n  'key_file': 'it''s'\n  x_key_file: /etc/fstab\n\
            other: {cert_file: c.pem, key_file: d.pem}\n  min_version: TLS12\n  key_file:\n    later.pem\n";
        let found = ["a b.pem", "/etc/x/server.key", "ca#1.pem", "c.pem", "d.pem"];
        for name in found {
            assert!(names(text, name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "/etc/x",
            "/etc/x/server.ke",
            "etc/x/server.key",
            ".pem",
            "/etc/shadow",
            "/etc/passwd",
            "/etc/hosts",
            "/etc/fstab",
            "TLS12",
            "a\tb",
            "a\\tb",
            "it's",
            "it",
            "later.pem",
        ] {
            assert!(!names(text, name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn files_that_no_configuration_names_are_not_read() {
        let mut files = Files {
            groups: None,
            web: Some("/proc/self/web.yml".into()),
            names: b"key_file: stat\n".to_vec(),
        };
        let mut ask = |name: &str| {
            files.text(Message {
                words: [Question::Named as u64, 0, 0, 0],
                descriptor: Some(lend(name.as_bytes()).expect("memory")),
            })
        };
        assert!(!ask("stat").expect("it is named").is_empty());
        for name in ["status", "../self/stat", "/proc/self/stat"] {
            let error = ask(name).expect_err(name);
            assert_eq!(error.raw_os_error(), Some(Errno::ACCESS.raw_os_error()));
        }
    }
}
