//! A recorder that is killed, and whose machine loses its power.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use fastproc_history::{
    folder::Folder as Files,
    read::History,
    table::{EXITS, IDENTITIES, MACHINE, PROCESSES},
};
use fastproc_testbed::{Folder, LossyDisk, gate, needs, own_mounts, wait_until};

use crate::common::fastproc;

/// Bytes of the disk.
const DISK: usize = 48 << 20;
/// How often the power is cut.
const CUTS: usize = 12;

/// A row: its table, time, process, and a value.
type Row = (&'static str, i64, Option<i64>, Option<i64>);

fn rows(folder: &Path) -> BTreeSet<Row> {
    let mut history = History::open(folder, None).expect("it is a history");
    let mut all = BTreeSet::new();
    for (table, value) in [
        (&*PROCESSES, "run_ns"),
        (&IDENTITIES, "ppid"),
        (&EXITS, "run_ns"),
        (&MACHINE, "began_ns"),
    ] {
        let always = (i64::MIN / 2, i64::MAX / 2);
        let read = history.read(table, always, &["time", "pid", value], |rows| {
            let of = |name: &str, row: usize| rows.numbers(name).get(row).copied().flatten();
            all.extend((0..rows.count).map(|row| {
                let time = of("time", row).expect("each row has a time");
                (table.name, time, of("pid", row), of(value, row))
            }));
        });
        read.expect("it can be read");
    }
    assert!(history.damaged().is_empty(), "{:?}", history.damaged());
    all
}

/// The rows before the newest part, whose files may not all be there: those of parts that are finished.
fn finished(folder: &Path) -> BTreeSet<Row> {
    let newest = || -> Option<i64> {
        let entries = Files::open(folder).ok()?.list().ok()?;
        entries.iter().map(|entry| entry.from).max()
    };
    let Some(newest) = newest() else {
        return BTreeSet::new();
    };
    let mut rows = rows(folder);
    rows.retain(|(_, time, ..)| *time < newest * 1_000_000);
    rows
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn mount(image: &Path, point: &Path) {
    let mut command = Command::new("mount");
    succeed(
        command
            .args(["-t", "ext4", "-o", "loop"])
            .args([image, point]),
    );
}

fn unmount(point: &Path) {
    succeed(Command::new("umount").arg(point));
}

#[test]
fn a_recorder_that_is_killed_or_loses_its_power_keeps_every_finished_part() {
    needs!(gate::bpf(), gate::programs(&["mkfs.ext4", "mount"]));
    let parent = Folder::new("power");
    let (image, point, lossy) = (
        parent.join("image"),
        parent.join("disk"),
        parent.join("lossy"),
    );
    fs::create_dir(&point).expect("a folder");
    let file = fs::File::create(&image).expect("a file");
    file.set_len(DISK as u64).expect("there is room");
    let mut mkfs = Command::new("mkfs.ext4");
    let options = [
        "-q",
        "-b",
        "4096",
        "-E",
        "lazy_itable_init=0,lazy_journal_init=1",
    ];
    succeed(mkfs.args(options).arg(&image));
    own_mounts().expect("root");
    fs::copy(&image, &lossy).expect("there is room");
    let disk = LossyDisk::cover(&lossy).expect("root");
    mount(&lossy, &point);

    let folder = point.join("history");
    let path = folder.to_str().expect("UTF-8");
    let often = "--interval 100ms --write-every 1s --leave 0".split(' ');
    let arguments: Vec<_> = ["record", path].into_iter().chain(often).collect();
    let recorder = fastproc(&arguments).stderr(Stdio::null()).spawn();
    let mut recorder = recorder.expect("it starts");
    wait_until("the folder", || folder.join("open").exists());
    // What was finished before a number of writes and flushes.
    let mut known: Vec<(usize, BTreeSet<Row>)> = Vec::new();
    wait_until("four finished parts", || {
        let rows = finished(&folder);
        let is_new = known
            .last()
            .is_none_or(|(_, before)| rows.len() > before.len());
        if !rows.is_empty() && is_new {
            known.push((disk.events(), rows));
        }
        known.len() > 4
    });
    recorder.kill().expect("the recorder runs");
    recorder.wait().expect("a child");
    let killed = rows(&folder);
    let events = disk.events();
    assert!(known.iter().all(|(_, rows)| rows.is_subset(&killed)));
    unmount(&point);

    let first = known[0].0;
    for cut in 0..CUTS {
        let at = first + (events - first) * cut / CUTS;
        // Nothing, or any part of what was not flushed.
        let left = disk.after_cut(at, (cut % 4) as u64 * 0x9e37_79b9);
        fs::write(&image, left).expect("there is room");
        mount(&image, &point);
        let left = rows(&folder);
        let (_, before) = known
            .iter()
            .rfind(|(events, _)| *events <= at)
            .expect("the first is at the first cut");
        assert!(before.is_subset(&left), "cut {cut} lost a finished part");
        assert!(left.is_subset(&killed), "cut {cut} made rows");
        unmount(&point);
    }

    // It goes on where it was cut.
    mount(&image, &point);
    let left = rows(&folder);
    let mut arguments = arguments;
    arguments.extend(["--for", "1s"]);
    let again = fastproc(&arguments).output().expect("it starts");
    assert!(again.status.success(), "{again:?}");
    let more = rows(&folder);
    assert!(left.is_subset(&more) && left.len() < more.len());
    unmount(&point);
}
