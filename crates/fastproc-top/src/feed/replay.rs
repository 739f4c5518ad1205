//! A recording.

use std::path::Path;

use fastproc::{Baseline, Host};
use fastproc_columns::Lookup;

use crate::{
    details::Page,
    error::Error,
    exited::Exited,
    machine::{Gauge, Machine},
    observation::{Pages, View},
    record::{self, Frame, Key, Reader},
};

/// Shows a recording, starting at any of its snapshots.
#[derive(Debug)]
pub struct Replay {
    reader: Reader,
    host: Host,
    before: Baseline,
    earlier: Machine,
    /// Whether there is a snapshot before the current one.
    compared: bool,
    exited: Exited,
    /// The snapshot of the next step, if it is not the following one.
    start: Option<u64>,
    pages: Pages,
    /// Texts for the next screen.
    texts: record::Texts,
    /// Whether these replace all texts: those of an earlier block may belong to other processes.
    anew: bool,
}

impl Replay {
    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Recording {
            path: path.into(),
            source,
        };
        let reader = Reader::open(path).map_err(failed)?;
        let mut host = Host::read()?;
        let facts = reader.facts;
        host.page_size = facts.page_size;
        host.ticks_per_second = facts.ticks_per_second;
        host.possible_cpus = facts.possible_cpus;
        host.possible_nodes = facts.possible_nodes;
        host.boot_offset_ns = 0;
        Ok(Self {
            reader,
            host,
            before: Baseline::default(),
            earlier: Machine::default(),
            compared: false,
            exited: Exited::default(),
            start: None,
            pages: Pages::default(),
            texts: Vec::new(),
            anew: false,
        })
    }

    /// A lookup of recorded values.
    pub fn lookup(&self) -> Lookup {
        Lookup::recorded(self.host.clone(), self.reader.facts.total_memory)
    }

    /// Continues with the next snapshot, or stays at the last. Returns whether there was one.
    pub(super) fn step(&mut self) -> Result<bool, record::Error> {
        let last = self.reader.position().filter(|_| self.start.is_none());
        let next = self.start.or(last.map(|at| at + 1)).unwrap_or(0);
        if next >= self.reader.frames() {
            return Ok(false);
        }
        if last.is_some() {
            self.before.set(&self.reader.frame.snapshot());
            self.earlier.clone_from(&self.reader.frame.machine);
        }
        self.compared = last.is_some();
        self.read(next)?;
        self.start = None;
        let cpus = match self.reader.frame.machine.cpus.len() {
            0 => self.host.possible_cpus,
            known => known as u32,
        };
        self.before.set_cpus(cpus);
        let before = self.compared.then_some(&self.before);
        self.exited.look(before, &self.reader.frame.snapshot());
        Ok(true)
    }

    /// Makes the next step lead to this snapshot, without a previous one.
    pub fn start_at(&mut self, at: u64) {
        self.start = Some(at);
        self.before = Baseline::default();
    }

    /// The index of the current snapshot.
    pub fn position(&self) -> u64 {
        self.reader.position().unwrap_or(0)
    }

    /// The index this many snapshots later or earlier.
    pub fn moved_by(&self, by: i64) -> u64 {
        let last = self.reader.frames() - 1;
        self.position().saturating_add_signed(by).min(last)
    }

    /// The last snapshot that is not later than this time, or the first of all.
    pub fn at_time(&mut self, calendar_ns: u64) -> Result<u64, record::Error> {
        let mut at = self.reader.before(calendar_ns);
        // It is in this block, whose frames are in order.
        while at + 1 < self.reader.frames() {
            self.read(at + 1)?;
            let time = self.reader.frame.machine.get(Gauge::Calendar);
            if time.is_none_or(|time| time > calendar_ns) {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// The time of the current snapshot.
    pub fn time(&self) -> Option<u64> {
        self.reader.frame.machine.get(Gauge::Calendar)
    }

    /// The times of the first and the last snapshot.
    pub fn span(&self) -> (u64, u64) {
        self.reader.span()
    }

    fn read(&mut self, at: u64) -> Result<(), record::Error> {
        if self.reader.is_elsewhere(at) {
            self.texts.clear();
            self.anew = true;
        }
        let texts = &mut self.texts;
        self.reader
            .read(at, |frame: &mut Frame| texts.append(&mut frame.texts))
    }

    /// Passes on the texts that were read since the last call.
    pub fn keep_texts(&mut self, lookup: &mut Lookup) {
        if std::mem::take(&mut self.anew) {
            lookup.details.renew();
            self.pages = Pages::default();
        }
        for (key, text) in self.texts.drain(..) {
            match key {
                Key::Cmdline(pid, start_ns) => lookup.details.keep_cmdline(pid, start_ns, &text),
                Key::Cgroup(id) => lookup.details.keep_cgroup(id, &text),
                Key::User(id) => lookup.users.keep(id, &text),
                Key::Group(id) => lookup.groups.keep(id, &text),
                Key::Limits(pid, start_ns) => self.pages.keep(Page::Limits, pid, start_ns, text),
                Key::Files(pid, start_ns) => self.pages.keep(Page::Files, pid, start_ns, text),
                Key::Container(_) => {
                    if let Some((id, labels)) = record::labels(&text) {
                        lookup.containers.keep(id, labels);
                    }
                }
            }
        }
        if let (Some(now_ns), began_ns) = (self.time(), self.reader.frame.began_ns) {
            lookup.boot_seconds = (now_ns.saturating_sub(began_ns) / 1_000_000_000) as i64;
        }
        lookup.now_ns = self.reader.frame.snapshot().stats().kernel_end_ns();
    }

    pub(super) fn view(&self) -> Option<View<'_>> {
        self.reader.position()?;
        Some(View {
            snapshot: self.reader.frame.snapshot(),
            before: self.compared.then_some(&self.before),
            machine: &self.reader.frame.machine,
            earlier: self.compared.then_some(&self.earlier),
            span: Some(self.reader.span()),
            exited: &self.exited,
            pages: Some(&self.pages),
            cgroups: None,
        })
    }

    pub(super) const fn host(&self) -> &Host {
        &self.host
    }
}
