//! The fields of a row: what a table can show, sort and filter by.

mod catalogue;
mod containers;
mod limits;
mod values;

use fastproc::{Fields, Texts};

pub use catalogue::FIELDS;
pub use containers::short_container_id;

use crate::{
    row::{Lookup, Row},
    value::{Kind, Unit, Value},
};

/// What the value of a process follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// Its record.
    Record,
    /// Its record and its change, in a row with a change.
    Change,
    /// Also the time, the names of users, files of `/proc` and so on.
    More,
}

/// Finds the value of a field.
type Get = for<'x> fn(&Row<'x>, &'x mut Lookup) -> Value<'x>;

/// One field.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct Field {
    /// Its name, as in proc(5) or ps(1).
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Head of its column, if it differs from the name.
    heading: Option<&'static str>,
    /// The groups of fields that it needs.
    pub needs: Fields,
    /// What its values mean.
    pub unit: Unit,
    /// The type of its values, if it is not that of the unit.
    kind: Option<Kind>,
    guarded: bool,
    follows: Follows,
    /// Whether it is known only over an interval.
    pub is_rate: bool,
    /// Whether a table marks the name of a zombie, and draws the branches of a tree before it.
    is_command: bool,
    /// The value in a table, if it differs from `get`.
    in_table: Option<Get>,
    /// Whether it is unknown for an exited process.
    of_living: bool,
    /// Whether a row of a thread shows the thread's value instead of its process's.
    pub of_thread: bool,
    /// A line of help.
    pub help: &'static str,
    get: Get,
}

impl Field {
    const fn new(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Self {
        Self {
            name,
            aliases: &[],
            heading: None,
            needs: Fields::empty(),
            unit,
            kind: None,
            guarded: false,
            follows: Follows::More,
            is_rate: false,
            is_command: false,
            in_table: None,
            of_living: false,
            of_thread: false,
            help,
            get,
        }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn heading(self, heading: &'static str) -> Self {
        Self {
            heading: Some(heading),
            ..self
        }
    }

    const fn needs(self, needs: Fields) -> Self {
        Self { needs, ..self }
    }

    const fn signed(self) -> Self {
        Self {
            kind: Some(Kind::Signed),
            ..self
        }
    }

    const fn arguments(self) -> Self {
        Self {
            kind: Some(Kind::Arguments),
            ..self
        }
    }

    const fn guarded(self) -> Self {
        Self {
            guarded: true,
            ..self
        }
    }

    /// The value follows from these groups of the record.
    const fn of_record(self, needs: Fields) -> Self {
        Self {
            needs,
            follows: Follows::Record,
            ..self
        }
    }

    const fn of_change(self) -> Self {
        Self {
            follows: Follows::Change,
            ..self
        }
    }

    const fn rate(self) -> Self {
        Self {
            is_rate: true,
            ..self.of_change()
        }
    }

    const fn command(self) -> Self {
        Self {
            is_command: true,
            ..self
        }
    }

    const fn in_table(self, get: Get) -> Self {
        Self {
            in_table: Some(get),
            ..self
        }
    }

    const fn of_living(self) -> Self {
        Self {
            of_living: true,
            ..self
        }
    }

    const fn of_thread(self) -> Self {
        Self {
            of_thread: true,
            ..self
        }
    }

    /// Whether reading it needs ptrace access to the process.
    pub const fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Whether the value of a row of a process follows from its record alone; with `changes`, from its record and its change,
    /// which the row must have. So it is the same as long as these are.
    #[doc(hidden)]
    pub const fn follows_record(&self, changes: bool) -> bool {
        match self.follows {
            Follows::Record => true,
            Follows::Change => changes,
            Follows::More => false,
        }
    }

    /// The type of all its known values.
    pub const fn kind(&self) -> Kind {
        match self.kind {
            Some(kind) => kind,
            None => self.unit.kind(),
        }
    }

    /// The texts of a process that it needs; a collector may read them with the snapshot.
    pub fn texts(&self) -> Texts {
        match self.name {
            "cmdline" | "cmdline_cut" => Texts::CMDLINE,
            "exe" => Texts::EXE,
            _ => Texts::empty(),
        }
    }

    /// Its value for this row.
    pub fn value<'x>(&self, row: &Row<'x>, lookup: &'x mut Lookup) -> Value<'x> {
        self.take(self.get, row, lookup)
    }

    fn take<'x>(&self, get: Get, row: &Row<'x>, lookup: &'x mut Lookup) -> Value<'x> {
        if self.guarded && !lookup.sees_all && !lookup.shows(row, self.needs.contains(Fields::IO)) {
            return Value::Unknown;
        }
        if self.of_living && row.event.is_some() {
            return Value::Unknown;
        }
        get(row, lookup)
    }

    /// Appends its form for a table: rounded, and marked as ps(1) does it.
    pub fn write_for_table(&self, row: &Row<'_>, lookup: &mut Lookup, to: &mut Vec<u8>) {
        if self.is_command {
            to.extend_from_slice(row.branch);
        }
        self.take(self.in_table.unwrap_or(self.get), row, lookup)
            .write_for_table(self.unit, to);
        if self.is_command && row.state().letter() == b'Z' {
            to.extend_from_slice(b" <defunct>");
        }
    }

    /// Its name in JSON and csv, with the unit of its numbers.
    pub fn key(&self) -> String {
        let suffix = if self.name.ends_with(self.unit.suffix()) {
            ""
        } else {
            self.unit.suffix()
        };
        format!("{}{suffix}", self.name)
    }

    /// Head of its column in a table.
    pub fn column_heading(&self) -> String {
        self.heading
            .map_or_else(|| self.name.to_uppercase(), Into::into)
    }
}

/// A field that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no field '{name}'{}", .nearest.map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?")))]
pub struct UnknownField {
    name: String,
    nearest: Option<&'static str>,
}

impl UnknownField {
    /// The error for this name, where there are others.
    pub(crate) fn new(name: &str, names: impl Iterator<Item = &'static str>) -> Self {
        Self {
            name: name.escape_debug().to_string(),
            nearest: nearest(&name.to_ascii_lowercase(), names),
        }
    }
}

/// Finds a field by its name, alias or key, in letters of either case.
pub fn find(name: &str) -> Result<&'static Field, UnknownField> {
    let is = |other: &&str| other.eq_ignore_ascii_case(name);
    FIELDS
        .iter()
        .find(|field| is(&field.name) || field.aliases.iter().any(is) || is(&field.key().as_str()))
        .ok_or_else(|| UnknownField::new(name, names()))
}

/// All names of fields.
pub fn names() -> impl Iterator<Item = &'static str> {
    FIELDS
        .iter()
        .flat_map(|field| std::iter::once(&field.name).chain(field.aliases))
        .copied()
}

