//! `fastproc record`.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use fastproc_columns::number::write_instant;
use fastproc_history::{
    file::File,
    folder::Folder as History,
    rows::Rows,
    table::{EVENTS, EXITS, IDENTITIES, MACHINE, PROCESSES, Table},
};
use fastproc_testbed::{Folder, gate, needs, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{fastproc, for_everyone};

fn open_files(folder: &Path, table: &str) -> usize {
    let history = History::open(folder).expect("it was made");
    let entries = history.list().expect("it is read");
    entries
        .iter()
        .filter(|entry| *entry.table == *table)
        .count()
}

fn rows(folder: &Path, table: &'static Table, columns: &[&str]) -> Vec<Rows> {
    let history = History::open(folder).expect("it was made");
    let entries = history.chosen(table.name, 0, i64::MAX).expect("it is read");
    let mut rows = Vec::new();
    for entry in entries {
        let file = File::open(history.read(&entry).expect("the file exists"), table);
        let file = file.expect("it is whole");
        let groups = 0..file.groups();
        rows.extend(groups.map(|group| file.read(group, columns).expect("it is whole")));
    }
    rows
}

fn end(mut recorder: Child) {
    let pid = Pid::from_child(&recorder);
    kill_process(pid, Signal::TERM).expect("the recorder runs");
    let status = recorder.wait().expect("a child");
    assert!(status.success(), "{status}");
}

fn numbers(rows: &[Rows], name: &str) -> Vec<i64> {
    rows.iter()
        .flat_map(|rows| rows.numbers(name))
        .flatten()
        .copied()
        .collect()
}

#[test]
fn the_recorder_keeps_few_rights_and_records_processes_and_exits() {
    needs!(gate::bpf());
    let parent = Folder::new("record");
    let folder = parent.join("history");
    let path = folder.to_str().expect("UTF-8");
    let arguments = ["record", path, "--command-lines", "all", "--leave", "0"];
    let recorder = fastproc(&arguments).stderr(Stdio::null()).spawn();
    let recorder = recorder.expect("it starts");
    let status = format!("/proc/{}/status", recorder.id());
    let is_ready = || fs::read_to_string(&status).is_ok_and(|text| text.contains("Seccomp:\t2"));
    wait_until("it is confined", is_ready);
    let text = fs::read_to_string(&status).expect("the recorder runs");
    // CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF.
    assert!(text.contains("CapEff:\t000000c000080004"), "{text}");
    wait_until("a part", || open_files(&folder, "processes") > 0);
    let mut short = Command::new("sh")
        .args(["-c", "exit 7"])
        .spawn()
        .expect("it starts");
    short.wait().expect("a child");
    let before = open_files(&folder, "machine");
    wait_until("two more parts", || {
        open_files(&folder, "machine") > before + 1
    });
    let second = fastproc(&arguments).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("another recorder"), "{stderr}");
    // The kernel releases a process some milliseconds after its parent has waited for it.
    let last: Vec<_> = (0..10).map(|_| Command::new("true").spawn()).collect();
    let last = last.into_iter().map(|child| {
        let mut child = child.expect("it starts");
        child.wait().expect("a child");
        i64::from(child.id())
    });
    let last: Vec<_> = last.collect();
    end(recorder);
    let exits = rows(&folder, &EXITS, &["pid", "status", "command_line"]);
    let (pids, statuses) = (numbers(&exits, "pid"), numbers(&exits, "status"));
    let found = pids.iter().position(|pid| *pid == i64::from(short.id()));
    let found = found.expect("its exit is recorded");
    let details = rows(&folder, &EVENTS, &["detail"]);
    let mut details = details
        .iter()
        .flat_map(|rows| rows.texts("detail"))
        .flatten();
    if details.any(|detail| detail.contains("exits are missing")) {
        gate::repeated(
            "the kernel had not released some processes in the patience of the recorder",
        );
    } else {
        assert!(
            last.iter().all(|pid| pids.contains(pid)),
            "{last:?} of {pids:?}"
        );
    }
    assert_eq!(statuses[found], 7 << 8);
    let lines = exits.iter().flat_map(|rows| rows.texts("command_line"));
    let line = lines.flatten().find(|line| ***line == *r"sh -c exit\x207");
    assert!(line.is_some());
    let own = i64::from(std::process::id());
    for table in [&*PROCESSES, &*IDENTITIES] {
        let pids = numbers(&rows(&folder, table, &["pid"]), "pid");
        assert!(pids.contains(&own), "{}", table.name);
    }
    let events = rows(&folder, &EVENTS, &["event"]);
    let events: Vec<_> = events
        .iter()
        .flat_map(|rows| rows.texts("event"))
        .flatten()
        .collect();
    // On a busy machine a look may be too late: an event says so.
    let events = events.iter().map(|event| &***event);
    let events: Vec<_> = events.filter(|event| *event != "blind").collect();
    assert_eq!(events, ["started", "stopped"]);
    for entry in History::open(&folder)
        .and_then(|history| history.list())
        .expect("it is read")
    {
        let mode = fs::metadata(folder.join(&entry.path))
            .expect("the file exists")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640, "{entry:?}");
    }
}

#[test]
fn a_user_records_what_proc_shows() {
    needs!(gate::root());
    let parent = Folder::with_mode("record-user", 0o777);
    let folder = parent.join("history");
    let everyone = for_everyone();
    let mut recorder = Command::new(everyone.join("fastproc"));
    recorder
        .args("record --leave 0 --interval 200ms --for 2s".split(' '))
        .arg(&folder)
        .env("FASTPROC_SOCKET", "")
        .uid(65534)
        .gid(65534);
    let output = recorder.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let walks = numbers(&rows(&folder, &MACHINE, &["time"]), "time");
    assert!(!walks.is_empty());
    let is_multiple = |time: &i64| time % 200_000 == 0;
    assert!(walks.iter().all(is_multiple), "{walks:?}");
    let own = i64::from(std::process::id());
    assert!(numbers(&rows(&folder, &PROCESSES, &["pid"]), "pid").contains(&own));
    assert!(rows(&folder, &EXITS, &["pid"]).is_empty());
    // A part of a second can be asked for.
    let time = walks.iter().rfind(|time| *time % 1_000_000 != 0);
    let mut at = Vec::new();
    write_instant(*time.expect("most are in one"), &mut at);
    let at = String::from_utf8(at).expect("text");
    let path = folder.to_str().expect("UTF-8");
    let shown = crate::common::output(&["ps", "--at", &at, "--json", "--history", path]);
    assert!(
        shown.contains(&format!(r#""time":"{at}""#)),
        "{at}: {shown}"
    );
    // Whoever gets the folder looks at it.
    let mut top = fastproc(&["top", "--once", "--history"]);
    let output = top.arg(&folder).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("; history every "), "{text}");
}
