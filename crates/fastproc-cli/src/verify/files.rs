//! Compares open files: the kernel's text, a snapshot, the kernel's text again.

mod ours;
mod said;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    process::ExitCode,
};

use fastproc::{
    SourceKind,
    files::{Fields, Files, Slot, Source},
    proc_root,
};
use serde::Serialize;

use self::tables::Tables;
use super::{
    Args, HEADING, again,
    progress::{Outcome, rounds, table},
    tally::{Counts, Verdict},
};
use crate::{Failure, paragraphs::Counted, privileges};

/// Processes around one snapshot: few, so that little changes while their text is read.
const BATCH: usize = 200;
/// The most examples that are kept.
const EXAMPLES: usize = 20;

/// A value, by its name.
type Values = BTreeMap<&'static str, String>;
/// An open file; no slot stands for the process itself.
type Key = (u32, Option<Slot>);

#[derive(Serialize)]
struct Report {
    verify: &'static str,
    kernel: String,
    source: &'static str,
    rounds: u32,
    processes: usize,
    fields: Vec<FieldRow>,
    compared: u64,
    wrong: u64,
    examples: Vec<Example>,
}

#[derive(Serialize)]
struct FieldRow {
    field: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Serialize)]
struct Example {
    pid: u32,
    file: String,
    field: &'static str,
    kernel: String,
    fastproc: Option<String>,
}

/// Compares, and prints the result.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = match args.source.kind() {
        None => None,
        Some(SourceKind::Service) => Some(Source::Service),
        Some(SourceKind::Bpf) => Some(Source::Bpf),
        Some(SourceKind::Procfs) => Some(Source::Procfs),
        Some(other) => {
            let name = other.name();
            return Err(format!(
                "open files cannot be compared by {name}: choose auto, service, bpf or procfs"
            )
            .into());
        }
    };
    let fields = Fields::all();
    let mut files = Files::builder().fields(fields).source(source).open()?;
    privileges::drop()?;
    let mut comparison = Comparison::default();
    let pids = || {
        let mut pids = args.pids.clone().unwrap_or_else(said::processes);
        // What this process has open changes while it compares.
        let own = proc_root::own_pid();
        pids.retain(|&pid| Some(pid) != own);
        pids
    };
    let batch = |pids: &[u32]| comparison.batch(&mut files, pids);
    let (count, is_ended) = rounds("open files", (args.rounds, BATCH), pids, batch)?;
    let report = comparison.report(args.rounds, files.source(), count);
    args.write(&report, |out| report.print(out, args.verbose, is_ended))?;
    Ok(Outcome::code(report.compared, report.wrong))
}

#[derive(Default)]
struct Comparison {
    fields: BTreeMap<&'static str, Counts>,
    examples: Vec<Example>,
}

/// What the kernel says of some files.
struct Said(BTreeMap<Key, Values>);

impl Said {
    fn read(keys: &BTreeSet<Key>) -> Self {
        let tables = Tables::read();
        let values = keys
            .iter()
            .filter_map(|&key| Some((key, said::read(key, &tables)?)));
        Self(values.collect())
    }
}

/// The kernel's values before and after, and those of a snapshot in between.
struct Seen {
    before: Said,
    ours: BTreeMap<Key, Values>,
    after: Said,
}

impl Seen {
    fn take(files: &mut Files, keys: &BTreeSet<Key>) -> Result<Self, fastproc::files::Error> {
        let before = Said::read(keys);
        let snapshot = files.snapshot()?;
        let mut ours = BTreeMap::new();
        for holder in snapshot.processes() {
            let pid = holder.pid();
            if keys.contains(&(pid, None)) {
                ours.insert((pid, None), ours::process(holder));
            }
            for file in holder.files() {
                let key = (pid, Some(file.slot()));
                if keys.contains(&key) {
                    ours.insert(key, ours::file(file));
                }
            }
        }
        let after = Said::read(keys);
        Ok(Self {
            before,
            ours,
            after,
        })
    }