/// The name that is most similar to this one, which is in small letters, if at most every third letter is wrong.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = names.map(|other| (strsim::damerau_levenshtein(name, other), other));
    distances
        .filter(|&(distance, other)| 3 * distance <= name.len().max(other.len()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use fastproc::{
        Baseline, Collector, Process, SourceKind,
        record::{Record, ThreadRecord},
        schema::{self, Shown},
    };

    use super::*;

    #[test]
    fn values_have_the_kind_of_their_field() {
        let mut collector = Collector::builder()
            .fields(Fields::all())
            .source(Some(SourceKind::Procfs))
            .open()
            .expect("/proc is there");
        let mut lookup = Lookup::new(collector.host(), true).expect("/proc is there");
        let mut before = Baseline::default();
        before.set(&collector.snapshot().expect("a snapshot"));
        let snapshot = collector.snapshot().expect("a snapshot");
        lookup.set_clock(&snapshot);
        let rows = before.changes(&snapshot).map(|change| Row {
            change: Some(change),
            ..Row::new(change.process)
        });
        let threads = before.thread_changes(&snapshot).map(|change| Row {
            change: Some(change),
            thread: change.thread,
            ..Row::new(change.process)
        });
        for row in rows.chain(threads) {
            for field in FIELDS {
                let value = field.value(&row, &mut lookup);
                let kind = value.kind();
                assert!(
                    kind.is_none_or(|kind| kind == field.kind()),
                    "{} is {value:?}, and should be {:?}",
                    field.name,
                    field.kind()
                );
            }
        }
    }

    #[test]
    fn fields_with_an_accessor_need_only_their_record() {
        let mut collector = Collector::builder()
            .fields(Fields::all())
            .source(Some(SourceKind::Procfs))
            .open()
            .expect("/proc is there");
        let host = collector.host().clone();
        let mut lookup = Lookup::new(&host, true).expect("/proc is there");
        // It knows neither the time nor users, and reads no file.
        let mut ignorant = Lookup::recorded(host, lookup.total_memory);
        let mut before = Baseline::default();
        before.set(&collector.snapshot().expect("a snapshot"));
        let snapshot = collector.snapshot().expect("a snapshot");
        lookup.set_clock(&snapshot);
        for change in before.changes(&snapshot) {
            let row = Row::new(change.process);
            let changed = Row {
                change: Some(change),
                ..row
            };
            for (row, changes) in [(row, false), (changed, true)] {
                for field in FIELDS.iter().filter(|of| of.follows_record(changes)) {
                    let known = format!("{:?}", field.value(&row, &mut lookup));
                    let other = format!("{:?}", field.value(&row, &mut ignorant));
                    assert_eq!(known, other, "{}, {changes}", field.name);
                }
            }
        }
    }

    /// Sets the bytes of a field that needs ptrace access to the process.
    fn set(words: &mut [u64], field: &schema::Field) {
        for offset in field.offset..field.offset + field.type_of.size() {
            let mut word = words[offset / 8].to_ne_bytes();
            word[offset % 8] = 1;
            words[offset / 8] = u64::from_ne_bytes(word);
        }
    }

    #[test]
    fn values_for_tracers_are_guarded() {
        let host = fastproc::Host::read().expect("/proc is there");
        let mut lookup = Lookup::recorded(host, 1 << 30);
        let mut plain = Record::default();
        plain.identity.groups = Fields::all().bits();
        let plain_thread = ThreadRecord::default();
        let mut seen = HashSet::new();
        let mut compare = |record: &Record, thread: &ThreadRecord, path: &str| {
            for field in FIELDS {
                let mut value = |record, thread, of_thread: bool| {
                    let row = Row {
                        thread: of_thread.then_some(thread),
                        ..Row::new(Process::new(record, &[]))
                    };
                    format!("{:?}", field.value(&row, &mut lookup))
                };
                for of_thread in [false, true] {
                    let is_other =
                        value(record, thread, of_thread) != value(&plain, &plain_thread, of_thread);
                    if is_other {
                        assert!(field.is_guarded(), "{} shows {path}", field.name);
                        seen.insert(field.name);
                    }
                }
            }
        };
        let of_tracers = |field: &schema::Field| field.shown == Shown::Tracers;
        for field in schema::RECORD
            .fields()
            .iter()
            .filter(|field| of_tracers(field))
        {
            let mut record = plain;
            set(record.words_mut(), field);
            compare(&record, &plain_thread, &field.path);
        }
        for field in schema::THREAD
            .fields()
            .iter()
            .filter(|field| of_tracers(field))
        {
            let mut thread = plain_thread;
            set(thread.words_mut(), field);
            compare(&plain, &thread, &field.path);
        }
        for field in ["exit_code", "startcode", "env_end", "rchar", "write_bytes"] {
            assert!(seen.contains(field), "{field} is taken from such a value");
        }
    }

    #[test]
    fn no_two_fields_share_a_name() {
        let mut names = HashSet::new();
        for field in FIELDS {
            let key = field.key();
            let own = HashSet::from([field.name, &key]);
            for name in own.into_iter().chain(field.aliases.iter().copied()) {
                assert!(
                    names.insert(name.to_lowercase()),
                    "{name} stands for two fields"
                );
            }
        }
    }

    #[test]
    fn fields_are_found_by_every_name() {
        for (field, names) in [
            ("rss", "rss RSS VmRSS rss_bytes rssize rsz"),
            ("vsize", "vsz"),
            ("pgrp", "pgid"),
            ("session", "sid sess"),
            ("tty", "tt tname"),
            ("comm", "ucmd ucomm"),
            ("num_threads", "nlwp thcount"),
            ("minflt", "min_flt"),
            ("majflt", "maj_flt pagein"),
            ("time", "times cputimes"),
            ("euid", "uid"),
            ("suid", "svuid"),
            ("fsuid", "fuid"),
            ("egid", "gid"),
            ("sgid", "svgid"),
            ("fsgid", "fgid"),
            ("user", "euser uname"),
            ("group", "egroup"),
            ("nice", "ni"),
            ("rt_priority", "rtprio"),
            ("cls", "class"),
            ("shdpnd", "pending"),
            ("sigblk", "blocked sigmask"),
            ("sigign", "ignored sigignore"),
            ("sigcgt", "caught sigcatch"),
        ] {
            for name in names.split(' ') {
                assert_eq!(find(name).map(|field| field.name), Ok(field), "{name}");
            }
        }
    }

    #[test]
    fn a_misspelt_field_suggests_the_nearest() {
        let message = |name| find(name).expect_err("misspelt").to_string();
        assert_eq!(
            message("rsss"),
            "there is no field 'rsss'; did you mean 'rss'?"
        );
        assert_eq!(
            message("comand"),
            "there is no field 'comand'; did you mean 'command'?"
        );
        assert_eq!(message("\u{1b}[2J"), "there is no field '\\u{1b}[2J'");
    }
}
