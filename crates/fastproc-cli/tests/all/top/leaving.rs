//! However top ends, the terminal is restored.

use std::{os::unix::process::ExitStatusExt, time::Duration};

use fastproc_testbed::{name_of, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use super::terminal::Terminal;

fn started() -> Terminal {
    let mut top = Terminal::top(24, 80, &["--interval", "0.2", "--source", "procfs"]);
    top.until_shown("F10Quit");
    assert!(top.screen().alternate_screen() && top.screen().hide_cursor());
    assert!(!top.is_given_back());
    top
}

fn send(top: &Terminal, signal: Signal) {
    let pid = Pid::from_raw(top.pid() as i32).expect("a pid");
    kill_process(pid, signal).expect("the signal is sent");
}

#[test]
fn by_a_key() {
    for key in ["q", "\x03", "\x1b[21~"] {
        let mut top = started();
        top.press(key);
        assert_eq!(top.wait().code(), Some(0), "{key:?}");
        assert!(top.is_given_back(), "{key:?}");
    }
}

#[test]
fn by_a_signal() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut top = started();
        send(&top, signal);
        let status = top.wait();
        // setsid(1) reports a signal only as a number.
        let told = status.signal().or(status.code().map(|code| code & 0x7f));
        assert_eq!(told, Some(signal.as_raw()), "{signal:?}: {status:?}");
        assert!(top.is_given_back(), "{signal:?}");
    }
}

#[test]
fn by_a_signal_though_nobody_reads_the_terminal() {
    let mut top = started();
    let path = format!("/proc/{}/syscall", top.pid());
    let writes = || {
        let call = std::fs::read_to_string(&path).expect("/proc shows the process");
        call.starts_with("1 0x1 ").then_some(call)
    };
    let mut before = None;
    wait_until("it waits for a reader", || {
        let now = writes();
        if now.is_none() {
            // Draw the whole screen again.
            top.press("\x0c");
        }
        std::thread::sleep(Duration::from_millis(20));
        let is_stuck = now.is_some() && now == before;
        before = now;
        is_stuck
    });
    send(&top, Signal::TERM);
    let status = top.wait_unread();
    let told = status.signal().or(status.code().map(|code| code & 0x7f));
    assert_eq!(told, Some(Signal::TERM.as_raw()), "{status:?}");
    assert!(top.has_its_modes());
}

#[test]
fn when_its_terminal_is_gone() {
    for keys in ["", "p", "/x"] {
        let mut top = started();
        top.press(keys);
        while top.take(Duration::from_millis(50)) {}
        top.hang_up();
        let status = top.wait();
        let told = status.signal().or(status.code().map(|code| code & 0x7f));
        assert_eq!(told, Some(Signal::HUP.as_raw()), "{keys:?}: {status:?}");
    }
}

#[test]
fn by_its_own_end() {
    let arguments = ["--interval", "0.05", "--source", "procfs", "--count", "2"];
    let mut top = Terminal::top(24, 80, &arguments);
    assert_eq!(top.wait().code(), Some(0));
    assert!(top.is_given_back());
}

#[test]
fn for_a_while() {
    for by_key in [true, false] {
        let mut top = started();
        if by_key {
            top.press("\x1a");
        } else {
            send(&top, Signal::TSTP);
        }
        let is_stopped = |top: &Terminal| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", top.pid()));
            stat.is_ok_and(|stat| stat.contains(") T "))
        };
        wait_until("it is stopped", || {
            top.take(Duration::from_millis(20));
            is_stopped(&top)
        });
        while top.take(Duration::ZERO) {}
        assert!(top.is_given_back(), "by a key: {by_key}");
        send(&top, Signal::CONT);
        top.until("taken over again", |text| text.contains("F10Quit"));
        assert!(top.screen().alternate_screen());
        top.press("q");
        assert_eq!(top.wait().code(), Some(0));
        assert!(top.is_given_back());
    }
}

/// A panic, in a separate process and terminal.
#[test]
#[ignore = "by_a_panic runs it"]
fn panics() {
    let _terminal = fastproc_top::Terminal::open().expect("there is one");
    panic!("on purpose");
}

#[test]
fn by_a_panic() {
    let own = std::env::current_exe().expect("/proc shows this program");
    let mut command = std::process::Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(own);
    command.args(["--exact", name_of(panics), "--ignored", "--nocapture"]);
    command.env("RUST_BACKTRACE", "0");
    let mut test = Terminal::run(50, 120, command);
    assert_eq!(test.wait().code(), Some(101));
    assert!(test.is_given_back());
    // Its message is not lost with the alternate screen.
    assert!(test.text().contains("on purpose"), "{}", test.text());
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_fastproc"))
        .args("top --settings /proc/nowhere/top.toml --source procfs".split(' '))
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--once"), "{error}");
}
