//! Actions apply to the processes that were under the cursor when the key was pressed.

use std::{os::unix::process::ExitStatusExt, process::Command, time::Duration};

use fastproc_testbed::{Running, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use super::terminal::Terminal;

/// Two processes; the one with the higher nice value is on the first row.
struct Pair {
    first: Running,
    second: Running,
    /// Their command lines.
    names: [String; 2],
}

impl Pair {
    fn start(number: u32) -> Self {
        let names = [0, 1].map(|place| format!("sleep {number}{place}"));
        let start = |name: &String, nice: &str| {
            let seconds = name.trim_start_matches("sleep ");
            let mut command = Command::new("nice");
            Running::start(command.args(["-n", nice, "sleep", seconds]))
        };
        Self {
            first: start(&names[0], "10"),
            second: start(&names[1], "0"),
            names,
        }
    }

    /// Shows only these two. Dialogs over the table are to the left of the command lines.
    fn top(&self) -> Terminal {
        let filter = format!(
            "comm == sleep && (pid == {} || pid == {})",
            self.first.id(),
            self.second.id()
        );
        let columns =
            "-o=user,user,user,user,user,user,user,user,user,user,user,user,pid,ni,cmdline";
        let mut arguments = vec!["--source=procfs", "--interval=0.1", "--sort=-ni", columns];
        arguments.extend(["--filter", &filter]);
        let mut top = Terminal::top(24, 120, &arguments);
        self.until_first(&mut top, 0);
        top
    }

    fn pid(&self, which: usize) -> u32 {
        [&self.first, &self.second][which].id()
    }

    /// Which of the two comes first, if both are shown.
    fn first_of(&self, text: &str) -> Option<usize> {
        let line = |name: &String| text.lines().position(|line| line.ends_with(name));
        let [first, second] = [0, 1].map(|at| line(&self.names[at]));
        Some(usize::from(second? < first?))
    }

    /// Waits until one of the two comes first.
    fn until_first(&self, top: &mut Terminal, which: usize) {
        top.until(&format!("{} on the first row", self.names[which]), |text| {
            self.first_of(text) == Some(which)
        });
    }

    fn set_nice(&self, which: usize, nice: i32) {
        let (nice, pid) = (nice.to_string(), self.pid(which).to_string());
        let done = Command::new("renice")
            .args(["-n", &nice, "-p", &pid])
            .output();
        assert!(done.expect("there is renice").status.success());
    }

    /// Moves the second to the first row, under the cursor.
    fn swap(&self, top: &mut Terminal) {
        self.set_nice(1, 19);
        self.until_first(top, 1);
    }

    fn question(&self) -> String {
        format!("{} \"{}\" of ", self.first.id(), self.names[0])
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
    top.until_shown("changed 1 process");
    let status = pair.first.wait().expect("our child");
    assert_eq!(status.signal(), Some(15));
    assert!(pair.second.try_wait().expect("our child").is_none());
}

#[test]
fn a_process_that_exited_gets_no_signal_prompt() {
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

/// The pid of a screen of details.
fn in_detail(screen: &str) -> Option<u32> {
    let (pid, _) = screen.strip_prefix("Process ")?.split_once(':')?;
    pid.parse().ok()
}

/// Keys without a question apply to the screen on which they were pressed, even if the next refresh has another order.
#[test]
fn keys_act_on_the_row_that_was_shown() {
    let pair = Pair::start(5105);
    let mut top = pair.top();
    let pid = Pid::from_raw(top.pid() as i32).expect("a pid");
    for (key, places) in [("\r", [0, 1]), ("l", [1, 0]), ("e", [0, 1])] {
        pair.until_first(&mut top, places[0]);
        // While it is stopped it cannot refresh.
        kill_process(pid, Signal::STOP).expect("the signal is sent");
        wait_until("it stands still", || {
            top.take(Duration::from_millis(20));
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            stat.is_ok_and(|stat| stat.contains(") T "))
        });
        while top.take(Duration::ZERO) {}
        assert_eq!(pair.first_of(&top.text()), Some(places[0]));
        pair.set_nice(places[1], 19);
        pair.set_nice(places[0], 0);
        top.press(key);
        kill_process(pid, Signal::CONT).expect("the signal is sent");
        let text = top.until("somebody in detail", |text| in_detail(text).is_some());
        assert_eq!(in_detail(&text), Some(pair.pid(places[0])), "{key}");
        top.press("\x1b");
        pair.until_first(&mut top, places[1]);
    }
}

/// Without the markers of a bracketed paste, text looks like keys. It must not change a process.
#[test]
fn pasted_text_ends_no_process() {
    let mut pair = Pair::start(5104);
    let mut top = pair.top();
    top.press("k\ry");
    top.until_shown("faster than a person types");
    top.press("\x1b");
    top.until_shown("F10Quit");
    for child in [&mut pair.first, &mut pair.second] {
        assert!(child.try_wait().expect("our child").is_none());
    }
}

/// A stalled connection delivers several keys at once.
#[test]
fn keys_that_come_together_move_and_leave() {
    for keys in ["q", "qqq", "jjGq", "\x1b[B\x1b[Bq", "G\x03"] {
        let pair = Pair::start(5108);
        let mut top = pair.top();
        top.press(keys);
        assert_eq!(top.wait().code(), Some(0), "{keys:?}");
    }
    let pair = Pair::start(5109);
    let mut top = pair.top();
    // The second row, and a key that asks, pressed again and accepted.
    top.press("\x1b[B\x1b[Bk");
    top.until_shown("faster than a person types");
    // The message stays no longer than this.
    top.until_shown("F10Quit");
    top.press("k");
    top.until_shown("15 SIGTERM");
    top.press("\r");
    let text = top.until_shown("(y/n)");
    let question = format!("SIGTERM to {} \"{}\" of ", pair.pid(1), pair.names[1]);
    assert!(text.contains(&question), "{text}");
}