    /// Judges each value that the kernel shows before and after.
    fn judge(&self, mut each: impl FnMut(Key, &'static str, Verdict, &str, Option<&String>)) {
        let none = Values::new();
        for (&key, before) in &self.before.0 {
            let Some(after) = self.after.0.get(&key) else {
                continue;
            };
            let ours = self.ours.get(&key).unwrap_or(&none);
            for (&field, value) in before {
                let is_still = after.get(field) == Some(value);
                let verdict = match ours.get(field) {
                    Some(of_ours) if of_ours == value => Verdict::Equal,
                    _ if !is_still => Verdict::Moved,
                    // What a source does not know, it does not show.
                    None if !said::MUST_BE_KNOWN.contains(&field) => continue,
                    _ => Verdict::Wrong,
                };
                each(key, field, verdict, value, ours.get(field));
            }
        }
    }
}

impl Comparison {
    fn batch(&mut self, files: &mut Files, pids: &[u32]) -> Result<(), Failure> {
        let keys = said::keys(pids);
        let mut suspects = BTreeSet::new();
        Seen::take(files, &keys)?.judge(|key, field, verdict, _, _| {
            if matches!(verdict, Verdict::Wrong) {
                suspects.insert((key, field));
            } else {
                self.fields.entry(field).or_default().add(verdict);
            }
        });
        for attempt in 0..again::RETRIES {
            if suspects.is_empty() {
                break;
            }
            again::pause(attempt);
            let keys = suspects.iter().map(|&(key, _)| key).collect();
            let is_last = attempt + 1 == again::RETRIES;
            let mut left = BTreeSet::new();
            Seen::take(files, &keys)?.judge(|key, field, verdict, kernel, ours| {
                if !suspects.remove(&(key, field)) {
                    return;
                }
                if matches!(verdict, Verdict::Wrong) && !is_last {
                    left.insert((key, field));
                    return;
                }
                self.fields.entry(field).or_default().add(verdict);
                if matches!(verdict, Verdict::Wrong) && self.examples.len() < EXAMPLES {
                    let (pid, slot) = key;
                    self.examples.push(Example {
                        pid,
                        file: slot.map_or_else(String::new, said::name_of),
                        field,
                        kernel: kernel.to_owned(),
                        fastproc: ours.cloned(),
                    });
                }
            });
            // What is closed by now cannot be judged.
            suspects = left;
        }
        Ok(())
    }

    fn report(self, rounds: u32, source: Source, processes: usize) -> Report {
        let total: Counts = self.fields.values().copied().sum();
        let rows = self.fields.into_iter();
        Report {
            verify: "files",
            kernel: crate::doctor::kernel_release(),
            source: source.name(),
            rounds,
            processes,
            fields: rows
                .map(|(field, counts)| FieldRow { field, counts })
                .collect(),
            compared: total.compared,
            wrong: total.wrong,
            examples: self.examples,
        }
    }
}

impl Report {
    fn print(&self, out: &mut impl io::Write, verbose: bool, is_ended: bool) -> io::Result<()> {
        let total: Counts = self.fields.iter().map(|row| row.counts).sum();
        let outcome = Outcome {
            compared: self.compared,
            equal: total.equal,
            wrong: self.wrong,
            of: format!(
                "open files of {}",
                Counted(self.processes, "process", "processes")
            ),
            is_ended,
        };
        writeln!(out, "{outcome}")?;
        if verbose {
            let rows = self.fields.iter();
            let rows = rows.map(|row| (row.field.into(), row.counts.numbers(), ""));
            table(out, ("field", 22), &HEADING, rows)?;
        }
        for example in &self.examples {
            let Example {
                pid,
                file,
                field,
                kernel,
                fastproc,
            } = example;
            let ours = fastproc.as_deref().unwrap_or("nothing");
            writeln!(
                out,
                "wrong: {pid} {file} {field}: the kernel says {kernel:?}, fastproc {ours:?}"
            )?;
        }
        writeln!(
            out,
            "by {} in {}; {} changed meanwhile, which proves nothing{}",
            self.source,
            Counted(self.rounds, "round", "rounds"),
            total.moved,
            super::more(verbose),
        )
    }
}
