//! With options of ps(1) the output is that of ps(1) byte for byte, for unusual processes.

use crate::common;

use std::{ffi::OsStr, process::Command};

use crate::common::Differences;
use fastproc_testbed::gate;

/// `{}` is replaced by the pids, and `~` by a blank. Some are examples of the manual page.
const CALLS: &[&str] = &[
    "-f -p {}",
    "-fp {}",
    "-F -p {}",
    "-l -p {}",
    "-ly -p {}",
    "-lf -p {}",
    "-lyF -p {}",
    "-j -p {}",
    "-jf -p {}",
    "-c -p {}",
    "-cf -p {}",
    "-lcP -p {}",
    "-P -p {}",
    "-M -p {}",
    "-L -p {}",
    "-Lf -p {}",
    "-T -p {}",
    "-Tf -p {}",
    "-Lfj -p {}",
    "-fH -p {}",
    "w -f -p {}",
    "w -F -p {}",
    "w -l -p {}",
    "w -j -p {}",
    "w -jl -p {}",
    "w -c -p {}",
    "w -P -p {}",
    "w -L -f -p {}",
    "c -f -p {}",
    "c -j -p {}",
    "w -O rss -p {}",
    "w O rss -p {}",
    "-f -q {}",
    "q {}",
    "-H -p {}",
    "-f --forest -p {}",
    "u p {}",
    "u -p {}",
    "uww p {}",
    "uc p {}",
    "un p {}",
    "uf p {}",
    "uH p {}",
    "j p {}",
    "l p {}",
    "s p {}",
    "v p {}",
    "X p {}",
    "p {}",
    "o pid,comm p {}",
    "-O rss -p {}",
    "O rss p {}",
    "-p {} -o pid=,comm=",
    "-p {} -o pid:10,user:3,vsz=LONGER-THAN-IT",
    "-p {} -o vsz:3=SIZE -o pid -o comm:5 -o args",
    "-p {} -o pid,args --sort -pid",
    "-p {} -o pid,ppid,rss --sort=-rss,pid --no-headings",
    "-p {} -f --cols 40",
    "-p {} -f --cols 90",
    "-p {} --sort -%mem,pid u",
    "-p 2,{} -o pid,args --sort args,pid",
    "-p 2,{} -o pid,args --sort -args,pid",
    "co pid,args,cmd p {}",
    "-p {} -o pid,command c",
    "c -O args -p {}",
    "-p {} -o %p~%y~%x~%c",
    "-p {} -o ~%p~~%a~ -o pid,comm",
    "o %c%u%p p {}",
    "-p {} -O %p~%c",
    "-p {} -o %C~%G~%P~%U~%a~%c~%g~%n~%p~%r~%u~%x~%y~%z",
    "--context -p {}",
    "--context -L -p {}",
    "--context -j -p {}",
    "-M --context -p {}",
    "-p {} -o euser,ruser,suser,fuser,f,comm,label",
    "-p {} -o pid,tid,class,rtprio,ni,pri,psr,pcpu,stat,wchan:14,comm",
    "p {} o stat,euid,ruid,tty,tpgid,sess,pgrp,ppid,pid,pcpu,comm",
    "-p {} -o pid,tt,user,fname,tmout,f,wchan",
    "-p {} -o pid,ruser=RealUser -o comm=Command",
    "-p {} -o pid,wchan=WIDE-WCHAN-COLUMN -o comm",
    "jkuid,-ppid,+pid p {}",
    "p {} k comm,pid o comm,args",
    "kstart_time,pid -f -p {}",
    "Z p {}",
];

/// Columns without a field of fastproc. All others are compared.
const MISSING: &[&str] = &[
    "ag_id", "ag_nice", "cgname", "cuc", "cuu", "docker", "environ", "fds", "htprv", "htshr",
    "lim", "lsession", "luid", "lxc", "m_size", "numa", "ouid", "seat", "supgrp", "trss", "tty4",
    "uunit", "zone",
];

/// Values that depend on memory of other processes, or that the kernel calculates at each reading.
const MOVING: &[&str] = &["pss", "uss", "oom", "wchan", "wname"];

