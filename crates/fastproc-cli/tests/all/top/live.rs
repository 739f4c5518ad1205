//! The processes of this machine.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use fastproc_testbed::{Folder, Running, as_user_with, gate, needs};

use super::terminal::Terminal;
use crate::common;

/// A process to be found, with an environment that fits on one screen.
fn sleeper() -> Running {
    let mut command = Command::new("sleep");
    let command = command.arg("4242").stdin(Stdio::null());
    Running::start(command.env_clear().env("PATH", "/usr/bin:/bin"))
}

/// Shows only this process.
fn top_of(sleeper: &Running, size: (u16, u16), more: &[&str]) -> Terminal {
    let filter = format!("pid == {}", sleeper.id());
    let mut arguments = vec![
        "--source",
        "procfs",
        "--interval",
        "0.1",
        "--filter",
        &filter,
    ];
    arguments.extend(more);
    let mut top = Terminal::top(size.0, size.1, &arguments);
    top.until_shown("sleep");
    top
}

#[test]
fn draws_only_a_part_of_a_terminal_that_claims_a_huge_size() {
    let sleeper = sleeper();
    let mut top = top_of(&sleeper, (24, 80), &[]);
    top.claim(4000, 4000);
    top.press("?");
    top.until_shown("to the first row");
    let path = format!("/proc/{}/status", top.pid());
    let status = fs::read_to_string(path).expect("/proc shows the process");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|most| most.trim().strip_suffix(" kB"));
    let most: u64 = most.expect("a size").trim().parse().expect("KiB");
    assert!(most < 400_000, "{most} KiB");
}

/// In a pid namespace with the `/proc` of an outer one, the pids on the screen are not those of kill(2).
#[test]
fn nothing_is_done_to_who_has_the_number_in_another_namespace() {
    needs!(gate::root(), gate::programs(&["unshare"]));
    // The outer one is a namespace of this test, in which the sleeper has a pid that the inner one has used as well.
    let script = r#"
        sleep 4242 & sleeper=$!
        unshare --pid --fork sh -c '
            while :; do sleep 4243 & [ $! -ge "$1" ] && break; kill $!; done
            XDG_CONFIG_HOME=/proc/nowhere "$0" top --source procfs --interval 0.1 \
                -o pid,ni,cmdline --filter "pid == $1"
            kill -0 $! && echo spared' "$0" $sleeper
        kill -0 $sleeper && echo lives"#;
    let mut command = Command::new("setsid");
    command.args("--ctty --wait unshare --pid --fork --mount-proc --kill-child".split(' '));
    command.args(["sh", "-c", script, env!("CARGO_BIN_EXE_fastproc")]);
    let mut top = Terminal::run(24, 100, command);
    top.until_shown("sleep 4242");
    // Each key waits for the effect of the one before: faster keys would count as pasted text.
    for keys in [
        &[("k", "15 SIGTERM"), ("\r", "(y/n)")][..],
        &[("r", "Nice value"), ("7", "19): 7"), ("\r", "(y/n)")],
        &[("]", "(y/n)")],
    ] {
        for (key, sign) in keys {
            top.press(key);
            top.until_shown(sign);
        }
        top.press("y");
        top.until_shown("mount -t proc proc /proc");
    }
    top.press("q");
    let text = top.until_shown("lives");
    assert!(text.contains("spared"), "{text}");
}

#[test]
fn a_nice_value_is_set() {
    let sleeper = sleeper();
    let mut top = top_of(&sleeper, (24, 100), &["-o", "pid,ni,comm"]);
    top.press("r");
    top.until_shown("Nice value");
    top.press("7");
    top.until_shown("19): 7");
    top.press("\r");
    top.until_shown("Set the nice value 7 of");
    top.press("y");
    let row = format!("{} {:>2} sleep", sleeper.id(), 7);
    top.until_shown(&row);
    top.press("]");
    top.until_shown("Change the nice value by -1 of");
    top.press("n");
}

