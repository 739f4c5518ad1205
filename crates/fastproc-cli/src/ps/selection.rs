//! `-p`, `-u` and `-C`: which processes to show, as ps(1) selects them.

use std::str::FromStr;

use fastproc::Fields;
use fastproc_columns::{Names, Row};

/// Process ids, with commas or blanks between them.
#[derive(Clone, Debug)]
pub struct Pids(pub Vec<u32>);

/// Users by name or number, likewise.
#[derive(Clone, Debug)]
pub struct Users(pub Vec<u32>);

/// Names of programs, with commas between them.
#[derive(Clone, Debug)]
pub struct Commands(Vec<Vec<u8>>);

impl FromStr for Pids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pid = |word: &str| {
            let pid = word.parse();
            pid.map_err(|_| format!("'{}' is no process id", word.escape_debug()))
        };
        list(text, pid).map(Self)
    }
}

impl FromStr for Users {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let user = |word: &str| {
            let id = Names::user_id(word).or_else(|| word.parse().ok());
            let hint = || {
                // What -aux means, by the letter.
                let hint = if word == "x" {
                    "; for every process, type fastproc ps aux"
                } else {
                    ""
                };
                format!("there is no user '{}'{hint}", word.escape_debug())
            };
            id.ok_or_else(hint)
        };
        list(text, user).map(Self)
    }
}

impl FromStr for Commands {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').filter(|name| !name.is_empty());
        let names: Vec<_> = names.map(|name| name.as_bytes().to_vec()).collect();
        if names.is_empty() {
            return Err("name a program".into());
        }
        Ok(Self(names))
    }
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err("the list is empty".into());
    }
    words.into_iter().map(parse).collect()
}

/// Which processes are asked for.
#[derive(Debug, clap::Args)]
pub struct Select {
    /// Show only these processes, and those that -u and -C select
    #[arg(short, long, value_name = "PID,…")]
    pub pid: Vec<Pids>,

    /// Show only the processes of these effective users, by name or number, and those that -p and -C select
    #[arg(short, long, value_name = "USER,…")]
    user: Vec<Users>,

    /// Show only the processes with these names, and those that -p and -u select
    #[arg(short = 'C', long, value_name = "NAME,…")]
    comm: Vec<Commands>,
}

/// Processes are selected if they are on one of the lists, or if there is no list.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pids: Vec<u32>,
    users: Vec<u32>,
    commands: Vec<Vec<u8>>,
}

/// Bytes of a name that the kernel keeps of a program.
const NAME_LENGTH: usize = 15;

impl From<Select> for Selection {
    fn from(select: Select) -> Self {
        Self::new(select.pid, select.user, select.comm)
    }
}

impl Selection {
    /// What these lists select.
    fn new(pids: Vec<Pids>, users: Vec<Users>, commands: Vec<Commands>) -> Self {
        Self {
            pids: pids.into_iter().flat_map(|list| list.0).collect(),
            users: users.into_iter().flat_map(|list| list.0).collect(),
            commands: commands.into_iter().flat_map(|list| list.0).collect(),
        }
    }

    /// The groups of fields that it looks at.
    pub fn needs(&self) -> Fields {
        if self.users.is_empty() {
            Fields::empty()
        } else {
            Fields::USERS
        }
    }

    /// Whether there is no list.
    pub fn admits_all(&self) -> bool {
        self.pids.is_empty() && self.users.is_empty() && self.commands.is_empty()
    }

    /// Whether the process is selected.
    pub fn admits(&self, row: &Row<'_>) -> bool {
        if self.admits_all() {
            return true;
        }
        let process = row.process;
        let user = || row.users().map(|(_, euid)| euid);
        self.pids.contains(&process.pid())
            || (!self.users.is_empty() && user().is_some_and(|user| self.users.contains(&user)))
            || (!self.commands.is_empty() && {
                let name = process.name();
                let comm = &name[..name.len().min(NAME_LENGTH)];
                let is = |wanted: &Vec<u8>| {
                    wanted[..] == name[..] || wanted[..wanted.len().min(NAME_LENGTH)] == *comm
                };
                self.commands.iter().any(is)
            })
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Process, record::Record};

    use super::*;

    #[test]
    fn lists_are_joined() {
        let mut record = Record::default();
        record.identity.tgid = 42;
        record.identity.comm = *b"a-name-that-is-\0";
        record.identity.groups = Fields::USERS.bits();
        let admits = |pids: &[&str], users: &[&str], commands: &[&str]| {
            let pids = pids
                .iter()
                .map(|list| list.parse().expect("pids"))
                .collect();
            let users = users
                .iter()
                .map(|list| list.parse().expect("users"))
                .collect();
            let commands = commands
                .iter()
                .map(|list| list.parse().expect("names"))
                .collect();
            Selection::new(pids, users, commands).admits(&Row::of(Process::new(&record, &[])))
        };
        assert!(admits(&[], &[], &[]));
        assert!(admits(&["1,2 42"], &[], &[]));
        assert!(admits(&["1", "42\n43"], &[], &[]));
        assert!(!admits(&["1"], &[], &[]));
        assert!(admits(&["1"], &["root"], &[]));
        assert!(admits(&[], &["12,0"], &[]));
        assert!(!admits(&[], &["12"], &[]));
        assert!(admits(&[], &[], &["x,a-name-that-is-long"]));
        assert!(!admits(&[], &[], &["a-name"]));
        assert!("x".parse::<Pids>().is_err() && " ,".parse::<Pids>().is_err());
        assert!("no such user".parse::<Users>().is_err());
    }
}
