//! Reads cgroups again and again, as rows.

use fastproc::{
    Collector, SourceKind,
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
    /// The last snapshot of the processes, if a column compares them.
    waits: Option<fastproc::Baseline>,
    members: Option<Members>,
    before: Baseline,
    reads: u64,
}

impl Reader {
    /// Opens it for these columns. `source`: the only one to use. `once`: there is one snapshot, so shares of pressure are the
    /// averages of the last ten seconds, from the kernel's files.
    ///
    /// # Errors
    /// No cgroup hierarchy of version 2 is mounted, or the source cannot be used.
    pub fn open(
        columns: &[&Column],
        source: Option<Source>,
        once: bool,
    ) -> Result<Self, cgroups::Error> {
        let needs = columns.iter();
        let mut needs = needs.fold(Fields::empty(), |needs, column| needs | column.needs);
        if once && needs.contains(Fields::PRESSURE) {
            needs = (needs - Fields::PRESSURE) | Fields::PRESSURE_AVERAGES;
        }
        let mut reader = Self::open_once(needs, source, once)?;
        if columns.iter().any(|column| column.counts_processes) {
            let waits = columns
                .iter()
                .any(|column| column.is_rate && column.counts_processes);
            // Without them the numbers of processes are not known.
            reader.processes = open_processes(waits, once).ok();
            reader.waits = waits.then(fastproc::Baseline::default);
        }
        Ok(reader)
    }

    /// Opens it for these groups of fields. It counts only the processes that [`count`](Self::count) is given.
    ///
    /// # Errors
    /// No cgroup hierarchy of version 2 is mounted, or the source cannot be used.
    pub fn open_fields(needs: Fields, source: Option<Source>) -> Result<Self, cgroups::Error> {
        Self::open_once(needs, source, false)
    }

    fn open_once(
        needs: Fields,
        source: Option<Source>,
        once: bool,
    ) -> Result<Self, cgroups::Error> {
        let builder = Cgroups::builder().fields(needs).source(source).once(once);
        Ok(Self {
            cgroups: builder.open()?,
            processes: None,
            waits: None,
            members: None,
            before: Baseline::default(),
            reads: 0,
        })
    }

    /// The reader of the cgroups.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// The last snapshot but one; `None` before the second.
    pub fn before(&self) -> Option<&Baseline> {
        (self.reads > 1).then_some(&self.before)
    }

    /// The numbers of processes, if they are known.
    pub fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// Counts the processes of a snapshot with [`Fields::CGROUP`](fastproc::Fields::CGROUP). `before`: see [`Members::new`].
    pub fn count(
        &mut self,
        processes: &fastproc::Snapshot<'_>,
        before: Option<&fastproc::Baseline>,
    ) {
        self.members = Members::new(processes, before);
    }

    /// Reads all cgroups, and keeps the snapshot before for comparison.
    ///
    /// # Errors
    /// The cgroups could not be read.
    pub fn read_cgroups(&mut self) -> Result<(), cgroups::Error> {
        if self.reads > 0 {
            self.before.set(self.cgroups.last());
        }
        self.cgroups.snapshot()?;
        self.reads += 1;
        Ok(())
    }

    /// Reads the processes, if columns count them, and all cgroups.
    ///
    /// # Errors
    /// The cgroups or the processes could not be read.
    pub fn read(&mut self) -> Result<(), ReadError> {
        if let Some(processes) = &mut self.processes {
            let snapshot = processes.snapshot()?;
            let before = self.waits.as_ref().filter(|_| self.reads > 0);
            self.members = Members::new(&snapshot, before);
            if let Some(waits) = &mut self.waits {
                waits.set(&snapshot);
            }
        }
        Ok(self.read_cgroups()?)
    }

    /// The rows of the last snapshot. Shares and rates are not known after the first time.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(self.cgroups.last(), self.before(), self.members())
    }
}

/// Opens what counts processes, and with `waits` how long they waited for a CPU.
fn open_processes(waits: bool, once: bool) -> Result<Collector, fastproc::Error> {
    use fastproc::Fields;

    if !waits {
        return Collector::builder()
            .fields(Fields::CGROUP)
            .one_shot(once)
            .open();
    }
    let fields = Fields::CGROUP | Fields::CPU;
    let collector = Collector::builder().fields(fields).open()?;
    if collector.source() != SourceKind::Procfs {
        return Ok(collector);
    }
    // It reads what each of several threads waited only with the threads.
    drop(collector);
    Collector::builder().fields(fields | Fields::THREADS).open()
}
