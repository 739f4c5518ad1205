//! Compares cgroups: the kernel's files, a snapshot, the kernel's files again.

mod judge;
mod shown;
mod totals;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use fastproc::{
    SourceKind,
    cgroups::{Cgroups, Fields, Snapshot, Source},
    read_whole,
};
use rustix::fs::{Mode, OFlags, fstat, openat};
use serde::Serialize;

use self::{
    judge::{Judgement, compare, judge},
    shown::{EVENTS, Shown},
    totals::{Bound, Totals, totals},
};
use super::{
    Args, again,
    progress::{Outcome, rounds, table},
    tally::Counts,
};
use crate::{Failure, paragraphs::Counted, privileges};

/// Cgroups around one snapshot: few, so that little changes while their files are read.
const BATCH: usize = 8;
/// How often a value is read again that differs although the kernel's is the same before and after. It may have changed
/// and changed back.
const RETRIES: u32 = 20;
/// The most examples that are kept.
const EXAMPLES: usize = 20;

#[derive(Serialize)]
struct Report {
    verify: &'static str,
    kernel: String,
    source: &'static str,
    rounds: u32,
    cgroups: usize,
    files: Vec<FileRow>,
    /// Cgroups that existed all the time, and that no snapshot has.
    missing: u64,
    /// Cgroups that were gone before the snapshot that has them.
    removed: u64,
    /// Cgroups that were removed while they were compared.
    gone: u64,
    /// Values outside of both values of the kernel, which had changed, and may have been there in between.
    in_motion: u64,
    compared: u64,
    wrong: u64,
    examples: Vec<Example>,
}

#[derive(Serialize)]
struct FileRow {
    file: &'static str,
    #[serde(flatten)]
    counts: Counts,
    in_motion: u64,
}

#[derive(Serialize)]
struct Example {
    cgroup: String,
    file: &'static str,
    line: String,
    /// Before and after.
    kernel: [String; 2],
    fastproc: String,
}

/// Compares, and prints the result.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = match args.source.kind() {
        None => None,
        Some(SourceKind::Bpf) => Some(Source::Bpf),
        Some(SourceKind::Procfs) => Some(Source::Files),
        Some(other) => {
            let name = other.name();
            return Err(format!(
                "cgroups cannot be compared by {name}: choose auto, bpf or procfs"
            )
            .into());
        }
    };
    let open = |source| {
        let builder = Cgroups::builder().fields(Fields::ALL_BUT_AVERAGES);
        builder.source(Some(source)).open()
    };
    // Not the service: it does not show all that a user can read.
    let mut cgroups = match source {
        Some(source) => open(source)?,
        None => open(Source::Bpf).or_else(|_| open(Source::Files))?,
    };
    privileges::drop()?;
    let mount = cgroups.mount().to_owned();
    let mut comparison = Comparison::default();
    let folders = || {
        let mut folders = Vec::new();
        list(&mount, &mut folders);
        folders
    };
    let batch = |folders: &[PathBuf]| comparison.batch(&mut cgroups, folders);
    let (count, is_ended) = rounds("cgroups", (args.rounds, BATCH), folders, batch)?;
    let report = comparison.report(args.rounds, cgroups.source(), count);
    args.write(&report, |out| report.print(out, args.verbose, is_ended))?;
    Ok(Outcome::code(report.compared, report.wrong))
}

/// Lists the folders below this one, which may go meanwhile.
fn list(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            found.push(path.clone());
            list(&path, found);
        }
    }
}

