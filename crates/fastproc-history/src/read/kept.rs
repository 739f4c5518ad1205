//! The fields that a history keeps: those whose values follow from what its tables have.

use std::{collections::HashSet, sync::LazyLock};

use fastproc::{
    Cmdline, Host, Snapshot, SnapshotStats, SourceKind, Table,
    cgroups::{Baseline, Recorded, record as cgroup},
    container::{Labels, Origin},
    difference::Ended,
    exits::Exit,
    record::{ExitRecord, Record},
    words_mut,
};
use fastproc_columns::{FIELDS, Field, Lookup, Row, Subject, cgroups};

use super::record::{RESTORED, RESTORED_CGROUP, RESTORED_EXIT, groups};
use crate::table::CGROUPS;

/// What is shown of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Processes at a time.
    Moment,
    /// What processes did between two times.
    Window,
    /// Exited processes.
    Exits,
}

/// A command line.
const LINE: Cmdline<'_> = Cmdline {
    bytes: b"a\0b\0",
    cut: false,
};
/// An exit has those of all threads, a process those of the leading one: their difference means nothing.
const OF_OTHER_THREADS: &[&str] = &["nvcsw", "nivcsw"];

/// Those of some fields that a history has. Each is rendered from records whose other members differ: where that changes the value,
/// it would be wrong.
pub fn kept(
    fields: impl IntoIterator<Item = &'static Field>,
    of: Of,
    host: &Host,
) -> Vec<&'static Field> {
    let tries: Vec<Try> = (0..8).map(Try::new).collect();
    let process = |field: &Field, with_change| {
        judge(&tries, |try_, is_other| {
            try_.of_process(field, is_other, with_change, host)
        })
    };
    let exit = |field: &Field| judge(&tries, |try_, is_other| try_.of_exit(field, is_other, host));
    let is_kept = |field: &&Field| match of {
        Of::Moment => process(field, false) == Some(true),
        Of::Exits => exit(field) == Some(true),
        Of::Window => {
            let both = process(field, true).zip(exit(field));
            both.is_some_and(|(one, other)| one || other) && !OF_OTHER_THREADS.contains(&field.name)
        }
    };
    fields.into_iter().filter(is_kept).collect()
}

/// The fields of cgroups that a history has: at a time, or over a window.
pub fn kept_of_cgroups(window: bool) -> Vec<&'static cgroups::Column> {
    let tries: Vec<Try> = (0..8).map(Try::new).collect();
    let is_kept = |column: &&cgroups::Column| {
        let shown = |try_: &Try, is_other| try_.of_cgroup(column, is_other, window);
        let counts = column.counts_processes && !column.is_rate;
        counts || judge(&tries, shown) == Some(true)
    };
    cgroups::COLUMNS.iter().filter(is_kept).collect()
}

/// The names of fields that a history does not have of a walk and the exits before it.
pub static LACKED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    // Without a machine nothing is known.
    let kept = Host::read().map_or_else(|_| Vec::new(), |host| kept(FIELDS, Of::Window, &host));
    let is_kept = |name: &str| kept.iter().any(|kept| kept.name == name);
    let names = FIELDS.iter().map(|field| field.name);
    names.filter(|name| !is_kept(name)).collect()
});

/// `None` if the value of a field follows from what is not kept; otherwise whether it is ever known.
fn judge(tries: &[Try], mut shown: impl FnMut(&Try, bool) -> [Vec<u8>; 2]) -> Option<bool> {
    let mut is_known = false;
    for try_ in tries {
        let value = shown(try_, false);
        if value != shown(try_, true) {
            return None;
        }
        is_known |= !value[0].is_empty();
    }
    Some(is_known)
}

/// Bits for all members: of those that are kept, and two choices for the others.
struct Try {
    seed: u64,
}

/// Cgroups from which all follows that a cgroup may say.
const CGROUP_PATHS: [&str; 3] = [
    "/system.slice/ssh.service",
    "/machine.slice/machine-a.scope",
    "/kubepods.slice/kubepods-pod0a1b2c3d_0a1b_0a1b_0a1b_0a1b2c3d4e5f.slice/cri-containerd-\
     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
];

