//! Looking back: a history of a made machine looks the same on every machine.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use fastproc::{
    Fields, Process, Snapshot, SnapshotStats, SourceKind, Table, cgroups, exits::Exit,
    record::Record,
};
use fastproc_history::{
    escape::joined,
    folder,
    recorder::{Bounds, Cell, Kept, Look, Moment, Names, Session, Texts, row_of, rows_of_cgroups},
    table::MACHINE,
};
use fastproc_testbed::{Folder, wait_until};

use super::terminal::Terminal;

const SECOND: u64 = 1_000_000_000;
/// 2026-03-01 09:30:00 UTC.
const BEGAN: u64 = 1_772_357_400 * SECOND;

/// A history that is removed afterwards.
pub struct History {
    path: PathBuf,
    _folder: Folder,
}

impl History {
    pub fn path(&self) -> &str {
        self.path.to_str().expect("a path of ours")
    }
}

/// Names with escape sequences, wide ones, and plain ones.
const NAMES: [&[u8]; 6] = [
    b"systemd",
    b"\x1b[2Jbad\n",
    "進程表".as_bytes(),
    b"postgres",
    b"nginx",
    b"cat",
];

/// What no record says.
struct Made;

impl Texts for Made {
    fn name(&mut self, _: Names, id: u32) -> Cell {
        if id == 0 { "root" } else { "somebody" }.into()
    }
    fn line(&mut self, process: Process<'_>) -> Cell {
        let pid = process.pid();
        let name = NAMES[(pid - 1) as usize % NAMES.len()];
        let line = [name, b"\0--number\0", pid.to_string().as_bytes(), b"\0"].concat();
        Cell::Text(joined(&line).into())
    }
    fn may_trace(&mut self, _: Process<'_>) -> bool {
        true
    }
}

fn record(number: u32, look: u64) -> Record {
    let mut record = Record::default();
    let identity = &mut record.identity;
    identity.tgid = number + 1;
    identity.ppid = number / 3;
    identity.start_ns = u64::from(number) * SECOND / 10;
    identity.num_threads = number % 4 + 1;
    identity.state_bits = u32::from(!number.is_multiple_of(5));
    identity.groups = (Fields::TOP | Fields::USERS | Fields::SCHEDULING | Fields::IO).bits();
    let name = NAMES[number as usize % NAMES.len()];
    identity.comm[..name.len()].copy_from_slice(name);
    identity.has_mm = 1;
    let used = look * u64::from(number) * SECOND / 100;
    (record.cpu.utime_ns, record.cpu.stime_ns) = (used / 4 * 3, used / 4);
    record.memory.vsize = u64::from(number + 1) << 24;
    record.memory.rss_anon = u64::from(number + 1) << 21;
    record.users.euid = if number.is_multiple_of(2) { 0 } else { 1000 };
    record.scheduling.priority = 20;
    record.scheduling.nice = number as i32 % 3 - 1;
    record
}

/// A process that lived between two snapshots.
fn ended(look: u64, up: u64) -> Exit {
    let mut exit = Exit::default();
    (exit.pid, exit.tid) = (5000 + look as u32, 5000 + look as u32);
    (exit.ppid, exit.start_ns, exit.end_ns) = (Some(1), up - SECOND / 2, Some(up - SECOND / 4));
    exit.comm[..5].copy_from_slice(b"short");
    (exit.euid, exit.is_final) = (1000, true);
    (exit.utime_ns, exit.stime_ns, exit.sum_exec_ns) = (SECOND / 8, SECOND / 8, SECOND / 4);
    exit
}

/// A history of a made machine, with walks one second apart.
pub fn made_up(name: &str, looks: u64, processes: u32) -> History {
    made_of(name, 0..looks, processes)
}

/// The same, with walks at these seconds.
fn made_of(name: &str, looks: impl IntoIterator<Item = u64>, processes: u32) -> History {
    made_in(name, looks, processes, None)
}

