//! Which processes to show, as ps(1) selects them.

use std::{fs, os::unix::fs::MetadataExt, str::FromStr};

use fastproc::Fields;
use fastproc_columns::{Names, Row};

/// What a list of numbers is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Process ids.
    Pid,
    /// Those of parents.
    Parent,
    /// Sessions.
    Session,
    /// Terminals.
    Terminal,
    /// Effective users.
    User,
    /// Real users.
    RealUser,
    /// Effective groups.
    Group,
    /// Real groups.
    RealGroup,
}

/// A list that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("the list is empty")]
    Empty,
    #[error("'{}' is no process id", .0.escape_debug())]
    Pid(String),
    #[error("'{}' is no session: give its id", .0.escape_debug())]
    Session(String),
    #[error("there is no user '{}'", .0.escape_debug())]
    User(String),
    #[error("there is no group '{}'", .0.escape_debug())]
    Group(String),
    #[error("there is no terminal '{}'; name it as in pts/0 or tty1, or - for none", .0.escape_debug())]
    Terminal(String),
    #[error("name a program")]
    Name,
}

impl By {
    /// Numbers, or names that have one, with commas or blanks between them.
    fn parse(self, text: &str) -> Result<Vec<u32>, ListError> {
        let words = text.split(|c: char| c == ',' || c.is_whitespace());
        let numbers = words.filter(|word| !word.is_empty());
        let numbers: Vec<_> = numbers
            .map(|word| self.one(word))
            .collect::<Result<_, _>>()?;
        if numbers.is_empty() {
            return Err(ListError::Empty);
        }
        Ok(numbers)
    }

    fn one(self, word: &str) -> Result<u32, ListError> {
        let number = word.parse().ok();
        let owned = || word.to_owned();
        match self {
            Self::Pid | Self::Parent => number.ok_or_else(|| ListError::Pid(owned())),
            Self::Session => number.ok_or_else(|| ListError::Session(owned())),
            Self::User | Self::RealUser => Names::user_id(word)
                .or(number)
                .ok_or_else(|| ListError::User(owned())),
            Self::Group | Self::RealGroup => Names::group_id(word)
                .or(number)
                .ok_or_else(|| ListError::Group(owned())),
            Self::Terminal => terminal(word).ok_or_else(|| ListError::Terminal(owned())),
        }
    }

    /// The number of a process.
    fn of(self, row: &Row<'_>) -> Option<u32> {
        let identity = row.process.identity();
        match self {
            Self::Pid => Some(row.process.pid()),
            Self::Parent => Some(identity.ppid),
            Self::Session => Some(identity.session),
            Self::Terminal => Some(identity.tty_nr as u32),
            Self::User => row.users().map(|(_, effective)| effective),
            Self::RealUser => row.users().map(|(real, _)| real),
            Self::Group => row.groups().map(|(_, effective)| effective),
            Self::RealGroup => row.groups().map(|(real, _)| real),
        }
    }
}

/// The number of a terminal, as records have it, by any of its names.
fn terminal(name: &str) -> Option<u32> {
    if matches!(name, "-" | "?") {
        return Some(0);
    }
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    let paths = [
        format!("/dev/{name}"),
        format!("/dev/tty{name}"),
        format!("/dev/pts/{name}"),
    ];
    let device = paths.iter().find_map(|path| {
        let file = fs::metadata(path).ok()?;
        Some(file.rdev()).filter(|&device| device != 0)
    })?;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // new_encode_dev() of the kernel
    Some(minor & 0xff | major << 8 | (minor & !0xff) << 12)
}

/// The controlling terminal of this process, or 0.
fn own_terminal() -> u32 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // State, parent, group and session come before it.
    let number = after_name.split(' ').nth(4);
    number
        .and_then(|number| number.parse::<i32>().ok())
        .unwrap_or(0) as u32
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident = $by:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $name(pub Vec<u32>);

            impl FromStr for $name {
                type Err = ListError;

                fn from_str(text: &str) -> Result<Self, ListError> {
                    Ok(Self($by.parse(text)?))
                }
            }

            impl From<$name> for (By, Vec<u32>) {
                fn from(list: $name) -> Self {
                    ($by, list.0)
                }
            }
        )*
    };
}

