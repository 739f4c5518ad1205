//! What was recorded, and what is shown of it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command},
    thread,
    time::Duration,
};

use fastproc::{Collector, Fields, Host, Snapshot};
use fastproc_columns::{
    FIELDS, Field, Lookup, Row,
    cgroups::{self, Members, Rows},
    field,
};
use fastproc_history::{
    folder::Folder,
    read::{History, groups},
    recorder::{
        Bounds, Hierarchy, Kept, Lines, Live, Look, Moment, Row as Recorded, Session, row_of,
    },
    table::MACHINE,
};
use fastproc_testbed::Folder as Temporary;

use super::fields::{Of, kept, kept_of_cgroups};

const SECOND: i64 = 1_000_000;

/// A recorder that is given snapshots.
struct Recorder {
    session: Session,
    texts: Live,
    boot_time: i64,
    now: i64,
}

impl Recorder {
    fn begin(folder: &Path, now: i64) -> Self {
        let open = Folder::create(folder, "here").expect("a folder");
        // A test's disk may be nearly full.
        let bounds = Bounds {
            leave: 0.0,
            ..Bounds::default()
        };
        let (kept, taken, told) =
            Kept::take(open, "here".into(), bounds, now / SECOND).expect("it is free");
        let host = Host::read().expect("the host");
        Self {
            session: Session::new(kept, "boot", Duration::from_secs(1), taken, told)
                .expect("a thread"),
            texts: Live::open(&host, Lines::All).expect("/proc"),
            boot_time: Moment::now().boot_time(),
            now,
        }
    }

    /// Records a snapshot as of the next second.
    fn push(&mut self, snapshot: &Snapshot<'_>, cgroups: &[(i64, Recorded)]) -> Moment {
        self.now += SECOND;
        let moment = Moment {
            wall: self.now,
            boot: self.now - self.boot_time,
            awake: self.now - self.boot_time,
        };
        let stats = snapshot.stats();
        let machine = [
            ("began_ns", stats.kernel_boottime_ns() as i64),
            ("read_for_ns", stats.read_for.as_nanos() as i64),
            ("interval_ns", 1_000_000_000),
            ("lost_exits", 0),
            ("cpus", 3),
            ("memory_bytes", 1 << 33),
            ("page_bytes", 4096),
        ];
        let look = Look {
            moment,
            snapshot,
            machine: &row_of(&MACHINE, &machine),
            cgroups,
            waits: &[],
        };
        self.session.push(&look, &mut self.texts);
        moment
    }

    fn end(mut self) {
        assert!(self.session.finish("the test ends"));
    }
}

type Shown = BTreeMap<(u32, &'static str), String>;

fn shown(row: &Row<'_>, fields: &[&'static Field], lookup: &mut Lookup, to: &mut Shown) {
    for field in fields {
        let mut text = Vec::new();
        field
            .value(row, lookup)
            .write_for_csv(field.unit, &mut text);
        text.push(b'|');
        field.write_for_table(row, lookup, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        to.insert((row.process.pid(), field.name), text);
    }
}

fn all(snapshot: &Snapshot<'_>, fields: &[&'static Field], lookup: &mut Lookup) -> Shown {
    let mut all = Shown::new();
    for process in snapshot.iter() {
        shown(&Row::new(process), fields, lookup, &mut all);
    }
    all
}

/// Starts a process, and waits until it shows its arguments.
fn child() -> Child {
    let child = Command::new("sleep").arg0("a  b\\").arg("30").spawn();
    let child = child.expect("sleep is there");
    let line = format!("/proc/{}/cmdline", child.id());
    while fs::read(&line).is_ok_and(|line| line.is_empty()) {
        thread::yield_now();
    }
    child
}