/// The same, with all processes in this cgroup, which uses a quarter of a CPU.
fn made_in(
    name: &str,
    looks: impl IntoIterator<Item = u64>,
    processes: u32,
    cgroup: Option<&str>,
) -> History {
    let folder = Folder::new(name);
    let path = folder.join("history");
    // A test's disk may be nearly full.
    let bounds = Bounds {
        leave: 0.0,
        ..Bounds::default()
    };
    let open = folder::Folder::create(&path, "made").expect("a folder");
    let began = (BEGAN / SECOND) as i64;
    let (kept, taken, told) = Kept::take(open, "made".into(), bounds, began).expect("it is free");
    let second = Duration::from_secs(1);
    let mut session = Session::new(kept, "boot", second, taken, told).expect("a thread");
    for look in looks {
        let up = 100_000 * SECOND + look * SECOND;
        // One CPU is busy in each second minute.
        let minutes = look / 120 * 60 + (look % 120).saturating_sub(60);
        let busy = look * SECOND / 3 + minutes * SECOND;
        let machine = [
            ("began_ns", up),
            ("read_for_ns", 0),
            ("interval_ns", SECOND),
            ("lost_exits", 0),
            ("cpus", 4),
            ("page_bytes", 4096),
            ("user_ns", busy / 2),
            ("nice_ns", 0),
            ("system_ns", busy / 2),
            ("idle_ns", look * SECOND * 4 - busy),
            ("iowait_ns", 0),
            ("irq_ns", 0),
            ("softirq_ns", 0),
            ("steal_ns", 0),
            ("guest_ns", 0),
            ("guest_nice_ns", 0),
            ("context_switches", look * 12_345),
            ("interrupts", look * 999),
            ("forks", look * 7),
            ("load_1", 150),
            ("load_5", 75),
            ("load_15", 25),
            ("memory_bytes", 16 << 30),
            ("memory_free_bytes", 8 << 30),
            ("buffers_bytes", 1 << 30),
            ("cached_bytes", 3 << 30),
            ("swap_total_bytes", 2 << 30),
            ("swap_free_bytes", 1 << 30),
            ("cpu_some_ns", look * SECOND / 8),
            ("io_some_ns", look * SECOND / 16),
        ];
        let machine = machine.map(|(name, value)| (name, value as i64));
        let mut records: Vec<_> = (0..processes).map(|number| record(number, look)).collect();
        let mut cgroups = cgroups::Recorded::new(up);
        if let Some(path) = cgroup {
            let mut record = cgroups::record::Record::default();
            record.identity.id = 7;
            record.identity.groups = cgroups::Fields::CPU.bits();
            record.cpu.usage_ns = look * SECOND / 4;
            cgroups.add(record, path.as_bytes());
            for record in &mut records {
                record.cgroup.set_id(Some(7));
                record.identity.groups |= Fields::CGROUP.bits();
            }
        }
        let table = Table {
            records: &records,
            ..Table::default()
        };
        let stats = SnapshotStats::recorded(SourceKind::Procfs, up, Duration::ZERO);
        let exits = [ended(look, up)];
        let snapshot = Snapshot::recorded(table, stats).with_exits(&exits, 0);
        let moment = Moment {
            wall: ((BEGAN + look * SECOND) / 1000) as i64,
            boot: (up / 1000) as i64,
            awake: (up / 1000) as i64,
        };
        let look = Look {
            moment,
            snapshot: &snapshot,
            machine: &row_of(&MACHINE, &machine),
            cgroups: &rows_of_cgroups(cgroups.snapshot()),
            waits: &[],
        };
        session.push(&look, &mut Made);
    }
    assert!(session.finish("it is made"));
    History {
        path,
        _folder: folder,
    }
}

#[test]
fn one_can_move_in_a_history() {
    let history = made_up("moved", 200, 5);
    let mut top = Terminal::top(
        24,
        80,
        &["--history", history.path(), "--at", "2026-03-01 09:31:10"],
    );
    top.until_shown("2026-03-01 09:31:10");
    top.press("b09:32:10\r");
    top.until_shown("09:32:10");
    top.press(",");
    top.until_shown("09:32:09");
    top.press("..");
    top.until_shown("09:32:11");
    top.press("{");
    top.until_shown("09:31:11");
    top.press("}}}}");
    top.until_shown("09:33:19");
    top.press(".");
    top.until_shown("nothing was recorded in that direction");
    top.press("{{{{");
    top.until_shown("09:30:00");
    top.press("b09:29\r");
    top.until_shown("nothing was recorded then; nearest: 2026-03-01 09:30:00");
    top.press("bnow\r");
    top.until_shown("09:33:19");
    top.press("b09:30\r");
    top.until_shown("09:30:00");
    top.press("))");
    top.until_shown("09:33:01");
    top.press(")");
    top.until_shown("the load has no spike");
    top.press("(");
    top.until_shown("09:31:01");
    top.press("E");
    top.until_shown("has not ended in what was recorded");
    top.until_shown("09:33:19");
    top.press("B");
    top.until_shown("began before what was recorded");
    top.until_shown("09:30:00");
    top.press("x");
    top.until_shown("exits are not known: there is no walk shortly before");
    top.press("k");
    top.until_shown("what was cannot be changed");
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
}