lists! {
    /// After `-p`.
    Pids = By::Pid;
    /// After `--ppid`.
    Parents = By::Parent;
    /// After `-s`.
    Sessions = By::Session;
    /// After `-t`.
    Terminals = By::Terminal;
    /// After `-u`.
    Users = By::User;
    /// After `-U`.
    RealUsers = By::RealUser;
    /// After `--group`.
    Groups = By::Group;
    /// After `-G`.
    RealGroups = By::RealGroup;
}

/// After `-g`: sessions by number, or groups by name.
#[derive(Clone, Debug)]
pub struct SessionsOrGroups(By, Vec<u32>);

impl FromStr for SessionsOrGroups {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        match By::Session.parse(text) {
            Ok(sessions) => Ok(Self(By::Session, sessions)),
            Err(_) => Ok(Self(By::Group, By::Group.parse(text)?)),
        }
    }
}

impl From<SessionsOrGroups> for (By, Vec<u32>) {
    fn from(list: SessionsOrGroups) -> Self {
        (list.0, list.1)
    }
}

/// Names of programs, with commas between them.
#[derive(Clone, Debug)]
pub struct Commands(Vec<Vec<u8>>);

impl FromStr for Commands {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        let names = text.split(',').filter(|name| !name.is_empty());
        let names: Vec<_> = names.map(|name| name.as_bytes().to_vec()).collect();
        if names.is_empty() {
            return Err(ListError::Name);
        }
        Ok(Self(names))
    }
}

/// Which processes are asked for. A process is shown that is on any of the lists.
#[derive(Debug, clap::Args)]
pub struct Select {
    /// Show only these processes, and those of the other lists
    #[arg(short, long, value_name = "PID,…", alias = "quick-pid")]
    pub pid: Vec<Pids>,

    /// Show only the processes of these effective users, by name or number, and those of the other lists
    #[arg(short, long, value_name = "USER,…")]
    user: Vec<Users>,

    /// Show only the processes with these names, and those of the other lists
    #[arg(short = 'C', long, value_name = "NAME,…")]
    comm: Vec<Commands>,
}

/// The other lists of ps(1).
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As in ps(1)")]
pub struct More {
    /// Those of these real users
    #[arg(short = 'U', long = "User", value_name = "USER,…")]
    real_user: Vec<RealUsers>,

    /// Those of these real groups
    #[arg(short = 'G', long = "Group", value_name = "GROUP,…")]
    real_group: Vec<RealGroups>,

    /// Those of these effective groups
    #[arg(long, value_name = "GROUP,…")]
    group: Vec<Groups>,

    /// Those of these sessions, or of these effective groups by name
    #[arg(short = 'g', value_name = "SESSION,…")]
    session_or_group: Vec<SessionsOrGroups>,

    /// Those of these sessions
    #[arg(short = 's', long = "sid", value_name = "SESSION,…")]
    session: Vec<Sessions>,

    /// Those on these terminals, - for none
    #[arg(
        short = 't',
        long = "tty",
        value_name = "TTY,…",
        allow_hyphen_values = true
    )]
    terminal: Vec<Terminals>,

    /// Children of these processes
    #[arg(long, value_name = "PID,…")]
    ppid: Vec<Parents>,

    /// All but those that are selected
    #[arg(short = 'N', long)]
    deselect: bool,
}

/// Processes that are selected by what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    All,
    /// Those on a terminal that lead no session.
    OnTerminals,
    /// Those that lead no session.
    NotLeaders,
    /// One's own on terminals; with others' as well, or those without a terminal.
    Bsd {
        others: bool,
        without_terminal: bool,
    },
    /// One's own on one's own terminal.
    OwnOnTerminal,
    /// All on one's own terminal.
    OwnTerminal,
}

