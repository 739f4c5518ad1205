//! Options that users of top(1) type.

use std::process::{Command, Output};

use fastproc_testbed::Running;

use super::{past::made_up, terminal::Terminal};
use crate::common;

/// `fastproc top` with these options, without a user's settings.
fn top(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fastproc"))
        .arg("top")
        .args(options)
        .envs([("COLUMNS", "100"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
        .env("XDG_CONFIG_HOME", "/proc/nowhere")
        .output()
        .expect("the program starts")
}

fn tables(options: &[&str]) -> Vec<String> {
    let output = top(&[options, &["--source", "procfs"]].concat());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{options:?}: {text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{options:?}");
    text.split("\n\n").map(Into::into).collect()
}

#[test]
fn batch_writes_as_many_tables_of_the_processes_that_are_named() {
    let sleepers = ["4343", "4343"].map(Running::sleep);
    let [one, other] = sleepers.each_ref().map(|sleeper| sleeper.id().to_string());
    let both = format!("{one},{other}");
    for options in [
        &["-b", "-n", "2", "-d", "0.1", "-p", &both][..],
        &["-bn2", "-d.1", "-p", &one, "-p", &other],
        &[
            "--batch",
            "--count",
            "2",
            "--interval",
            "0.1",
            "--pid",
            &both,
        ],
    ] {
        let tables = tables(options);
        assert_eq!(tables.len(), 2, "{options:?}: {tables:?}");
        for table in tables {
            assert!(table.starts_with("fastproc top "), "{table}");
            let rows = table
                .lines()
                .skip_while(|line| !line.trim_start().starts_with("PID "));
            let rows: Vec<_> = rows.skip(1).collect();
            assert_eq!(rows.len(), 2, "{table}");
            assert!(
                rows.iter().all(|row| row.ends_with("sleep 4343")),
                "{table}"
            );
        }
    }
    // As with --once.
    assert_eq!(tables(&["--once", "-d", "0.1", "-p", &one]).len(), 1);
}

#[test]
fn tables_without_a_row_end_as_those_of_ps() {
    for output in [&["--once"][..], &["--once", "--json"], &["-b", "-n1"]] {
        for (filter, status) in [("pid == 0", 1), ("pid > 0", 0)] {
            let options = ["-d0.1", "--source=procfs", "--filter", filter];
            let ended = top(&[output, &options].concat());
            assert_eq!(ended.status.code(), Some(status), "{output:?} {filter}");
        }
    }
    // Groups are rows, too.
    let folder = fastproc_testbed::Folder::new("top-groups");
    let settings = folder.join("top.toml");
    std::fs::write(&settings, "group = \"user\"\n").expect("the file is written");
    for (filter, status) in [("pid == 0", 1), ("pid > 0", 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastproc"));
        command
            .args("top --once -d0.1 --source=procfs --filter".split(' '))
            .arg(filter);
        let output = command.arg("--settings").arg(&settings).output();
        let code = output.expect("the program starts").status.code();
        assert_eq!(code, Some(status), "{filter}");
    }
    let without = top(&["-bn1", "-d0.1", "--settings", "/proc/nowhere/top.toml"]);
    let says = String::from_utf8_lossy(&without.stderr);
    assert!(
        says.contains("there is no /proc/nowhere/top.toml"),
        "{says}"
    );
}

#[test]
fn a_user_is_chosen_by_name_or_number_and_a_filter_chooses_among_his() {
    let sleeper = Running::sleep("4343");
    let pid = sleeper.id().to_string();
    let own = rustix::process::geteuid().as_raw().to_string();
    let filter = format!("pid == {pid}");
    let of = |user| ["-b", "-n1", "-d0.1", "-u", user, "--filter", &filter];
    let tables = tables(&of(&own));
    let rows = tables[0]
        .lines()
        .filter(|line| line.ends_with("sleep 4343"));
    assert_eq!(rows.count(), 1);
    // No row.
    let others = top(&[&of("54321")[..], &["--source", "procfs"]].concat());
    assert_eq!(others.status.code(), Some(1));
    let refused = top(&["-b", "-n1", "-u", "no-such-user"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("there is no user 'no-such-user'"), "{text}");
    // As in top(1).
    assert_eq!(top(&["-u", "root", "-p", &pid]).status.code(), Some(2));
}

#[test]
fn the_tables_of_a_history_end_with_it() {
    let history = made_up("batch", 4, 3);
    let output = top(&[
        "-b",
        "--history",
        history.path(),
        "--at",
        "2026-03-01 09:30:01",
    ]);
    let text = String::from_utf8(output.stdout).expect("text");
    let times: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("fastproc top 2026-03-01 "))
        .map(|line| &line[..8])
        .collect();
    assert_eq!(times, ["09:30:01", "09:30:02", "09:30:03"], "{text}");
}

#[test]
fn the_command_alone_is_top_on_a_terminal_and_the_short_help_elsewhere() {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_fastproc")]);
    command.env("XDG_CONFIG_HOME", "/proc/nowhere");
    Terminal::run(24, 80, command).until_shown("Quit");
    assert!(!common::output(&[]).contains("Examples:"));
}

/// This program's name begins with "all-".
#[test]
fn a_text_selects_processes_and_is_highlighted() {
    let own = format!("pid == {}", std::process::id());
    let options = ["--source=procfs", "-o=pid,comm", "--filter", &own, "ALL-"];
    let mut top = Terminal::top(24, 100, &options);
    let text = top.until_shown("all-");
    let mut lines = text.lines().zip(0..);
    let (at, line) = lines
        .find_map(|(text, line)| Some((text.find("all-")?, line)))
        .expect("it is shown");
    let colour = |at: usize| {
        let cell = top.screen().cell(line, at as u16);
        cell.expect("it is on the screen").fgcolor()
    };
    assert_eq!(colour(at), colour(at + 3));
    assert_ne!(colour(at), colour(at + 4), "{text}");
}
