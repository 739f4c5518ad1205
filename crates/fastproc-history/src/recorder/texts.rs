//! Texts that no record holds.

use std::collections::HashMap;

use fastproc::{
    Details, Host, Process, Snapshot,
    container::{self, Origin},
    exits::Exit,
    host::boottime_ns,
};
use fastproc_columns::Names as NamesById;

use super::{cells::Cell, shares::Shares, writing::Event};
use crate::escape::joined;

/// How many columns follow from the cgroup: its path, the container and its name, pod, namespace and image.
pub const OF_CGROUP: usize = 6;

/// The longest command line that is kept, in bytes. Of a longer one the beginning is.
const LONGEST_LINE: usize = 16 * 1024;
/// Bytes of command lines of one user in a quarter of an hour. Further ones are unknown.
const MOST_LINES: usize = 4 << 20;
/// The most cgroups of which texts are kept.
const MOST_CGROUPS: usize = 20_000;

/// Whose names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those of users.
    Users,
    /// Those of groups.
    Groups,
}

/// Which command lines are kept. They may hold passwords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Those of exited processes too, as they were executed.
    All,
    /// As read when a process is first seen, and when it has another name.
    #[default]
    Kept,
    /// None.
    None,
}

/// Answers what no record says.
pub trait Texts {
    /// Begins a snapshot; with `group` also a row group.
    fn begin(&mut self, _snapshot: &Snapshot<'_>, _group: bool) {}
    /// The time of the snapshot since boot, on the clock of start times.
    fn now_ns(&self) -> u64 {
        0
    }
    /// The name of a user or group.
    fn name(&mut self, of: Names, id: u32) -> Cell;
    /// The command line.
    fn line(&mut self, process: Process<'_>) -> Cell;
    /// Whether the command line that was given last is only the beginning of it.
    fn line_is_cut(&self) -> bool {
        false
    }
    /// The command line of an exited process, if it was recorded.
    fn line_of_exit(&mut self, _snapshot: &Snapshot<'_>, _exit: &Exit) -> Cell {
        Cell::Null
    }
    /// What follows from its cgroup.
    fn cgroup(&mut self, _process: Process<'_>) -> [Cell; OF_CGROUP] {
        Default::default()
    }
    /// The path of a cgroup, if a process in it has been met.
    fn cgroup_of_exit(&mut self, _id: u64) -> Cell {
        Cell::Null
    }
    /// Whether the kernel would show this reader everything of a process.
    fn may_trace(&mut self, process: Process<'_>) -> bool;
    /// Goes on in this quarter of an hour, or ends. Tells whose command lines were left out in the one that is over.
    fn left_out(&mut self, _quarter: Option<i64>) -> Vec<Event> {
        Vec::new()
    }
}

/// Asks this machine.
#[derive(Debug)]
pub struct Live {
    details: Details,
    users: NamesById,
    groups: NamesById,
    containers: container::Names,
    cgroups: HashMap<u64, [Cell; OF_CGROUP]>,
    lines: Lines,
    shares: Shares,
    cut: bool,
    /// Whether nothing must be hidden from this reader.
    sees_all: bool,
    is_guarded: bool,
    now_ns: u64,
}

impl Live {
    /// Asks this machine. Privileges must have been dropped before, if that is to happen.
    pub fn open(host: &Host, lines: Lines) -> Result<Self, fastproc::Error> {
        Ok(Self {
            details: Details::open(host)?,
            users: NamesById::users(),
            groups: NamesById::groups(),
            containers: container::Names::default(),
            cgroups: HashMap::new(),
            lines,
            shares: Shares::new(MOST_LINES, ["command lines", " bytes"]),
            cut: false,
            sees_all: fastproc::access::may_trace_all(),
            is_guarded: false,
            now_ns: boottime_ns(),
        })
    }

    fn read_cgroup(&mut self, process: Process<'_>) -> Option<[Cell; OF_CGROUP]> {
        let path = self.details.whole_cgroup(process).ok()?;
        let origin = Origin::from_cgroup(path);
        let labels = self.containers.get(&origin);
        let label = |text: fn(&container::Labels) -> &Option<Box<str>>| {
            let text = labels.and_then(|labels| text(labels).as_deref());
            text.map_or(Cell::Null, Cell::from)
        };
        Some([
            path.into(),
            origin.container.map_or(Cell::Null, Cell::from),
            label(|labels| &labels.name),
            label(|labels| &labels.pod),
            label(|labels| &labels.namespace),
            label(|labels| &labels.image),
        ])
    }
}

/// The beginning of a command line of a user, if it is kept, and whether there is more of it.
fn kept(shares: &mut Shares, cut: &mut bool, uid: u32, line: &[u8]) -> Cell {
    *cut = line.len() > LONGEST_LINE;
    let line = &line[..line.len().min(LONGEST_LINE)];
    if shares.take(uid, line.len()) {
        Cell::Text(joined(line).into())
    } else {
        Cell::Null
    }
}

impl Texts for Live {
    fn begin(&mut self, snapshot: &Snapshot<'_>, group: bool) {
        let stats = snapshot.stats();
        self.now_ns = stats.kernel_boottime_ns();
        self.is_guarded = stats.source.is_guarded();
        // What has changed its name is found again.
        if group || self.cgroups.len() > MOST_CGROUPS {
            self.details.renew();
            self.cgroups.clear();
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn name(&mut self, of: Names, id: u32) -> Cell {
        match of {
            Names::Users => self.users.name(id).into(),
            Names::Groups => self.groups.name(id).into(),
        }
    }

    fn line(&mut self, process: Process<'_>) -> Cell {
        if self.lines == Lines::None {
            return Cell::Null;
        }
        let (shares, cut) = (&mut self.shares, &mut self.cut);
        let uid = process.users().map_or(u32::MAX, |users| users.uid);
        if process.identity().is_kernel_thread() {
            return kept(shares, cut, uid, b"");
        }
        if let Some(line) = process.served_cmdline() {
            return kept(shares, cut, uid, line);
        }
        let line = self.details.file(process, c"cmdline");
        line.map_or(Cell::Null, |line| kept(shares, cut, uid, line))
    }

    fn line_of_exit(&mut self, snapshot: &Snapshot<'_>, exit: &Exit) -> Cell {
        match snapshot.exit_cmdline(exit) {
            Some(line) if self.lines == Lines::All => {
                let kept = kept(&mut self.shares, &mut self.cut, exit.uid, line.bytes);
                self.cut |= line.cut;
                kept
            }
            _ => Cell::Null,
        }
    }

    fn line_is_cut(&self) -> bool {
        self.cut
    }

    fn cgroup(&mut self, process: Process<'_>) -> [Cell; OF_CGROUP] {
        let id = process.cgroup_id();
        if let Some(known) = id.and_then(|id| self.cgroups.get(&id)) {
            return known.clone();
        }
        let read = self.read_cgroup(process);
        if let (Some(id), Some(read)) = (id, &read) {
            self.cgroups.insert(id, read.clone());
        }
        read.unwrap_or_default()
    }

    fn cgroup_of_exit(&mut self, id: u64) -> Cell {
        let known = self.cgroups.get(&id);
        known.map_or(Cell::Null, |[path, ..]| path.clone())
    }

    fn left_out(&mut self, quarter: Option<i64>) -> Vec<Event> {
        self.shares.at(quarter)
    }

    fn may_trace(&mut self, process: Process<'_>) -> bool {
        self.sees_all || self.is_guarded || self.details.may_read_io(process)
    }
}