impl Try {
    const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Fills a structure: with zero where it is not kept, or with other bits.
    fn fill(&self, words: &mut [u64], kept: &[bool], is_other: bool) {
        for (at, word) in words.iter_mut().enumerate() {
            let mut state = (at as u64 + 1).wrapping_mul(self.seed * 2 + 0x9e37_79b9_7f4a_7c15);
            let bytes = std::array::from_fn(|byte| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // No member is 0 or unknown.
                let bits = (state >> 56) as u8 | 1;
                match (kept[at * 8 + byte], is_other) {
                    (true, _) => bits & 0x7f,
                    (false, true) => bits,
                    (false, false) => 0,
                }
            });
            *word = u64::from_ne_bytes(bytes);
        }
    }

    fn lookup(&self, pid: u32, start_ns: u64, cgroup_id: u64, host: &Host) -> Lookup {
        let mut lookup = Lookup::recorded(host.clone(), 1 << 30);
        lookup.now_ns = u64::MAX / 2;
        lookup.details.keep_cmdline(pid, start_ns, LINE);
        let path = CGROUP_PATHS[self.seed as usize % CGROUP_PATHS.len()].as_bytes();
        lookup.details.keep_cgroup(cgroup_id, path);
        if let Some(container) = Origin::from_cgroup(path).container {
            let mut labels = Labels::default();
            for label in [
                &mut labels.name,
                &mut labels.pod,
                &mut labels.namespace,
                &mut labels.image,
            ] {
                *label = Some("a".into());
            }
            lookup.containers.keep(container, labels);
        }
        lookup
    }

    /// The value of a field in a table and in CSV.
    fn of_process(
        &self,
        field: &Field,
        is_other: bool,
        with_change: bool,
        host: &Host,
    ) -> [Vec<u8>; 2] {
        let mut record = Record::default();
        self.fill(words_mut(&mut record), &RESTORED, is_other);
        let identity = &mut record.identity;
        (identity.groups, identity.masked) = (groups().bits(), 1);
        // A kernel thread has no command line.
        if self.seed.is_multiple_of(2) {
            identity.flags &= !0x0020_0000;
        }
        record.name.kind = (self.seed % 2) as u32;
        let identity = &record.identity;
        let mut lookup = self.lookup(
            identity.tgid,
            identity.start_ns,
            record.cgroup.id().unwrap_or(0),
            host,
        );
        let table = Table {
            records: std::slice::from_ref(&record),
            ..Table::default()
        };
        let stats = SnapshotStats::recorded(SourceKind::Procfs, lookup.now_ns, <_>::default());
        let snapshot = Snapshot::recorded(table, stats);
        let before = fastproc::Baseline::default();
        let before = with_change.then_some(&before);
        let row = Row::all(&snapshot, before, false).next();
        row.map_or_else(<_>::default, |row| texts(field, &row, &mut lookup))
    }

    fn of_exit(&self, field: &Field, is_other: bool, host: &Host) -> [Vec<u8>; 2] {
        let mut record = ExitRecord::default();
        self.fill(words_mut(&mut record), &RESTORED_EXIT, is_other);
        record.known = u32::MAX;
        let exit: Exit = record.to_exit();
        let record = exit.to_record();
        let mut lookup = self.lookup(exit.pid, exit.start_ns, exit.cgroup_id, host);
        let row = Row::ended(Ended::whole(&exit).change(&record), Some(LINE));
        texts(field, &row, &mut lookup)
    }

    fn of_cgroup(
        &self,
        column: &cgroups::Column,
        is_other: bool,
        with_change: bool,
    ) -> [Vec<u8>; 2] {
        let mut record = cgroup::Record::default();
        self.fill(words_mut(&mut record), &RESTORED_CGROUP, is_other);
        record.identity.groups = CGROUPS.columns.iter().fold(0, |all, of| all | of.group);
        let recorded = |record: cgroup::Record, began_ns| {
            let mut recorded = Recorded::new(began_ns);
            recorded.add(record, CGROUP_PATHS[0].as_bytes());
            recorded
        };
        let mut zero = cgroup::Record::default();
        zero.identity = record.identity;
        zero.cpu.set_periods(Some(0));
        zero.cpu.set_throttled(Some(0));
        let mut before = Baseline::default();
        before.set(recorded(zero, 0).snapshot());
        let recorded = recorded(record, 1 << 40);
        let before = with_change.then_some(&before);
        let rows = cgroups::Rows::new(recorded.snapshot(), before, None);
        let row = rows.get(0);
        row.map_or_else(<_>::default, |row| texts(column, row, &mut <_>::default()))
    }
}

