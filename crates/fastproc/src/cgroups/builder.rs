//! The options of a collector of cgroups.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Bounds, Cgroups, Reader,
    error::Error,
    fields::Fields,
    files::Files,
    lists::Lists,
    object::{Bpf, Met},
    pressure::Totals,
    record::Record,
    served::Served,
    stat::Lines,
    tree::Tree,
};
use crate::{
    base::source_kind::by_name,
    source::{
        bpf::SECTION,
        service::{socket_path, timeout},
    },
};

/// A source of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The kernel's structures, by a BPF program (Linux 6.7).
    Bpf,
    /// A service ([`SourceKind::Service`](crate::SourceKind::Service)), which shows a user what it may read.
    Service,
    /// The kernel's files.
    Files,
}

impl Source {
    /// Its name, as in `bpf`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Service => "service",
            Self::Files => "files",
        }
    }
}

by_name!(Source: Bpf, Service, Files; "bpf, service and files");

/// The files of so many cgroups are read in the CPU time that it takes to load the program.
const FEW: u32 = 50;

/// The options of a collector of cgroups.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Builder {
    fields: Fields,
    source: Option<Source>,
    once: bool,
    max_age: Duration,
    section: Duration,
    timeout: Option<Duration>,
    pub(super) bounds: Bounds,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            fields: Fields::empty(),
            source: None,
            once: false,
            max_age: Duration::ZERO,
            section: SECTION,
            timeout: timeout(),
            bounds: Bounds::default(),
        }
    }

    /// The groups of fields to read. Default: only the identity.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The only source to use. Default: `bpf` if it can be used, else a service if there is one, else `files`.
    pub fn source(mut self, source: Option<Source>) -> Self {
        self.source = source;
        self
    }

    /// Whether there is only one snapshot. Then the files of a few cgroups are read by default: loading the program would cost more.
    pub fn once(mut self, once: bool) -> Self {
        self.once = once;
        self
    }

    /// How old CPU time, memory.stat and I/O may be. Default: zero, so they are updated for every snapshot.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Opens the hierarchy and its source.
    ///
    /// # Errors
    /// The hierarchy is not mounted, or the requested source cannot be used.
    pub fn open(self) -> Result<Cgroups, Error> {
        self.open_tree(Tree::open()?, socket_path())
    }

    fn open_tree(self, mut tree: Tree, socket: Option<PathBuf>) -> Result<Cgroups, Error> {
        tree.bounds = self.bounds;
        let mut files = Files::default();
        let root = tree.root_id();
        let mut expected = Record::default();
        expected.identity.id = root;
        files.identity(&mut tree, &mut expected);
        let available = files
            .text(&mut tree, root, "cgroup.controllers")
            .unwrap_or_default()
            .to_owned();
        tree.check()?;
        // The program's maps have room for all.
        self.bounds.check(expected.identity.descendants)?;
        let has = |controller: &str| {
            available
                .split_ascii_whitespace()
                .any(|one| one == controller)
        };
        let mut fields = self.fields;
        let mut absent = Vec::new();
        for (controller, groups) in [("cpu", Fields::empty())]
            .into_iter()
            .chain(Fields::CONTROLLERS)
        {
            if !has(controller) {
                fields -= groups;
                absent.push(controller);
            }
        }
        let mut refusal = None;
        let expected = expected.identity.descendants.saturating_add(1);
        let by_bpf =
            || Bpf::open(fields, self.section, expected).map(|bpf| Reader::Bpf(Box::new(bpf)));
        let served =
            |only| Served::open(socket, only, self.timeout).map(|of| Reader::Service(Box::new(of)));
        let reader = match self.source {
            Some(Source::Bpf) => by_bpf()?,
            Some(Source::Service) => served(true)?,
            Some(Source::Files) => Reader::Files(Vec::new()),
            None if self.once && expected <= FEW => Reader::Files(Vec::new()),
            None => by_bpf().unwrap_or_else(|error| {
                refusal = Some(error);
                served(false).unwrap_or_else(|_| Reader::Files(Vec::new()))
            }),
        };
        Ok(Cgroups {
            fields,
            absent,
            refusal,
            reader,
            tree,
            files,
            met: Met::default(),
            shown: Vec::new(),
            lists: Lists::default(),
            lines: Lines::default(),
            proofs: None,
            candidates: Vec::new(),
            totals: Totals::default(),
            by_text: false,
            max_age: self.max_age,
            flushed: None,
        })
    }
}

#[doc(hidden)]
impl Builder {
    /// How long one run of the program may take; with zero, it pauses after every cgroup. For tests.
    pub fn section(mut self, section: Duration) -> Self {
        self.section = section;
        self
    }

    /// How long to wait for an answer of a service. For tests.
    pub fn service_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Opens the hierarchy, with a service at this socket, or without one.
    pub fn open_at(self, socket: Option<&Path>) -> Result<Cgroups, Error> {
        self.open_tree(Tree::open()?, socket.map(Path::to_owned))
    }

    /// Opens a folder with files of cgroups that were recorded. For tests.
    pub fn open_recorded(self, folder: &Path) -> Result<Cgroups, Error> {
        self.source(Some(Source::Files))
            .open_tree(Tree::at(folder)?, None)
    }

    /// Sets how much opening and the first snapshot take at most.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }
}
