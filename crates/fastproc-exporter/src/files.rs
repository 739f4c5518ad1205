//! The configuration files, which the collecting process opens at the start and at each reload.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use fastproc_metrics::link::{Link, Message, Question, lend, refused, take};

use crate::{
    document::ConfigError,
    naming, say,
    web::{
        WebConfig,
        configuration::{Configuration, Failure},
    },
};

/// Paths of the files, and the link to the process that opens them.
#[derive(Debug)]
pub struct Files {
    link: Mutex<Link>,
    gone: AtomicBool,
    /// How processes are grouped.
    groups: Option<PathBuf>,
    /// How clients are served.
    web: Option<PathBuf>,
}

impl Files {
    /// The files that were named.
    pub fn new(link: Link, groups: Option<PathBuf>, web: Option<PathBuf>) -> Self {
        Self {
            link: Mutex::new(link),
            gone: AtomicBool::new(false),
            groups,
            web,
        }
    }

    /// Whether the process that opens the files has exited.
    pub fn are_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Sends a question through the link, and waits for the answer.
    fn ask(&self, question: Question, words: [u64; 2], text: Option<&[u8]>) -> io::Result<Message> {
        let text = text.map(lend).transpose()?;
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let words = [question as u64, words[0], words[1], 0];
        let answer = link.ask(words, text.as_ref().map(AsFd::as_fd));
        if answer.is_err() {
            self.gone.store(true, Ordering::SeqCst);
        }
        answer
    }

    fn text(&self, question: Question, name: Option<&[u8]>) -> io::Result<Vec<u8>> {
        let answer = self.ask(question, [0; 2], name)?;
        match (answer.words[0], answer.descriptor) {
            (0, Some(text)) => take(text),
            (0, None) => Err(io::ErrorKind::InvalidData.into()),
            (word, _) => Err(refused(word)),
        }
    }

    /// Reads the files, and reports lines that are not used.
    pub fn read(&self) -> Result<Configuration, ConfigError> {
        let mut rules = None;
        if let Some(path) = &self.groups {
            let file = naming::read(path, self.text(Question::Groups, None))?;
            warn(path, &file.warnings);
            rules = Some(file.items);
        }
        let mut web = WebConfig::default();
        if let Some(path) = &self.web {
            let named = |name: &str| self.text(Question::Named, Some(name.as_bytes()));
            web = WebConfig::read(path, self.text(Question::Web, None), &named)?;
            warn(path, &web.warnings);
        }
        Ok(Configuration { rules, web })
    }

    /// Reads the files at a reload. A file that is being written may be empty, and what no group needs is not read.
    pub fn read_again(&self, had_groups: bool) -> Result<Configuration, Failure> {
        let read = self.read()?;
        if let (Some(path), Some(rules)) = (&self.groups, &read.rules)
            && rules.is_empty() == had_groups
        {
            let (path, some) = (path.display(), if had_groups { "no" } else { "a" });
            return Err(format!(
                "{path}: from now on {some} process would be in a group, which takes a restart"
            )
            .into());
        }
        Ok(read)
    }

    /// Reports that the configuration can be used, and waits for the listening sockets and, last, a link for scrapes.
    /// The first word of each message is the number of those that follow. `None`: the other process has ended.
    pub fn configured(&self, configuration: &Configuration) -> io::Result<Option<Vec<OwnedFd>>> {
        let items = configuration.rules.as_ref();
        let items = items.map(|items| fastproc_metrics::naming::Item::to_bytes(items));
        let words = [u64::from(configuration.web.has_tls()), 0];
        let Ok(mut message) = self.ask(Question::Configured, words, items.as_deref()) else {
            return Ok(None);
        };
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let mut descriptors = Vec::new();
        loop {
            let descriptor = message.descriptor;
            descriptors.push(descriptor.ok_or(io::ErrorKind::InvalidData)?);
            if message.words[0] == 0 {
                return Ok(Some(descriptors));
            }
            match link.receive()? {
                Some(next) => message = next,
                None => return Ok(None),
            }
        }
    }
}

fn warn(path: &Path, warnings: &[String]) {
    for warning in warnings {
        say(&format!("{}: {warning}", path.display()));
    }
}
