//! Processes most of which rest, while some start, run, execute programs, exit, and reuse a pid.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use crate::{Reborn, Running, Sleepers};

/// A process that runs at each line that it receives. At the line "exec" it executes another program, at "user" it also
/// becomes another user.
#[derive(Debug)]
struct Poked(Running);

impl Poked {
    fn start() -> Self {
        let script = "while read line; do case $line in
            exec) exec sleep 600;;
            user) exec setpriv --reuid 7777 sleep 600;;
        esac; done";
        let mut shell = Command::new("sh");
        Self(Running::start(
            shell.args(["-c", script]).stdin(Stdio::piped()),
        ))
    }

    fn poke(&mut self, line: &str) {
        // sleep(1) reads nothing.
        let input = self.0.stdin.as_mut();
        let _ = writeln!(input.expect("it is piped"), "{line}");
    }
}

/// The processes. They end when this is dropped.
#[derive(Debug)]
pub struct Moving {
    sleepers: Sleepers,
    poked: Vec<Poked>,
    reborn: Option<Reborn>,
}

impl Moving {
    /// Starts thirty of them.
    ///
    /// # Panics
    /// If sleep(1) or a shell cannot be run.
    pub fn start() -> Self {
        Self {
            sleepers: Sleepers::start(20),
            poked: (0..10).map(|_| Poked::start()).collect(),
            reborn: None,
        }
    }

    /// Makes something happen, another thing in each of six rounds.
    ///
    /// # Panics
    /// If a program cannot be run, or this process is not of root, who alone may choose pids.
    pub fn step(&mut self, round: usize) {
        let count = self.poked.len();
        match round % 6 {
            0 => self.sleepers.0.extend(Sleepers::start(2).into_children()),
            1 | 2 => self.poked[round % count].poke("run"),
            3 => {
                let mut ended = self.sleepers.0.remove(round % self.sleepers.0.len());
                ended.kill().expect("it sleeps");
                ended.wait().expect("it was killed");
                let start = |pid| Reborn::start(pid, Path::new("/bin/sleep"), &["600"]);
                self.reborn = start(ended.id()).expect("root chooses pids");
            }
            4 if round % 12 == 4 => self.poked[round % count].poke("exec"),
            4 => self.poked[round % count].poke("user"),
            _ => self.poked[round % count] = Poked::start(),
        }
    }
}
