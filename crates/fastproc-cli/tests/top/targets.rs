//! What is done to processes is done to those that were under the cursor when the key was pressed.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Child, Command},
};

use super::terminal::Terminal;

/// Two processes, of which the one that is nicer is on the first row.
struct Pair {
    first: Child,
    second: Child,
    /// Their command lines.
    names: [String; 2],
}

impl Pair {
    fn start(number: u32) -> Self {
        let names = [0, 1].map(|place| format!("sleep {number}{place}"));
        let start = |name: &String, nice: &str| {
            let seconds = name.trim_start_matches("sleep ");
            let mut command = Command::new("nice");
            command.args(["-n", nice, "sleep", seconds]);
            command.spawn().expect("there is nice")
        };
        Self {
            first: start(&names[0], "10"),
            second: start(&names[1], "0"),
            names,
        }
    }

    /// Shows the two, and nobody else. What lies over the table is to the left of the command lines.
    fn top(&self) -> Terminal {
        let filter = format!(
            "comm == sleep && (pid == {} || pid == {})",
            self.first.id(),
            self.second.id()
        );
        let columns = "-o=user,user,user,user,user,user,pid,ni,cmdline";
        let mut arguments = vec!["--source=procfs", "--interval=0.1", "--sort=-ni", columns];
        arguments.extend(["--filter", &filter]);
        let mut top = Terminal::top(24, 120, &arguments);
        self.until_first(&mut top, 0);
        top
    }

    /// Waits until one of the two is the first of both.
    fn until_first(&self, top: &mut Terminal, which: usize) {
        let line = |text: &str, name: &String| text.lines().position(|line| line.contains(name));
        top.until(&format!("{} on the first row", self.names[which]), |text| {
            let lines = [0, 1].map(|at| line(text, &self.names[at]));
            matches!((lines[which], lines[1 - which]), (Some(this), Some(other)) if this < other)
        });
    }

    /// Has the second take the first row, under the cursor.
    fn swap(&self, top: &mut Terminal) {
        let pid = self.second.id().to_string();
        let done = Command::new("renice")
            .args(["-n", "19", "-p", &pid])
            .output();
        assert!(done.expect("there is renice").status.success());
        self.until_first(top, 1);
    }

    fn question(&self) -> String {
        format!("{} \"{}\" of ", self.first.id(), self.names[0])
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in [&mut self.first, &mut self.second] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_signal_goes_to_whom_the_key_meant_though_the_table_moves() {
    let mut pair = Pair::start(5101);
    let mut top = pair.top();
    top.press("k");
    top.until_shown("15 SIGTERM");
    pair.swap(&mut top);
    top.press("\r");
    let text = top.until_shown("(y/n)");
    let question = format!("SIGTERM to {}", pair.question());
    assert!(text.contains(&question), "{text}");
    top.press("y");
    top.until_shown("done to 1 process");
    let status = pair.first.wait().expect("our child");
    assert_eq!(status.signal(), Some(15));
    assert!(pair.second.try_wait().expect("our child").is_none());
}

#[test]
fn a_nice_value_is_for_whom_the_key_meant_though_the_table_moves() {
    let pair = Pair::start(5102);
    let mut top = pair.top();
    top.press("r");
    top.until_shown("Nice value (-20 to 19): ");
    pair.swap(&mut top);
    top.press("7");
    top.until_shown("Nice value (-20 to 19): 7");
    top.press("\r");
    let text = top.until_shown("(y/n)");
    let question = format!("Set the nice value 7 of {}", pair.question());
    assert!(text.contains(&question), "{text}");
    top.press("y");
    let row = format!("{} {:>2} {}", pair.first.id(), 7, pair.names[0]);
    top.until_shown(&row);
}

#[test]
fn who_has_ended_meanwhile_is_not_asked_about() {
    let mut pair = Pair::start(5103);
    let mut top = pair.top();
    top.press("k");
    top.until_shown("15 SIGTERM");
    pair.first.kill().expect("our child");
    pair.first.wait().expect("our child");
    top.press("\r");
    let text = top.until_shown(" has ended");
    assert!(text.contains(&pair.question()), "{text}");
    assert!(pair.second.try_wait().expect("our child").is_none());
}

/// Without the marks of a bracketed paste, text looks like keys. Nothing comes of it that changes a process.
#[test]
fn pasted_text_ends_no_process() {
    let mut pair = Pair::start(5104);
    let mut top = pair.top();
    top.press("k\ry");
    top.until_shown("faster than keys are typed");
    top.press("\x1b");
    top.until_shown("F10Quit");
    for child in [&mut pair.first, &mut pair.second] {
        assert!(child.try_wait().expect("our child").is_none());
    }
}