#[test]
fn each_field_is_shown_as_it_was_in_the_snapshot_that_was_recorded() {
    let folder = Temporary::new("history");
    let host = Host::read().expect("the host");
    let fields = kept(FIELDS, Of::Moment, &host);
    let mut collector = Collector::builder()
        .fields(groups())
        .open()
        .expect("/proc is there");
    let now = Moment::now().wall / SECOND * SECOND;
    let mut recorder = Recorder::begin(&folder, now);
    let mut expected = Vec::new();
    for round in 0..4 {
        let mut children: Vec<_> = (0..round * 5).map(|_| child()).collect();
        let snapshot = collector.snapshot().expect("a snapshot");
        let moment = recorder.push(&snapshot, &[]);
        let mut lookup = Lookup::new(&host, true).expect("/proc is there");
        lookup.set_clock(&snapshot);
        lookup.set_boot_time(moment.boot_time());
        lookup.total_memory = 1 << 33;
        let mut all = all(&snapshot, &fields, &mut lookup);
        // Of others the recorder may have read them before they executed a program, or went with their cgroup or terminal.
        let is_read = |name: &str| {
            let field = field::find(name).expect("it has a name");
            let in_record = field.texts().is_empty() && !field.needs.contains(Fields::CGROUP);
            !in_record || field.name == "tty"
        };
        let own =
            |pid: u32| pid == std::process::id() || children.iter().any(|child| child.id() == pid);
        all.retain(|(pid, name), _| own(*pid) || !is_read(name));
        expected.push((moment.wall, all));
        for child in &mut children {
            child
                .kill()
                .and_then(|()| child.wait())
                .expect("it can be killed");
        }
    }
    recorder.end();
    let mut history = History::open(&folder, None).expect("a history");
    for (time, expected) in expected {
        let moment = history.at(time, groups()).expect("it was recorded");
        let mut lookup = moment.lookup(host.clone());
        let found = all(&moment.snapshot(), &fields, &mut lookup);
        let differ: Vec<_> = expected
            .iter()
            .filter(|(key, value)| found.get(*key) != Some(*value))
            .map(|(key, value)| (key, value, found.get(key)))
            .collect();
        assert!(differ.is_empty(), "{differ:#?}");
        let pids = |of: &Shown| of.keys().filter(|(_, name)| *name == "pid").count();
        assert_eq!(pids(&found), pids(&expected));
    }
}

type OfCgroups = BTreeMap<(String, &'static str), String>;

fn all_of_cgroups(rows: &Rows<'_>) -> OfCgroups {
    let mut all = OfCgroups::new();
    let kept = kept_of_cgroups(false);
    for row in rows.iter() {
        for column in &kept {
            let (mut lookup, mut text) = (cgroups::Lookup::default(), Vec::new());
            let value = column.value(row, &mut lookup);
            value.write_for_csv(column.unit, &mut text);
            let path = String::from_utf8_lossy(row.cgroup.path()).into_owned();
            let text = String::from_utf8_lossy(&text).into_owned();
            all.insert((path, column.name), text);
        }
    }
    all
}

#[test]
fn each_field_of_a_cgroup_is_shown_as_it_was_in_the_snapshot_that_was_recorded() {
    let folder = Temporary::new("history-cgroups");
    let mut collector = Collector::builder()
        .fields(groups())
        .open()
        .expect("/proc is there");
    let mut hierarchy = Hierarchy::open(true).expect("cgroups are mounted");
    let mut recorder = Recorder::begin(&folder, Moment::now().wall / SECOND * SECOND);
    let mut expected = Vec::new();
    for _ in 0..3 {
        let rows = hierarchy.rows();
        let snapshot = collector.snapshot().expect("a snapshot");
        let moment = recorder.push(&snapshot, &rows);
        let members = Members::new(&snapshot, None);
        let rows = Rows::new(hierarchy.last(), None, members.as_ref());
        expected.push((moment.wall, all_of_cgroups(&rows)));
    }
    recorder.end();
    let mut history = History::open(&folder, None).expect("a history");
    for (time, expected) in expected {
        let cgroups = history.cgroups_at(time).expect("it was recorded");
        let processes = history.at(time, Fields::CGROUP).expect("it was recorded");
        let members = Members::new(&processes.snapshot(), None);
        let rows = Rows::new(cgroups.snapshot(), None, members.as_ref());
        assert_eq!(all_of_cgroups(&rows), expected);
    }
}