#[test]
fn a_process_is_shown_in_detail() {
    let sleeper = sleeper();
    let mut top = top_of(&sleeper, (40, 120), &[]);
    top.press("\r");
    let title = format!("Process {}: sleep 4242", sleeper.id());
    // The history from before the details were opened is there at once, and grows.
    let memory = |text: &str| {
        let mut lines = text
            .lines()
            .skip_while(|line| !line.starts_with("CPU                 "));
        let line = lines.find(|line| line.starts_with("memory"));
        line.map_or(0, |line| {
            line.chars().filter(|c| ('▁'..='█').contains(c)).count()
        })
    };
    top.until("the overview, and its history", |text| {
        text.contains(&title) && memory(text) > 3
    });
    top.press("\t");
    top.until("its thread", |text| {
        text.contains("TID") && text.contains("sleep")
    });
    top.press("\t");
    top.until_shown("Max open files");
    top.press("l");
    top.until_shown("0 /dev/null");
    top.press("e");
    top.until_shown("PATH=/usr/bin:/bin");
    top.press("\x1b");
    top.until_shown("F10Quit");
}

#[test]
fn the_size_may_change() {
    let mut top = Terminal::top(24, 80, &["--source", "procfs", "--interval", "0.1"]);
    top.until_shown("F10Quit");
    for (lines, columns) in [(100, 300), (10, 40), (3, 10), (1, 1), (50, 120), (24, 80)] {
        top.resize(lines, columns);
        if lines >= 10 {
            let columns = usize::from(columns);
            top.until("the last line", |text| {
                let last = text.lines().nth(usize::from(lines) - 1).unwrap_or_default();
                last.starts_with("F1Help")
                    && text.lines().all(|line| line.chars().count() <= columns)
            });
        }
    }
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
}

/// A process that becomes another user by setpriv(1) keeps root's home.
#[test]
fn settings_of_somebody_else_are_none_unless_they_are_asked_for() {
    needs!(gate::root(), gate::programs(&["setpriv"]));
    let home = Folder::new("home");
    let settings = home.join(".config/fastproc/top.toml");
    fs::create_dir_all(settings.parent().expect("it is in a folder")).expect("a folder");
    let program = home.join("fastproc");
    common::install(env!("CARGO_BIN_EXE_fastproc"), &program);
    fs::write(&settings, "wrong").expect("the file is written");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).expect("its mode is set");
    let run = |more: &[&str]| {
        let mut command = as_user_with(65534, "-all", &program);
        command.args(["top", "--once"]);
        command.args(["--source", "procfs", "--interval", "0.1"]);
        command.args(more).env("HOME", &*home);
        command.env_remove("XDG_CONFIG_HOME");
        command.output().expect("setpriv(1) is there")
    };
    let output = run(&[]);
    assert!(output.status.success(), "{output:?}");
    let named = run(&["--settings", settings.to_str().expect("ASCII")]);
    let text = String::from_utf8_lossy(&named.stderr);
    assert!(text.contains("Permission denied"), "{text}");
}

/// As in a container, and on Android.
#[test]
fn the_table_is_shown_where_the_machine_cannot_be_read() {
    needs!(gate::root());
    let usual = Terminal::command(&["--source", "procfs", "--interval", "0.1"]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount -t proc -o subset=pid proc /proc && exec \"$@\"");
    command
        .arg("sh")
        .arg(usual.get_program())
        .args(usual.get_args());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut top = Terminal::run(24, 100, command);
    let shown = top.until("a table", |text| {
        text.contains("CMDLINE") && text.contains(" run")
    });
    let cpu = shown.lines().find(|line| line.starts_with("CPU["));
    let words: Vec<&str> = cpu.expect("a line of CPUs").split_whitespace().collect();
    assert_eq!(words, ["CPU[", "-]"]);
    assert!(shown.contains("- switches/s"), "{shown}");
    top.end();
}
