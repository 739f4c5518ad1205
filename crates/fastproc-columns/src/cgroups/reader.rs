//! Reads cgroups again and again, as rows.

use fastproc::{
    Collector,
    cgroups::{self, Baseline, Cgroups, Fields, Source},
};

use super::{Column, Members, Rows};

/// Why cgroups, or the processes in them, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The cgroups.
    #[error(transparent)]
    Cgroups(#[from] cgroups::Error),
    /// The processes.
    #[error(transparent)]
    Processes(#[from] fastproc::Error),
}

/// Reads what columns show.
#[derive(Debug)]
pub struct Reader {
    cgroups: Cgroups,
    /// If a column counts them and they are available.
    processes: Option<Collector>,
    members: Option<Members>,
    before: Baseline,
    reads: u64,
}

impl Reader {
    /// Opens it for these columns. `source`: the only one to use.
    ///
    /// # Errors
    /// No cgroup hierarchy of version 2 is mounted, or the source cannot be used.
    pub fn open(columns: &[&Column], source: Option<Source>) -> Result<Self, cgroups::Error> {
        let needs = columns.iter();
        let needs = needs.fold(Fields::empty(), |needs, column| needs | column.needs);
        let cgroups = Cgroups::builder().fields(needs).source(source).open()?;
        let counts = columns.iter().any(|column| column.counts_processes);
        let processes =
            counts.then(|| Collector::builder().fields(fastproc::Fields::CGROUP).open());
        Ok(Self {
            cgroups,
            // Without them the numbers of processes are not known.
            processes: processes.and_then(Result::ok),
            members: None,
            before: Baseline::default(),
            reads: 0,
        })
    }

    /// What reads the cgroups.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// Reads all cgroups, and compares them with those of the time before.
    ///
    /// # Errors
    /// The cgroups or the processes could not be read.
    pub fn read(&mut self) -> Result<(), ReadError> {
        if self.reads > 0 {
            self.before.set(self.cgroups.last());
        }
        self.members = match &mut self.processes {
            Some(processes) => Members::new(&processes.snapshot()?),
            None => None,
        };
        self.cgroups.snapshot()?;
        self.reads += 1;
        Ok(())
    }

    /// What was read last. Shares and rates are not known after the first time.
    pub fn rows(&self) -> Rows<'_> {
        let before = (self.reads > 1).then_some(&self.before);
        Rows::new(self.cgroups.last(), before, self.members.as_ref())
    }
}
