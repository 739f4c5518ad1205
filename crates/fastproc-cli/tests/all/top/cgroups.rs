//! Its screen of cgroups. What needs controllers on version 2 is tested with made-up files, in `fastproc-top`.

use fastproc_testbed::{Cgroup, gate, needs};

use super::terminal::Terminal;

#[test]
fn cgroups_are_shown_and_one_of_them_with_its_processes() {
    needs!(gate::root());
    let Some(cgroup) = Cgroup::new("outer/inner") else {
        gate::skipped("there is no default hierarchy here");
        return;
    };
    let mut member = cgroup.command("exec sleep 4244");
    let mut member = member.spawn().expect("there is sh");
    let path = cgroup.path();
    let own = path.split('/').nth(1).expect("three folders");
    let mut top = Terminal::top(40, 140, &["--interval", "0.1"]);
    top.until_shown("F9Kill");
    top.press("v");
    top.until_shown("vProcesses");
    top.press("\\");
    top.until_shown("Filter: ");
    top.press(&format!("path =~ {own}"));
    top.until_shown(&format!("path =~ {own}"));
    top.press("\r");
    top.until_shown("3 cgroups");
    let is_first = |name: &str| {
        let name = name.to_owned();
        move |text: &str| {
            let mut lines = text.lines().skip_while(|line| !line.contains("PROCS"));
            lines
                .nth(1)
                .is_some_and(|line| line.contains(" 1 ") && line.ends_with(&name))
        }
    };
    top.press("t");
    top.press("N");
    top.until("a tree with the process", is_first(&format!(" /{own}")));
    top.press("I");
    top.press("t");
    top.until("the last path first", is_first(&path));
    top.press("\r");
    let title = format!("Cgroup {path}");
    top.until("its history", |text| {
        let mut lines = text.lines();
        lines.next() == Some(&title)
            && lines.any(|line| line.starts_with("CPU ") && line.contains("0.0"))
    });
    top.press("\t");
    top.until_shown("sleep 4244");
    top.press("\x1b");
    top.until_shown("vProcesses");
    top.press("v");
    top.until_shown("F9Kill");
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
    member.kill().expect("it is our child");
    member.wait().expect("it is our child");
}

#[test]
fn a_table_of_cgroups_can_be_written_as_text() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fastproc"));
    command.args(["top", "--once", "--cgroups", "--tree", "--interval=0.1"]);
    command.args(["--source=procfs", "--settings=/proc/nowhere/top.toml"]);
    let output = command
        .env("COLUMNS", "160")
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("is not mounted here"), "{error}");
        gate::skipped("there is no default hierarchy here");
        return;
    }
    let heading = text.lines().position(|line| line.ends_with("PATH"));
    let heading = heading.expect("a heading");
    assert!(
        text.lines()
            .nth(heading + 1)
            .is_some_and(|line| line.ends_with(" /")),
        "{text}"
    );
    assert!(text.contains(" cgroup"), "{text}");
    let first = text.lines().next().expect("a title");
    assert!(first.contains("; files every 0.1 s"), "{first}");
}
