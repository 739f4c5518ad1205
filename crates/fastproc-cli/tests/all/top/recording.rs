//! Recordings: a replay shows what was recorded, and a synthetic recording looks the same on every machine.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command, time::Duration};

use fastproc::{Fields, exits::Exit, record::Record, words_mut};
use fastproc_testbed::{Folder, wait_until};
use fastproc_top::{
    machine::{Cpu, Gauge, Machine},
    record::{Facts, Frame, Key, Reader, Writer},
};

use super::terminal::Terminal;

const SECOND: u64 = 1_000_000_000;
/// 2026-03-01 09:30:00 UTC.
const BEGAN: u64 = 1_772_357_400 * SECOND;

/// A file that is removed afterwards.
pub struct Recording {
    path: PathBuf,
    _folder: Folder,
}

impl Recording {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        Self {
            path: folder.join("recording"),
            _folder: folder,
        }
    }

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

fn record(number: u32, look: u64) -> Record {
    let mut record = Record::default();
    let identity = &mut record.identity;
    identity.tgid = number + 1;
    identity.ppid = number / 3;
    identity.start_ns = u64::from(number) * SECOND / 10;
    identity.num_threads = number % 4 + 1;
    identity.state_bits = u32::from(!number.is_multiple_of(5));
    let users = Fields::USERS | Fields::CREDENTIALS;
    let scheduling = Fields::SCHEDULING | Fields::SCHEDULING_DETAILS;
    identity.groups = (Fields::TOP | users | scheduling | Fields::IO).bits();
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

/// A recording of a simulated machine, with snapshots one second apart.
pub fn made_up(name: &str, looks: u64, processes: u32, cpus: u32) -> Recording {
    let recording = Recording::new(name);
    let facts = Facts {
        page_size: 4096,
        ticks_per_second: 100,
        possible_cpus: cpus,
        possible_nodes: 1,
        total_memory: 16 << 30,
    };
    let mut writer = Writer::create(&recording.path, facts, u64::MAX).expect("a file of ours");
    for look in 0..looks {
        let mut machine = Machine::default();
        let up = 100_000 * SECOND + look * SECOND;
        for (gauge, value) in [
            (Gauge::Calendar, BEGAN + look * SECOND),
            (Gauge::Uptime, up),
            (Gauge::ContextSwitches, look * 12_345),
            (Gauge::Interrupts, look * 999),
            (Gauge::Forks, look * 7),
            (Gauge::Load1, 150),
            (Gauge::Load5, 75),
            (Gauge::Load15, 25),
            (Gauge::MemTotal, 16 << 30),
            (Gauge::MemFree, 8 << 30),
            (Gauge::Buffers, 1 << 30),
            (Gauge::Cached, 3 << 30),
            (Gauge::SwapTotal, 2 << 30),
            (Gauge::SwapFree, 1 << 30),
            (Gauge::CpuSome, look * SECOND / 8),
            (Gauge::IoSome, look * SECOND / 16),
            (Gauge::DiskRead, look << 20),
            (Gauge::DiskWritten, 3 << 20),
            (Gauge::Received, look << 10),
            (Gauge::Sent, 5 << 10),
            (Gauge::Temperature, 54_321),
        ] {
            machine.set(gauge, Some(value));
        }
        machine.cpus = (0..cpus)
            .map(|id| {
                let busy = u64::from(id * 37 % 101) * SECOND / 100;
                let mut times = [0; 10];
                (times[0], times[2], times[3]) = (
                    look * busy / 2,
                    look * (busy - busy / 2),
                    look * (SECOND - busy),
                );
                Cpu { id, times }
            })
            .collect();
        for cpu in &machine.cpus {
            for (sum, time) in machine.total.iter_mut().zip(cpu.times) {
                *sum += time;
            }
        }
        let mut frame = Frame {
            began_ns: up,
            read_for_ns: 0,
            records: (0..processes).map(|number| record(number, look)).collect(),
            machine,
            ..Frame::default()
        };
        frame.texts.push((Key::User(0), b"root".to_vec()));
        frame.texts.push((Key::User(1000), b"somebody".to_vec()));
        for record in &frame.records {
            let identity = &record.identity;
            let name = NAMES[(identity.tgid - 1) as usize % NAMES.len()];
            let line = [
                name,
                b"\0--number\0",
                identity.tgid.to_string().as_bytes(),
                b"\0",
            ]
            .concat();
            frame
                .texts
                .push((Key::Cmdline(identity.tgid, identity.start_ns), line));
        }
        // The limits of all but the second, which only its owner may see; one process exits at every snapshot.
        for record in frame
            .records
            .iter()
            .filter(|record| record.identity.tgid != 2)
        {
            let (pid, start_ns) = (record.identity.tgid, record.identity.start_ns);
            let limits =
                format!("Limit   Soft   Hard   Units\nMax open files   {pid}   {pid}   files");
            frame
                .texts
                .push((Key::Limits(pid, start_ns), limits.into_bytes()));
            let files = format!("     0 /dev/null\n     1 /var/log/{pid}.log");
            frame
                .texts
                .push((Key::Files(pid, start_ns), files.into_bytes()));
        }
        frame.exits = Some(vec![ended(look, up)]);
        writer.push(&mut frame).expect("there is room");
    }
    writer.end_block().expect("there is room");
    recording
}

#[test]
fn a_recording_can_be_moved_in() {
    let recording = made_up("moved", 200, 5, 2);
    let mut top = Terminal::top(
        24,
        80,
        &["--replay", recording.path(), "--interval", "1000"],
    );
    top.until_shown("2026-03-01 09:30:0");
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
    top.press("{{{{");
    top.until_shown("09:30:00");
    top.press("k");
    top.until_shown("the processes of a recording cannot be changed");
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
}

/// A replay shows for every snapshot what was shown at recording: processes, exits, and history.
#[test]
fn a_replay_shows_what_was_shown() {
    const LOOKS: usize = 9;
    const SHORT: u64 = 60;
    let recording = Recording::new("shown");
    // A command line may change between two snapshots of one block.
    let fields = "pid,ppid,user,state,pcpu,pmem,time,num_threads,nvcsw,comm";
    let own = format!("ppid == {}", std::process::id());
    let arguments = ["-o", fields, "--filter", &own];
    let live = ["--interval", "0.1", "--record", recording.path()];
    let mut top = Terminal::top(40, 120, &[&live[..], &arguments].concat());
    top.until_shown("F10Quit");
    let storm = std::thread::spawn(|| {
        for _ in 0..SHORT {
            let status = Command::new("true").status();
            assert!(status.expect("there is true").success());
        }
    });
    let ended = |screen: &String| {
        let count = screen.split_once(" exited")?.0;
        count.rsplit(' ').next()?.parse::<u64>().ok()
    };
    wait_until("looks at what ends, and some after it", || {
        top.take(Duration::from_millis(50));
        let shown = top.screens();
        let last = shown.iter().rposition(|screen| ended(screen) > Some(0));
        let is_over = storm.is_finished() && shown.len() >= LOOKS;
        is_over && last.is_some_and(|last| last > 0)
    });
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
    storm.join().expect("it ended");
    let shown = top.screens();
    let replay = ["--interval", "0.05", "--replay", recording.path()];
    let mut replay = Terminal::top(40, 120, &[&replay[..], &arguments].concat());
    replay.until_shown("the recording ends here");
    replay.press(",");
    replay.until("back in it", |text| {
        !text.contains("the recording ends here")
    });
    let replayed = replay.screens();
    // The first line has the source, the second one of a recording where it is, and the last one messages.
    let body = |first: usize, screen: &str| {
        let lines: Vec<_> = screen.lines().skip(first).take(37).collect();
        lines.join("\n")
    };
    for (at, (shown, replayed)) in shown.iter().zip(&replayed).enumerate() {
        assert_eq!(body(1, shown), body(2, replayed), "look {at}");
    }
    // Going back restores the history of earlier snapshots, without later ones.
    let back = replayed.last().map(|screen| body(2, screen));
    assert_eq!(back, Some(body(1, &shown[shown.len() - 2])));
    let counted = shown
        .iter()
        .filter(|screen| ended(screen).is_some())
        .count();
    assert_eq!(counted, shown.len(), "exits are recorded: {}", shown[0]);
}

/// If a process executes a program of the same name, only its command line changes.
#[test]
fn a_command_line_that_changes_is_shown_and_recorded() {
    let recording = Recording::new("changed");
    let third = "read line";
    let second = format!("read line; exec sh -c '{third}' the-third");
    let first = format!("read line; exec sh -c \"{second}\" the-second");
    let mut shell = Command::new("sh")
        .args(["-c", &first, "the-first"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let filter = format!("pid == {}", shell.id());
    let shown = ["-o", "pid,comm,cmdline", "--filter", &filter];
    let live = ["--interval", "0.1", "--record", recording.path()];
    let mut top = Terminal::top(24, 200, &[&live[..], &shown].concat());
    top.until_shown("the-first");
    let mut input = shell.stdin.take().expect("a pipe");
    // A command line also has the words that come later. The second one may change after its snapshot was taken, and is
    // then not recorded; but when the third is shown, command lines have been read again.
    for (before, now) in [("the-first", "the-second"), ("the-second", "the-third")] {
        std::io::Write::write_all(&mut input, b"\n").expect("it reads");
        top.until(now, |text| text.contains(now) && !text.contains(before));
    }
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
    drop(input);
    shell.wait().expect("our child");
    let replay = ["--interval", "0.02", "--replay", recording.path()];
    let mut replay = Terminal::top(24, 200, &[&replay[..], &shown].concat());
    let end = replay.until_shown("the recording ends here");
    assert!(!end.contains("the-first"), "{end}");
    let screens = replay.screens();
    let is_first = |screen: &&String| screen.contains("the-first");
    let firsts = screens.iter().filter(is_first).count();
    assert!(firsts > 0 && firsts < screens.len(), "{firsts}");
    // Back in the recording, it is as before.
    replay.press("{");
    replay.until_shown("the-first");
}

#[test]
fn a_link_is_not_followed_and_a_limit_is_kept() {
    const MOST: u64 = 2 << 20;
    let folder = Folder::new("top-record-link");
    let (link, elsewhere) = (folder.join("link"), folder.join("elsewhere"));
    std::os::unix::fs::symlink(&elsewhere, &link).expect("a folder of ours");
    let facts = Facts {
        page_size: 4096,
        ticks_per_second: 100,
        possible_cpus: 1,
        possible_nodes: 1,
        total_memory: 1 << 30,
    };
    let error = Writer::create(&link, facts, u64::MAX).expect_err("it is a link");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(!elsewhere.exists());
    // Blocks are written as long as a whole one fits.
    let path = folder.join("limited");
    let mut writer = Writer::create(&path, facts, MOST).expect("a file of ours");
    let mut noise = 1_u64;
    let mut looks = 0;
    let error = loop {
        let mut frame = Frame::default();
        for number in 1..500 {
            let mut record = record(number, looks);
            for word in &mut words_mut(&mut record)[40..] {
                // Incompressible data.
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *word = noise.rotate_left(17);
            }
            frame.records.push(record);
        }
        looks += 1;
        assert!(looks < 1000, "there is no limit");
        if let Err(error) = writer.push(&mut frame).and_then(|()| writer.end_block()) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    assert!(error.to_string().contains("more than 2 MiB"), "{error}");
    drop(writer);
    let file = fs::metadata(&path).expect("the path exists");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let written = file.len();
    assert!(written <= MOST && written > MOST / 2, "{written}");
    let reader = Reader::open(&path).expect("it is whole");
    assert_eq!(reader.frames(), looks - 1);
}

#[test]
fn a_file_that_was_cut_shows_what_is_there_and_others_are_refused() {
    let recording = made_up("cut", 130, 20, 2);
    let whole = fs::read(&recording.path).expect("the file is read");
    let frames = |bytes: &[u8]| {
        fs::write(&recording.path, bytes).expect("the file is written");
        Reader::open(&recording.path).map(|mut reader| {
            let last = reader.frames() - 1;
            reader.read(last, |_| {}).map(|()| last + 1)
        })
    };
    let all = frames(&whole).expect("whole").expect("whole");
    assert_eq!(all, 130);
    // One block a minute.
    let cut = frames(&whole[..whole.len() - 1])
        .expect("two blocks")
        .expect("whole blocks");
    assert!((61..130).contains(&cut), "{cut}");
    assert!(frames(&whole[..40]).is_err());
    assert!(frames(b"").is_err() && frames(b"fastprec").is_err());
    assert!(frames(b"#!/bin/sh\necho not a recording\n").is_err());
    // With any bit flipped: an error or the same number of frames, never anything else.
    for at in (0..whole.len()).step_by(whole.len() / 50 + 1) {
        let mut bent = whole.clone();
        bent[at] ^= 0x10;
        if let Ok(Ok(count)) = frames(&bent) {
            assert!(count <= 130, "{at}: {count}");
        }
    }
    fs::write(&recording.path, &whole[..40]).expect("the file is written");
    let refused = Command::new(env!("CARGO_BIN_EXE_fastproc"))
        .args(["top", "--once", "--replay", recording.path()])
        .output()
        .expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot read the recording"));
}
