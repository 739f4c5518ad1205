//! Processes start and exit while top draws, and the terminal changes its size.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use fastproc_testbed::{alone, gate};

use super::terminal::Terminal;

/// Starts families of short-lived processes until it is dropped.
struct Storm {
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Storm {
    fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let threads = (0..2).map(|_| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    let mut shell = Command::new("sh");
                    shell.args(["-c", "for i in 1 2 3 4 5 6 7 8; do (:) & done; wait"]);
                    assert!(shell.status().expect("there is a shell").success());
                }
            })
        });
        Self {
            threads: threads.collect(),
            ends,
        }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The number of ways to group. One more key shows processes again.
const GROUPINGS: usize = 10;

/// With every arrangement of rows, each of which keeps its own order while rows come and go.
#[test]
fn the_screen_stays_whole_while_processes_come_and_go() {
    let _alone = alone();
    let _storm = Storm::start();
    let by_bpf = gate::bpf().then_some("bpf");
    for source in by_bpf.into_iter().chain(["procfs"]) {
        let arguments = ["--source", source, "--interval", "0.02"];
        let mut top = Terminal::top(24, 80, &arguments);
        top.until_shown("F10Quit");
        // The tree, threads, groups, idle processes; the last row, marks, and details of a process.
        let groupings = std::iter::repeat_n("g", GROUPINGS + 1);
        let others = ["G", " ", "i", "\r", "\x1b"];
        for keys in ["t", "H", "H"].into_iter().chain(groupings).chain(others) {
            top.press(keys);
            for (lines, columns) in [(12, 50), (100, 300), (5, 9), (24, 80)] {
                top.resize(lines, columns);
                top.take(std::time::Duration::from_millis(30));
            }
        }
        top.resize(30, 100);
        let is_whole = |text: &str| {
            let lines: Vec<_> = text.lines().collect();
            lines.len() == 30
                && lines[0].starts_with("fastproc top")
                && lines[29].starts_with("F1Help")
                && lines
                    .iter()
                    .any(|line| line.trim_start().starts_with("PID "))
        };
        top.until("a whole screen", is_whole);
        if source == "bpf" {
            let is_row = |line: &str| line.contains(" X ");
            top.press("UG\x1b[H");
            top.until("processes that exited, and no row of one", |text| {
                let exited = text.lines().nth(1).and_then(|line| line.split_once("; "));
                exited.is_some_and(|(_, exited)| !exited.starts_with("0 exited"))
                    && !text.lines().any(is_row)
            });
            top.press("x");
            top.until("their rows", |text| text.lines().any(is_row));
        }
        top.press("q");
        assert_eq!(top.wait().code(), Some(0), "{source}");
        assert!(top.is_given_back());
    }
}