#[test]
fn the_cgroups_of_a_time_are_shown_with_their_shares() {
    let history = made_in("cgroups", 0..9, 5, Some("/made.slice"));
    let arguments = ["--history", history.path(), "--at", "2026-03-01 09:30:04"];
    let mut top = Terminal::top(24, 140, &arguments);
    top.until_shown("09:30:04");
    top.press("v");
    let row = |text: &str| {
        let row = text.lines().find(|line| line.contains("/made.slice"));
        let words = row.unwrap_or_default().split_whitespace();
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    top.until("its share", |text| {
        let row = row(text);
        row.contains(&"25.0".into()) && row.contains(&"5".into())
    });
    top.press(",,,,");
    // There is none before it.
    top.until("the first walk", |text| {
        text.contains("09:30:00") && row(text).first().is_some_and(|share| share == "-")
    });
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
    let text = crate::common::output(&["top", "--once", "--cgroups", "--history", history.path()]);
    assert!(row(&text).contains(&"25.0".into()), "{text}");
}

#[test]
fn a_gap_and_damage_are_told_and_passed() {
    let history = made_of("gap", (880..890).chain(898..903), 5);
    let open = folder::Folder::open(&history.path).expect("it was made");
    // The quarter of an hour from 09:45 on.
    let entries = open.chosen("processes", 0, i64::MAX).expect("it is read");
    let entry = entries.iter().max_by_key(|entry| entry.from);
    let path = history.path.join(&entry.expect("a file").path);
    let mut bytes = fs::read(&path).expect("it is read");
    bytes[40] ^= 0x10;
    fs::write(&path, bytes).expect("it is written");
    let arguments = ["--history", history.path(), "--at", "2026-03-01 09:44:49"];
    let mut top = Terminal::top(24, 100, &arguments);
    top.until_shown("09:44:49");
    top.press(".");
    top.until_shown("nothing was recorded between 2026-03-01 09:44:49 and 2026-03-01 09:44:58");
    top.press(",b09:44:53\r");
    top.until_shown("nothing was recorded then; nearest: 2026-03-01 09:44:49 and");
    top.press("...");
    let shown = top.until_shown("what was recorded there is damaged");
    assert!(shown.contains("09:44:59, up"), "{shown}");
    top.press("{{,");
    top.until_shown("09:44:40, up");
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
}

#[test]
fn a_field_that_a_history_does_not_keep_shows_a_hyphen() {
    let history = made_up("lacks", 3, 5);
    let settings = history.path.with_extension("toml");
    let columns = r#"columns = ["pid", "oom_score", "nvcsw", "vmhwm", "rss", "pcpu", "comm"]"#;
    fs::write(&settings, columns).expect("it is written");
    let output = Command::new(env!("CARGO_BIN_EXE_fastproc"))
        .args(["top", "--once", "--pid", "5", "--history"])
        .arg(history.path())
        .arg("--settings")
        .arg(&settings)
        .output()
        .expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let row = text.lines().last().expect("a row");
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        words,
        ["5", "-", "-", "-", "10.0M", "4.0", "nginx"],
        "{text}"
    );
}

/// What was shown is shown again, with exited processes and graphs, until the screen is live again.
#[test]
fn one_can_go_back_from_now_and_forward_until_now() {
    let own = format!("ppid == {}", std::process::id());
    let fields = "pid,ppid,user,state,pcpu,pmem,time,num_threads,comm";
    let arguments = ["--interval", "0.1", "-o", fields, "--filter", &own];
    let mut top = Terminal::top(40, 120, &arguments);
    top.until_shown("F10Quit");
    top.press(".");
    top.until_shown("this is now");
    let mut ended = 0;
    wait_until("looks at what ends", || {
        ended += u64::from(Command::new("true").status().is_ok());
        top.take(Duration::from_millis(50));
        top.screens().len() > 12
    });
    top.press("Z");
    top.until("a pause", |text| {
        text.contains("[PAUSED]") && !text.contains("this is now")
    });
    let body = |first: usize, screen: &str| {
        let lines: Vec<_> = screen.lines().skip(first).take(36).collect();
        lines.join("\n")
    };
    let mut shown: Vec<_> = top.screens().iter().map(|screen| body(1, screen)).collect();
    shown.dedup();
    shown.pop();
    for _ in 0..5 {
        let expected = shown.pop().expect("there were more");
        top.press(",");
        top.until(&expected, |text| {
            text.contains("; memory every") && body(2, text) == expected
        });
    }
    top.press("{{{{{");
    top.press(",");
    top.until_shown("nothing was recorded in that direction");
    top.press("Z");
    top.until("this machine again", |text| {
        text.contains(" every 0.1 s") && !text.contains("; memory")
    });
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
    assert!(ended > 0);
}