/// A cgroup whose files are open, with the kernel's texts before the snapshot.
struct Opened {
    path: String,
    id: u64,
    /// Before its files were read.
    began: Instant,
    files: Vec<(&'static str, Shown, OwnedFd, String)>,
}

impl Opened {
    /// `None`: it is gone, or this user may not read what it is.
    fn new(folder: &Path) -> Option<Self> {
        // Another cgroup may get its name: all is read through this descriptor.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(folder, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
        let id = fstat(&directory).ok()?.st_ino;
        let began = Instant::now();
        let files = shown::files().filter_map(|shown| {
            let file = openat(&directory, shown.name(), flags, Mode::empty()).ok()?;
            let text = text(&file).ok()?;
            Some((shown.name(), shown, file, text))
        });
        let files: Vec<_> = files.collect();
        files
            .iter()
            .any(|(name, ..)| *name == EVENTS)
            .then(|| Self {
                path: folder.display().to_string(),
                id,
                began,
                files,
            })
    }
}

/// The whole text of a file. An error: the cgroup or its controller is gone.
fn text(file: &OwnedFd) -> io::Result<String> {
    let mut text = Vec::new();
    read_whole(file, &mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// A cgroup, a file and a line of it. Without a line it is the file, without a file the cgroup.
type Key = (u64, &'static str, String);

#[derive(Default)]
struct Comparison {
    files: BTreeMap<&'static str, (Counts, u64)>,
    missing: u64,
    removed: u64,
    /// The cgroups that were seen to be gone.
    gone: HashSet<u64>,
    /// The totals of pressure that the last snapshot showed.
    totals: HashMap<u64, Totals>,
    examples: Vec<Example>,
}

/// What is left to be read again. At first that is everything.
#[derive(Default)]
struct Left {
    open: Option<HashSet<Key>>,
    again: HashSet<Key>,
    is_last: bool,
}

impl Left {
    fn has(&self, key: &Key) -> bool {
        self.open.as_ref().is_none_or(|open| open.contains(key))
    }

    /// Whether a difference counts. Otherwise it is looked at again.
    fn counts(&mut self, key: &Key) -> bool {
        if !self.is_last {
            self.again.insert(key.clone());
        }
        self.is_last
    }
}

impl Comparison {
    /// Compares some cgroups, until all that differs has been read often enough.
    fn batch(&mut self, cgroups: &mut Cgroups, folders: &[PathBuf]) -> Result<(), Failure> {
        let mut open = None;
        for attempt in 0..=RETRIES {
            let mut left = Left {
                open,
                again: HashSet::new(),
                is_last: attempt == RETRIES,
            };
            let opened: Vec<_> = folders.iter().filter_map(|of| Opened::new(of)).collect();
            let snapshot = cgroups.snapshot()?;
            self.snapshot(snapshot, &opened, &mut left);
            if left.again.is_empty() {
                break;
            }
            open = Some(left.again);
            again::pause(attempt);
        }
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot<'_>, opened: &[Opened], left: &mut Left) {
        let ended = Instant::now();
        let mut shown = HashMap::new();
        for cgroup in snapshot.iter() {
            let is_twice = shown.insert(cgroup.id(), cgroup).is_some();
            if is_twice || self.gone.contains(&cgroup.id()) {
                self.removed += 1;
                let path = cgroup.path().escape_ascii().to_string();
                self.example(path, "", "", ["gone", "gone"], "shown");
            }
        }
        for cgroup in opened {
            let mut texts = Vec::new();
            let mut is_here = false;
            for (name, how, file, before) in &cgroup.files {
                let Ok(after) = text(file) else {
                    continue;
                };
                is_here |= *name == EVENTS;
                texts.push((*name, *how, before, after));
            }
            if !is_here {
                self.gone.insert(cgroup.id);
                continue;
            }
            let Some(&found) = shown.get(&cgroup.id) else {
                let key = (cgroup.id, "", String::new());
                if left.has(&key) && left.counts(&key) {
                    self.missing += 1;
                    self.example(cgroup.path.clone(), "", "", ["here", "here"], "missing");
                }
                continue;
            };
            for (name, how, before, after) in texts {
                let ours = how.text(snapshot, found);
                let kernel = [before.as_str(), after.as_str()];
                let bound = if let Shown::Pressure(_, at) = how {
                    let shown = self.totals.get(&cgroup.id);
                    Some(Bound::new(ended - cgroup.began, shown.map(|all| all[at])))
                } else {
                    None
                };
                self.text(cgroup, name, (how, bound), kernel, ours, left);
            }
        }
        let shown = shown.into_iter();
        self.totals
            .extend(shown.filter_map(|(id, cgroup)| Some((id, totals(cgroup)?))));
    }

    /// Compares a file.
    fn text(
        &mut self,
        cgroup: &Opened,
        file: &'static str,
        (how, bound): (Shown, Option<Bound>),
        kernel: [&str; 2],
        ours: Option<String>,
        left: &mut Left,
    ) {
        let key = (cgroup.id, file, String::new());
        let Some(ours) = ours else {
            if left.has(&key) && left.counts(&key) {
                self.wrong(file);
                self.example(cgroup.path.clone(), file, "", kernel, "nothing");
            }
            return;
        };
        let [before, after] = kernel;
        let is_comparable = compare(file, how.shape(), [before, &ours, after], |line, values| {
            let key = (cgroup.id, file, line.to_owned());
            if !left.has(&key) {
                return;
            }
            let most = bound.map(|bound| bound.most(line, values[0]));
            let judgement = judge(file, line, values, most);
            if judgement == Judgement::Differs && !left.counts(&key) {
                return;
            }
            let (counts, in_motion) = self.files.entry(file).or_default();
            counts.add(judgement.verdict());
            *in_motion += u64::from(judgement == Judgement::InMotion);
            if judgement.is_wrong() {
                let [before, ours, after] = values.map(|value| value.to_string());
                self.example(cgroup.path.clone(), file, &key.2, [&before, &after], &ours);
            }
        });
        if !is_comparable && left.has(&key) && left.counts(&key) {
            self.wrong(file);
            self.example(cgroup.path.clone(), file, "", kernel, &ours);
        }
    }

    fn wrong(&mut self, file: &'static str) {
        let (counts, _) = self.files.entry(file).or_default();
        counts.add(super::tally::Verdict::Wrong);
    }

    fn example(
        &mut self,
        cgroup: String,
        file: &'static str,
        line: &str,
        kernel: [&str; 2],
        ours: &str,
    ) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(Example {
                cgroup,
                file,
                line: line.into(),
                kernel: kernel.map(Into::into),
                fastproc: ours.into(),
            });
        }
    }

    fn report(self, rounds: u32, source: Source, cgroups: usize) -> Report {
        let rows = self
            .files
            .into_iter()
            .map(|(file, (counts, in_motion))| FileRow {
                file,
                counts,
                in_motion,
            });
        let files: Vec<_> = rows.collect();
        let sum = |of: fn(&FileRow) -> u64| files.iter().map(of).sum::<u64>();
        let wrong = sum(|row| row.counts.wrong) + self.missing + self.removed;
        Report {
            verify: "cgroups",
            kernel: crate::doctor::kernel_release(),
            source: source.name(),
            rounds,
            cgroups,
            missing: self.missing,
            removed: self.removed,
            gone: self.gone.len() as u64,
            in_motion: sum(|row| row.in_motion),
            compared: sum(|row| row.counts.compared),
            wrong,
            files,
            examples: self.examples,
        }
    }
}

impl Report {
    fn print(&self, out: &mut impl io::Write, verbose: bool, is_ended: bool) -> io::Result<()> {
        let outcome = Outcome {
            compared: self.compared,
            equal: self.files.iter().map(|file| file.counts.equal).sum(),
            wrong: self.wrong,
            of: Counted(self.cgroups, "cgroup", "cgroups").to_string(),
            is_ended,
        };
        writeln!(out, "{outcome}")?;
        if verbose {
            let rows = self.files.iter().map(|row| {
                let mut numbers = row.counts.numbers();
                numbers[2] -= row.in_motion;
                numbers.insert(3, row.in_motion);
                (row.file.into(), numbers, "")
            });
            let heading = ["compared", "equal", "between", "in motion", "wrong"];
            table(out, ("file", 22), &heading, rows)?;
        }
        for Example {
            cgroup,
            file,
            line,
            kernel: [before, after],
            fastproc,
        } in &self.examples
        {
            writeln!(
                out,
                "wrong: {cgroup} {file} {line}: the kernel says {before:?} and then {after:?}, fastproc {fastproc:?}"
            )?;
        }
        let (missing, removed) = (self.missing, self.removed);
        if self.wrong > 0 {
            writeln!(
                out,
                "{missing} missing, {removed} shown after they were removed"
            )?;
        }
        writeln!(
            out,
            "by {} in {}; {} changed meanwhile, which proves nothing{}",
            self.source,
            Counted(self.rounds, "round", "rounds"),
            self.in_motion,
            super::more(verbose),
        )
    }
}