impl Choice {
    const fn is_of_users(self) -> bool {
        matches!(self, Self::OwnOnTerminal | Self::Bsd { others: false, .. })
    }

    fn admits(self, row: &Row<'_>, own: &Own) -> bool {
        let identity = row.process.identity();
        let has_terminal = identity.tty_nr != 0;
        let on_own = identity.tty_nr as u32 == own.terminal;
        let is_own = || By::User.of(row) == Some(own.user);
        let leads = identity.session == row.process.pid();
        match self {
            Self::All => true,
            Self::OnTerminals => has_terminal && !leads,
            Self::NotLeaders => !leads,
            Self::Bsd {
                others,
                without_terminal,
            } => (others || is_own()) && (without_terminal || has_terminal),
            Self::OwnOnTerminal => on_own && is_own(),
            Self::OwnTerminal => on_own,
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
struct Own {
    terminal: u32,
    user: u32,
}

/// Processes are selected if they are on one of the lists or of one of the choices, or if there is neither.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    lists: Vec<(By, Vec<u32>)>,
    commands: Vec<Vec<u8>>,
    choices: Vec<Choice>,
    own: Option<Own>,
    negated: bool,
    /// Of those that are selected, only those that run.
    pub running: bool,
}

/// Bytes of a name that the kernel keeps of a program.
const NAME_LENGTH: usize = 15;

impl From<&Select> for Selection {
    fn from(select: &Select) -> Self {
        let mut selection = Self {
            commands: select.comm.iter().flat_map(|list| list.0.clone()).collect(),
            ..Self::default()
        };
        selection.take(&select.pid);
        selection.take(&select.user);
        selection
    }
}

impl From<&More> for Selection {
    fn from(more: &More) -> Self {
        let mut selection = Self {
            negated: more.deselect,
            ..Self::default()
        };
        selection.take(&more.real_user);
        selection.take(&more.real_group);
        selection.take(&more.group);
        selection.take(&more.session_or_group);
        selection.take(&more.session);
        selection.take(&more.terminal);
        selection.take(&more.ppid);
        selection
    }
}

impl Selection {
    fn take(&mut self, lists: &[impl Clone + Into<(By, Vec<u32>)>]) {
        self.lists.extend(lists.iter().cloned().map(Into::into));
    }

    /// Takes a list.
    pub fn list(&mut self, by: By, text: &str) -> Result<(), ListError> {
        self.lists.push((by, by.parse(text)?));
        Ok(())
    }

    /// Takes a choice.
    pub fn choose(&mut self, choice: Choice) {
        self.own.get_or_insert_with(|| Own {
            terminal: own_terminal(),
            user: rustix::process::geteuid().as_raw(),
        });
        self.choices.push(choice);
    }

    /// Takes what the other selects as well.
    pub fn and(&mut self, other: Self) {
        self.lists.extend(other.lists);
        self.commands.extend(other.commands);
        self.choices.extend(other.choices);
        self.own = self.own.take().or(other.own);
        self.negated |= other.negated;
        self.running |= other.running;
    }

    /// The groups of fields that it looks at.
    pub fn needs(&self) -> Fields {
        let of_users = |by: By| matches!(by, By::User | By::RealUser | By::Group | By::RealGroup);
        let users = self.lists.iter().any(|(by, _)| of_users(*by))
            || self.choices.iter().any(|choice| choice.is_of_users());
        if users {
            Fields::USERS
        } else {
            Fields::empty()
        }
    }

    /// Whether there is neither a list nor a choice.
    pub fn is_open(&self) -> bool {
        self.lists.is_empty() && self.commands.is_empty() && self.choices.is_empty()
    }

    /// Whether it leaves nothing out.
    pub fn admits_all(&self) -> bool {
        (self.is_open() || self.choices.contains(&Choice::All)) && !self.negated && !self.running
    }

    /// Whether the process is selected.
    pub fn admits(&self, row: &Row<'_>) -> bool {
        if self.running && !matches!(row.state().letter(), b'R' | b'D') {
            return false;
        }
        (self.is_open() || self.selects(row)) != self.negated
    }

    fn selects(&self, row: &Row<'_>) -> bool {
        let listed = |(by, list): &(By, Vec<u32>)| by.of(row).is_some_and(|of| list.contains(&of));
        let chosen = |own| self.choices.iter().any(|choice| choice.admits(row, own));
        self.lists.iter().any(listed)
            || self.own.as_ref().is_some_and(chosen)
            || (!self.commands.is_empty() && self.names(row))
    }

    fn names(&self, row: &Row<'_>) -> bool {
        let name = row.process.name();
        let comm = &name[..name.len().min(NAME_LENGTH)];
        let is = |wanted: &Vec<u8>| {
            wanted[..] == name[..] || wanted[..wanted.len().min(NAME_LENGTH)] == *comm
        };
        self.commands.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Process, record::Record};

    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        record.identity.tgid = 42;
        record.identity.session = 42;
        // Asleep.
        record.identity.state_bits = 1;
        record.identity.ppid = 7;
        record.identity.tty_nr = 34816;
        record.identity.comm = *b"a-name-that-is-\0";
        record.identity.groups = Fields::USERS.bits();
        record.users.euid = 5;
        record
    }

    fn admits(change: impl FnOnce(&mut Selection)) -> bool {
        let mut selection = Selection::default();
        change(&mut selection);
        selection.admits(&Row::of(Process::new(&record(), &[])))
    }

    #[test]
    fn lists_are_joined() {
        let lists = |lists: &[(By, &str)]| {
            admits(|selection| {
                for &(by, text) in lists {
                    selection.list(by, text).expect("a list");
                }
            })
        };
        assert!(lists(&[]));
        assert!(lists(&[(By::Pid, "1,2 42")]));
        assert!(lists(&[(By::Pid, "1"), (By::Pid, "42\n43")]));
        assert!(!lists(&[(By::Pid, "1")]));
        assert!(lists(&[(By::Pid, "1"), (By::User, "5")]));
        assert!(lists(&[(By::RealUser, "root")]) && !lists(&[(By::User, "root")]));
        assert!(lists(&[(By::Parent, "7")]) && lists(&[(By::Session, "42")]));
        assert!(!lists(&[(By::Terminal, "-")]));
        let named = |names: &str| {
            let commands: Commands = names.parse().expect("names");
            admits(|selection| selection.commands = commands.0)
        };
        assert!(named("x,a-name-that-is-long") && !named("a-name"));
        let mut selection = Selection::default();
        for (by, wrong) in [
            (By::Pid, "x"),
            (By::Pid, " ,"),
            (By::User, "no such user"),
            (By::Group, "no such group"),
            (By::Terminal, "no-such"),
        ] {
            assert!(selection.list(by, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn choices_are_those_of_ps() {
        let own = Some(Own {
            terminal: 34817,
            user: 5,
        });
        let chosen = |choice| {
            let own = own.clone();
            admits(move |selection| {
                selection.own = own;
                selection.choices.push(choice);
            })
        };
        let bsd = |others, without_terminal| Choice::Bsd {
            others,
            without_terminal,
        };
        assert!(chosen(Choice::All) && chosen(bsd(true, false)) && chosen(bsd(false, false)));
        assert!(!chosen(Choice::OnTerminals) && !chosen(Choice::NotLeaders));
        assert!(!chosen(Choice::OwnTerminal) && !chosen(Choice::OwnOnTerminal));
    }

    #[test]
    fn a_selection_can_be_turned_round() {
        assert!(!admits(|selection| {
            selection.list(By::Pid, "42").expect("a list");
            selection.negated = true;
        }));
        assert!(!admits(|selection| selection.running = true));
    }
}