fn texts<S: Subject>(field: &Field<S>, row: &S::Row<'_>, lookup: &mut S::Lookup) -> [Vec<u8>; 2] {
    let (mut csv, mut table) = (Vec::new(), Vec::new());
    field.value(row, lookup).write_for_csv(field.unit, &mut csv);
    field.write_for_table(row, lookup, &mut table);
    [csv, table]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: Of) -> String {
        let kept = kept(FIELDS, of, &Host::read().expect("the host is read"));
        let names: Vec<_> = kept.iter().map(|field| field.name).collect();
        names.join(" ")
    }

    /// A field in this list is never wrong, because its value is the same whatever the history lacks.
    #[test]
    fn fields_are_kept_whose_values_no_other_member_changes() {
        assert_eq!(
            names(Of::Moment),
            "pid tid ppid pgrp session tty tty_nr tpgid comm cmdline cmdline_cut state stat flags f kthread num_threads starttime \
             lstart start etime pcpu c pcpu_user pcpu_system wait time utime stime run_delay timeslices cutime cstime \
             minflt majflt nvcsw nivcsw rss pmem vsize sz shr rssanon rssfile rssshmem vmswap vmlck read_bytes \
             write_bytes rchar wchar user ruser group rgroup euid ruid egid rgid priority pri nice rt_priority policy \
             cls processor cgroup cgroup_id unit slice container container_name pod pod_uid namespace image runtime machine"
        );
        assert_eq!(
            names(Of::Window),
            "pid tid ppid pgrp session tty tty_nr tpgid comm cmdline cmdline_cut state stat flags f kthread num_threads exit_code \
             event ended status final starttime lstart start etime pcpu c pcpu_user pcpu_system wait time utime stime \
             run_delay timeslices minflt majflt minflt_per_second majflt_per_second rss pmem vsize sz shr rssanon rssfile \
             rssshmem vmswap vmlck read_bytes write_bytes read_bytes_per_second write_bytes_per_second rchar wchar user \
             ruser group rgroup euid ruid egid rgid priority pri nice rt_priority policy cls processor cgroup cgroup_id \
             unit slice container container_name pod pod_uid namespace image runtime machine"
        );
        assert_eq!(
            names(Of::Exits),
            "pid tid ppid comm cmdline cmdline_cut state flags f kthread exit_code event ended status final starttime lstart start \
             etime pcpu c pcpu_user pcpu_system wait time utime stime run_delay timeslices minflt majflt \
             minflt_per_second majflt_per_second nvcsw nivcsw vmhwm read_bytes write_bytes read_bytes_per_second \
             write_bytes_per_second rchar wchar user ruser group rgroup euid ruid egid rgid cgroup cgroup_id unit slice \
             container container_name pod pod_uid namespace image runtime machine"
        );
    }

    #[test]
    fn fields_of_cgroups_are_kept_but_for_lines_of_memory_stat() {
        let names = |window| {
            let kept = kept_of_cgroups(window);
            let names: Vec<_> = kept.iter().map(|column| column.name).collect();
            names.join(" ")
        };
        let moment = "cpu_time user_time system_time throttled_time nr_throttled cpu_weight cpu_limit memory swap memory_peak \
                      memory_max memory_high memory_used oom_kills read write processes own_processes tasks tasks_max \
                      descendants dying populated frozen id depth name path";
        assert_eq!(names(false), moment);
        let window = names(true);
        let more: Vec<_> = window
            .split(' ')
            .filter(|name| !moment.split(' ').any(|of| of == *name))
            .collect();
        assert_eq!(
            more.join(" "),
            "cpu throttled read_bytes_per_second write_bytes_per_second cpu_some cpu_full memory_some memory_full io_some io_full"
        );
    }
}
