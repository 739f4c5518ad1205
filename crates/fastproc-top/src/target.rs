//! The process or thread that a change applies to: fixed when a key is pressed.

use std::fmt::Write as _;

use fastproc::Process;
use fastproc_columns::{Lookup, Row, escape::escape};

use crate::{
    canvas::{name_in, shortened, width},
    id::Id,
    observation::View,
};

/// A process, or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its identity.
    pub id: Id,
    /// Its name, once looked up.
    pub name: Option<Name>,
}

/// The name of a process in questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its command line, without the folder of its program; without one, its name.
    command: String,
    /// Its user.
    user: Option<String>,
}

impl Target {
    /// Creates a target without a name.
    pub const fn new(id: Id) -> Self {
        Self { id, name: None }
    }

    /// Looks up the name, unless it is known.
    pub fn look_up(&mut self, view: &View<'_>, lookup: &mut Lookup) {
        if self.name.is_none() {
            let process = self.id.find(&view.snapshot);
            self.name = process.map(|process| Name::look_up(process, lookup));
        }
    }

    /// A description of about this many columns, or a little more if there is no room for a name.
    pub fn describe_in(&self, room: usize) -> String {
        let least = width(&self.describe(1));
        self.describe((room + 1).saturating_sub(least).max(8))
    }

    /// A description like `16793 "hog.py AAA" of root`, with at most this many characters of the command line.
    pub fn describe(&self, most: usize) -> String {
        let Id { pid, tid, .. } = self.id;
        let mut text = if tid == pid {
            pid.to_string()
        } else {
            format!("thread {tid} of {pid}")
        };
        if let Some(Name { command, user }) = &self.name {
            let _ = write!(text, " \"{}\"", shortened(command, most));
            if let Some(user) = user {
                text.push_str(" of ");
                text.push_str(user);
            }
        }
        text
    }
}

impl Name {
    fn look_up(process: Process<'_>, lookup: &mut Lookup) -> Self {
        let mut command = Vec::new();
        match lookup.details.cmdline(process) {
            Ok(line) if !line.bytes.is_empty() => {
                let arguments = line.bytes.strip_suffix(&[0]).unwrap_or(line.bytes);
                let spaced = arguments.split(|&byte| byte == 0);
                escape(&spaced.collect::<Vec<_>>().join(&b' '), &mut command);
            }
            _ => escape(&process.name(), &mut command),
        }
        let uid = Row::new(process).users().map(|(_, effective)| effective);
        let uid = uid.or_else(|| effective_user(lookup.details.file(process, c"status").ok()?));
        let user = uid.map(|uid| String::from_utf8_lossy(lookup.users.name(uid)).into_owned());
        let command = String::from_utf8_lossy(&command);
        let (name, _) = name_in(&command);
        Self {
            // A quote in the name must not seem to end it.
            command: command[name..].replace('"', "\\\""),
            user,
        }
    }
}

/// The effective user of a `status`.
fn effective_user(status: &[u8]) -> Option<u32> {
    let status = String::from_utf8_lossy(status);
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(tid: u32) -> Target {
        Target {
            id: Id {
                pid: 16793,
                tid,
                start_ns: 1,
                process_start_ns: 1,
            },
            name: Some(Name {
                command: "hog.py AAA".into(),
                user: Some("root".into()),
            }),
        }
    }

    #[test]
    fn a_target_is_called_by_its_number_its_command_line_and_its_user() {
        assert_eq!(target(16793).describe(80), r#"16793 "hog.py AAA" of root"#);
        assert_eq!(target(16793).describe(5), r#"16793 "hog.…" of root"#);
        assert_eq!(
            target(16794).describe(10),
            r#"thread 16794 of 16793 "hog.py AAA" of root"#
        );
    }

    #[test]
    fn a_quote_in_a_command_line_does_not_end_it() {
        let record = fastproc::record::Record::default();
        let host = fastproc::Host::read().expect("there is a /proc");
        let mut lookup = Lookup::recorded(host, 0);
        let line = fastproc::Cmdline {
            bytes: b"sh\0\" of root\0",
            cut: false,
        };
        lookup.details.keep_cmdline(0, 0, line);
        let name = Name::look_up(Process::new(&record, &[]), &mut lookup);
        assert_eq!(name.command, r#"sh \" of root"#);
    }

    #[test]
    fn the_effective_user_is_in_the_status() {
        assert_eq!(
            effective_user(b"Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\n"),
            Some(2)
        );
        assert_eq!(effective_user(b"Name:\tx\n"), None);
    }
}
