//! Lists of processes, users, groups, sessions, terminals and names on the command line.

use std::str::FromStr;

use fastproc_columns::{Names, Row};

/// The property that a list of numbers selects by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Process ids.
    Pid,
    /// Process ids of parents.
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

/// Why a list is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("the list is empty; give at least one entry")]
    Empty,
    #[error("'{}' is not a process id; give a number", .0.escape_debug())]
    Pid(String),
    #[error("'{}' is not a session; give its id", .0.escape_debug())]
    Session(String),
    #[error("there is no user '{}'", .0.escape_debug())]
    User(String),
    #[error("there is no group '{}'", .0.escape_debug())]
    Group(String),
    #[error("there is no terminal '{}'; name it as in pts/0 or tty1, or - for none", .0.escape_debug())]
    Terminal(String),
    #[error("the list is empty; give the name of a program")]
    Name,
}

/// The entries of a list.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    words.filter(|word| !word.is_empty())
}

impl By {
    /// Parses numbers, or names that have one, separated by commas or blanks.
    pub(super) fn parse(self, text: &str) -> Result<Vec<u32>, ListError> {
        let numbers = words(text).map(|word| self.one(word));
        let numbers: Vec<_> = numbers.collect::<Result<_, _>>()?;
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

    /// The property of a process, as a number.
    pub(super) fn id(self, row: &Row<'_>) -> Option<u32> {
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

/// The number of a terminal in records, by any of its names.
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
        let (device, _) = fastproc::frozen::device(path)?;
        Some(device).filter(|&device| device != 0)
    })?;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // new_encode_dev() of the kernel
    Some(minor & 0xff | major << 8 | (minor & !0xff) << 12)
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
    /// The value of `-p`.
    Pids = By::Pid;
    /// The value of `--ppid`.
    Parents = By::Parent;
    /// The value of `-s`.
    Sessions = By::Session;
    /// The value of `-t`.
    Terminals = By::Terminal;
    /// The value of `-u`.
    Users = By::User;
    /// The value of `-U`.
    RealUsers = By::RealUser;
    /// The value of `--group`.
    Groups = By::Group;
    /// The value of `-G`.
    RealGroups = By::RealGroup;
}

/// The value of `-g`: sessions by number, or groups by name.
#[derive(Clone, Debug)]
pub struct SessionsOrGroups(By, Vec<u32>);

impl FromStr for SessionsOrGroups {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        match By::Session.parse(text) {
            // No session has the number 0, so ps(1) takes a list with it for groups.
            Ok(sessions) if !sessions.contains(&0) => Ok(Self(By::Session, sessions)),
            _ => Ok(Self(By::Group, By::Group.parse(text)?)),
        }
    }
}

impl From<SessionsOrGroups> for (By, Vec<u32>) {
    fn from(list: SessionsOrGroups) -> Self {
        (list.0, list.1)
    }
}

/// Names of programs, separated by commas or blanks.
#[derive(Clone, Debug)]
pub struct Commands(pub(super) Vec<Vec<u8>>);

impl FromStr for Commands {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        let names = words(text);
        let names: Vec<_> = names.map(|name| name.as_bytes().to_vec()).collect();
        if names.is_empty() {
            return Err(ListError::Name);
        }
        Ok(Self(names))
    }
}

/// The lists that select processes. A process is shown if it is on any of them.
#[derive(Debug, clap::Args)]
pub struct Select {
    /// Select these processes; several selections add up.
    #[arg(short, long, value_name = "PID,…")]
    pub pid: Vec<Pids>,

    /// Select the processes of these effective users, by name or number.
    #[arg(short, long, value_name = "USER,…")]
    pub(super) user: Vec<Users>,

    /// Select the processes with these names; commas or blanks separate them.
    #[arg(short = 'C', long, value_name = "NAME,…")]
    pub(super) comm: Vec<Commands>,
}

/// The other lists of ps(1).
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As in ps(1)")]
pub struct More {
    /// Select the processes of these real users.
    #[arg(short = 'U', long = "User", value_name = "USER,…")]
    pub(super) real_user: Vec<RealUsers>,

    /// Select the processes of these real groups.
    #[arg(short = 'G', long = "Group", value_name = "GROUP,…")]
    pub(super) real_group: Vec<RealGroups>,

    /// Select the processes of these effective groups.
    #[arg(long, value_name = "GROUP,…")]
    pub(super) group: Vec<Groups>,

    /// Select the processes of these sessions by number, or effective groups by name.
    #[arg(short = 'g', value_name = "SESSION,…")]
    pub(super) session_or_group: Vec<SessionsOrGroups>,

    /// Select the processes of these sessions.
    #[arg(short = 's', long = "sid", value_name = "SESSION,…")]
    pub(super) session: Vec<Sessions>,

    /// Select the processes on these terminals; - means none.
    #[arg(
        short = 't',
        long = "tty",
        value_name = "TTY,…",
        allow_hyphen_values = true
    )]
    pub(super) terminal: Vec<Terminals>,

    /// Select these processes, and show them in the order of the list.
    #[arg(short = 'q', long = "quick-pid", value_name = "PID,…")]
    pub(super) quick: Vec<Pids>,

    /// Select the children of these processes.
    #[arg(long, value_name = "PID,…")]
    pub(super) ppid: Vec<Parents>,

    /// Select all processes except those that the other options select.
    #[arg(short = 'N', long)]
    pub(super) deselect: bool,
}