fn text(program: impl AsRef<OsStr>, arguments: &[String]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "Asia/Kathmandu")
        .env_remove("COLUMNS")
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !text.is_empty(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// One changes all the time; for the other ps(1) shows the memory and arguments of its threads, which its leader has
/// lost.
const MOVING_OR_OTHERWISE: [&str; 2] = ["running", "dead-leader"];

/// The pids of the testbed's processes that do not change.
fn pids() -> String {
    let processes = common::testbed().processes().iter();
    let still = processes.filter(|process| !MOVING_OR_OTHERWISE.contains(&process.label));
    let pids: Vec<_> = still.map(|process| process.pid.to_string()).collect();
    pids.join(",")
}

/// Runs ps(1), ours and ps(1) again; notes our lines that neither of the others has.
fn bracket(call: &[String], differences: &mut Differences) -> usize {
    let before = text("ps", call);
    let ours = [vec!["ps".to_owned()], call.to_vec()].concat();
    let ours = [ours, vec!["--source".into(), "procfs".into()]].concat();
    let ours = text(env!("CARGO_BIN_EXE_fastproc"), &ours);
    let after = text("ps", call);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, ours, after) = (lines(&before), lines(&ours), lines(&after));
    let shown = call.join(" ");
    let shown = shown.split(' ').filter(|word| word.len() < 80);
    let shown = shown.collect::<Vec<_>>().join(" ");
    if before.len() == after.len() && ours.len() != before.len() {
        let counts = format!("{} lines for {}", ours.len(), before.len());
        differences.add(shown, counts);
        return 0;
    }
    for (at, line) in ours.iter().enumerate() {
        let theirs = [before.get(at), after.get(at)];
        // A line that changed between the two may have had any value between.
        if theirs[0] == theirs[1] && theirs[0] != Some(line) {
            let theirs = theirs[0].map_or("nothing", |line| line);
            differences.add(
                format!("{shown}: line {at}"),
                format!("\n{line}\n{theirs}\n"),
            );
        }
    }
    ours.len()
}

/// Repeats a call until there is no difference, up to a limit.
fn compare(calls: &[Vec<String>]) -> usize {
    let mut differences = Differences::default();
    let mut compared = 0;
    for call in calls {
        for _ in 0..Differences::LOOKS {
            let mut of_look = Differences::default();
            compared += bracket(call, &mut of_look);
            let is_same = of_look.is_empty();
            differences.join(of_look);
            if is_same {
                break;
            }
        }
    }
    differences.finish();
    compared
}

#[test]
fn every_call_shows_what_ps_shows() {
    if !is_this_ps() {
        return;
    }
    let pids = pids();
    let calls: Vec<Vec<String>> = CALLS
        .iter()
        .map(|call| {
            let word = |word: &str| word.replace("{}", &pids).replace('~', " ");
            call.split(' ').map(word).collect()
        })
        .collect();
    let compared = compare(&calls);
    assert!(compared > 2000, "only {compared} lines were compared");
    eprintln!("{compared} lines compared with those of ps(1)");
}

#[test]
fn every_column_is_that_of_ps() {
    if !is_this_ps() {
        return;
    }
    let listed = text("ps", &["L".into()]);
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let (missing, known): (Vec<_>, Vec<_>) = names
        .filter(|name| !name.starts_with('_'))
        .partition(|name| MISSING.contains(name));
    for name in missing {
        let output = common::run(&["ps", "-o", name]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("ps(1) has a column"), "{name}: {message}");
    }
    let pids = pids();
    let still: Vec<_> = known.iter().filter(|name| !MOVING.contains(name)).collect();
    assert!(still.len() > 140, "only {} columns", still.len());
    let calls: Vec<Vec<String>> = still
        .chunks(6)
        .map(|names| {
            let names = names
                .iter()
                .fold("pid".to_owned(), |all, name| format!("{all},{name}"));
            vec!["-p".into(), pids.clone(), "-o".into(), names]
        })
        .collect();
    let compared = compare(&calls);
    assert!(compared > 1000, "only {compared} lines were compared");
}

/// Versions differ in widths and letters: only the version whose output was copied can be compared.
fn is_this_ps() -> bool {
    let version = text("ps", &["--version".into()]);
    let is_it = version.contains("procps-ng 4.0.");
    if !is_it {
        gate::skipped(&format!(
            "the output is that of procps 4.0, and here is {version}"
        ));
    }
    is_it
}
