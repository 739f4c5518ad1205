//! The files of the configuration. The exporter understands them, and this process opens them, since it may: at the start
//! and at each reload.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use fastproc_metrics::link::{Link, Message, Question, lend, read, take};
use rustix::io::Errno;

/// Where they are.
#[derive(Debug)]
pub struct Files {
    /// How processes are grouped.
    pub groups: Option<PathBuf>,
    /// How clients are served.
    pub web: Option<PathBuf>,
    /// The text of that, by which certificates and keys are named.
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
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::FBIG.raw_os_error());
                link.send([errno as u64, 0, 0, 0], None)
            }
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

    /// A file that the web configuration names, and no other: whoever asks speaks with the network.
    fn named(&self, name: OwnedFd) -> io::Result<Vec<u8>> {
        let name = take(name)?;
        let web = self.web.as_ref().filter(|_| names(&self.names, &name));
        let folder = web.ok_or(Errno::ACCESS)?.parent().unwrap_or(Path::new(""));
        let name = str::from_utf8(&name).map_err(|_| Errno::ACCESS)?;
        read(&folder.join(name))
    }
}

/// Whether a text has this name in it, whole: between spaces, quotes, or what YAML has for lists and mappings.
fn names(text: &[u8], name: &[u8]) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(|byte| b" \t\r\n\"',{}[]:".contains(byte));
    !name.is_empty()
        && text.windows(name.len()).enumerate().any(|(at, part)| {
            part == name
                && ends(at.checked_sub(1).map(|before| &text[before]))
                && ends(text.get(at + name.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_named() {
        let text = b"tls_server_config:\n  cert_file: a b.pem\n  key_file: \"/etc/x/server.key\"\n";
        for name in ["a b.pem", "/etc/x/server.key"] {
            assert!(names(text, name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "/etc/x",
            "/etc/x/server.ke",
            "etc/x/server.key",
            ".pem",
            "/etc/shadow",
        ] {
            assert!(!names(text, name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_nobody_named_is_not_read() {
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
