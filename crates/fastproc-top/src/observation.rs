//! The data of a screen and of a recording: two snapshots to compare.

use std::collections::HashMap;

use fastproc::{Baseline, Snapshot, cgroups};
use fastproc_columns::cgroups::{Members, Row, Rows};

use crate::{details::Page, exited::Exited, id::Id, machine::Machine};

/// The last snapshot and the one before it, with the machine's numbers at both.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Every process.
    pub snapshot: Snapshot<'a>,
    /// The previous snapshot; `None` for the first one.
    pub before: Option<&'a Baseline>,
    /// The machine.
    pub machine: &'a Machine,
    /// The machine at the previous snapshot.
    pub earlier: Option<&'a Machine>,
    /// The times of the first and the last snapshot of a recording.
    pub span: Option<(u64, u64)>,
    /// Processes that exited between the two.
    pub exited: &'a Exited,
    /// Limits and open files of a recording; `None`: read them from `/proc`.
    pub pages: Option<&'a Pages>,
    /// The cgroups; `None` unless they are shown.
    pub cgroups: Option<Cgroups<'a>>,
}

/// All cgroups at about the time of the snapshot of the processes.
#[derive(Clone, Copy, Debug)]
pub struct Cgroups<'a> {
    /// Every cgroup.
    pub snapshot: cgroups::Snapshot<'a>,
    /// The cgroups before it; `None` for the first snapshot.
    pub before: Option<&'a cgroups::Baseline>,
    /// How many processes they have, if that is known.
    pub members: Option<&'a Members>,
    /// The controllers whose values are not known here.
    pub absent: &'a [&'static str],
    /// Where they are read from.
    pub source: cgroups::Source,
}

impl<'a> Cgroups<'a> {
    /// A row for each.
    pub fn rows(&self) -> Rows<'a> {
        Rows::new(self.snapshot, self.before, self.members)
    }

    /// The row of one cgroup.
    pub fn row(&self, id: u64) -> Option<Row<'a>> {
        Row::new(id, self.snapshot, self.before, self.members)
    }
}

/// Limits and open files that were recorded.
#[derive(Debug, Default)]
pub struct Pages(HashMap<(u32, u64), [Option<Vec<u8>>; 2]>);

impl Pages {
    /// Keeps the text of a page, limits or open files, of a process.
    pub fn keep(&mut self, page: Page, pid: u32, start_ns: u64, text: Vec<u8>) {
        let texts = self.0.entry((pid, start_ns)).or_default();
        texts[usize::from(page == Page::Files)] = Some(text);
    }

    /// The lines of a page, or why there are none.
    pub fn read(&self, page: Page, id: Id) -> Result<Vec<Vec<u8>>, String> {
        if page == Page::Environment {
            return Err("environments are not recorded".into());
        }
        let texts = self.0.get(&(id.pid, id.start_ns));
        let text = texts.and_then(|texts| texts[usize::from(page == Page::Files)].as_deref());
        let text = text.ok_or("not recorded of this process, or only later in the recording")?;
        Ok(text.split(|&byte| byte == b'\n').map(Into::into).collect())
    }
}
