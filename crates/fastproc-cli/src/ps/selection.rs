//! Selects processes, like ps(1).

mod lists;

use std::fs;

use fastproc::{Fields, frozen};
use fastproc_columns::Row;

pub use self::lists::{By, ListError, More, Pids, Select, Users};

/// A selection by properties of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    All,
    /// Processes on a terminal, except session leaders.
    OnTerminals,
    /// All processes except session leaders.
    NotLeaders,
    /// The user's processes on terminals; optionally those of others, and those without a terminal.
    Bsd {
        others: bool,
        without_terminal: bool,
    },
    /// The user's processes on the user's terminal.
    OwnOnTerminal,
    /// All processes on the user's terminal.
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
        let is_own = || By::User.id(row) == Some(own.user);
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

/// The controlling terminal of this process, or 0.
fn own_terminal() -> u32 {
    // It has the name of this process, which may be any bytes.
    let stat = fs::read(frozen::own_path("/proc/self/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // State, parent, group and session precede it.
    let number = after_name.split(' ').nth(4);
    number
        .and_then(|number| number.parse::<i32>().ok())
        .unwrap_or(0) as u32
}

/// The user and terminal of this process.
#[derive(Clone, Debug)]
struct Own {
    terminal: u32,
    user: u32,
}

/// Selects the processes on any of the lists, or of any of the choices; without both, all processes.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    lists: Vec<(By, Vec<u32>)>,
    commands: Vec<Vec<u8>>,
    choices: Vec<Choice>,
    own: Option<Own>,
    negated: bool,
    /// Whether the processes come in the order of the list (`-q`).
    in_order: bool,
    /// Show only running processes of those that are selected.
    pub running: bool,
}

/// The longest name that the kernel keeps of a program, in bytes.
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
        selection.take(&more.quick);
        selection.in_order = !more.quick.is_empty();
        selection
    }
}

impl Selection {
    fn take(&mut self, lists: &[impl Clone + Into<(By, Vec<u32>)>]) {
        self.lists.extend(lists.iter().cloned().map(Into::into));
    }

    /// Adds a list.
    pub fn list(&mut self, by: By, text: &str) -> Result<(), ListError> {
        self.lists.push((by, by.parse(text)?));
        Ok(())
    }

    /// Adds the list of `q`, which also decides the order.
    pub fn list_in_order(&mut self, text: &str) -> Result<(), ListError> {
        self.in_order = true;
        self.list(By::Pid, text)
    }

    /// The processes in the order in which they come, if a list decides it.
    pub fn order(&self) -> Option<&[u32]> {
        let (_, pids) = self.lists.first().filter(|_| self.in_order)?;
        Some(pids)
    }

    /// The only processes that it may admit, if lists of pids say which.
    pub fn pids(&self) -> Option<Vec<u32>> {
        let are_pids = self.lists.iter().all(|(by, _)| *by == By::Pid);
        let is_more = !self.commands.is_empty() || !self.choices.is_empty() || self.negated;
        let pids = self.lists.iter().flat_map(|(_, pids)| pids.iter().copied());
        (are_pids && !is_more && !self.lists.is_empty()).then(|| pids.collect())
    }

    /// Whether a list decides the order, and it is not all that selects.
    pub fn mixes_order(&self) -> bool {
        let is_alone = self.lists.len() == 1
            && self.commands.is_empty()
            && self.choices.is_empty()
            && !self.negated;
        self.in_order && !is_alone
    }

    /// Adds a choice.
    pub fn choose(&mut self, choice: Choice) {
        self.own.get_or_insert_with(|| Own {
            terminal: own_terminal(),
            user: rustix::process::geteuid().as_raw(),
        });
        self.choices.push(choice);
    }

    /// Adds the lists and choices of another selection.
    pub fn and(&mut self, other: Self) {
        self.lists.extend(other.lists);
        self.commands.extend(other.commands);
        self.choices.extend(other.choices);
        self.own = self.own.take().or(other.own);
        self.negated |= other.negated;
        self.in_order |= other.in_order;
        self.running |= other.running;
    }

    /// The groups of fields that the selection needs.
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

    /// Whether there are no lists and no choices.
    pub fn is_open(&self) -> bool {
        self.lists.is_empty() && self.commands.is_empty() && self.choices.is_empty()
    }

    /// Whether it selects all processes.
    pub fn admits_all(&self) -> bool {
        let is_all = |choice: &Choice| {
            matches!(
                choice,
                Choice::All
                    | Choice::Bsd {
                        others: true,
                        without_terminal: true
                    }
            )
        };
        (self.is_open() || self.choices.iter().any(is_all)) && !self.negated && !self.running
    }

    /// Whether the process is selected.
    pub fn admits(&self, row: &Row<'_>) -> bool {
        if self.running && !matches!(row.state().letter(), b'R' | b'D') {
            return false;
        }
        (self.is_open() || self.selects(row)) != self.negated
    }

    fn selects(&self, row: &Row<'_>) -> bool {
        let listed = |(by, list): &(By, Vec<u32>)| by.id(row).is_some_and(|of| list.contains(&of));
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

    use super::{lists::Commands, *};

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
        selection.admits(&Row::new(Process::new(&record(), &[])))
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
        assert!(named("x a-name-that-is-") && !named(" x"));
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
    fn zero_is_a_group_and_no_session() {
        for (list, by) in [("0", By::Group), ("0,1", By::Group), ("1", By::Session)] {
            let list: lists::SessionsOrGroups = list.parse().expect("a list");
            assert_eq!(<(By, Vec<u32>)>::from(list).0, by);
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

    /// A service then sends the command lines of all processes.
    #[test]
    fn the_words_a_and_x_together_select_all() {
        let admits_all = |others, without_terminal| {
            let mut selection = Selection::default();
            selection.choose(Choice::Bsd {
                others,
                without_terminal,
            });
            selection.admits_all()
        };
        assert!(admits_all(true, true) && !admits_all(true, false) && !admits_all(false, true));
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
