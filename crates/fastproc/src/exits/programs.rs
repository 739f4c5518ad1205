//! What the processes run that may end before anyone could ask them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{Exec, Exit};
use crate::Cmdline;

/// Events of two CPUs may come in another order than they happened: a child's exit after its parent's.
const LATEST: Duration = Duration::from_secs(10);

/// The command lines of processes that executed a program while execs were recorded, until a while after they have ended.
///
/// A snapshot of a collector that was asked for them has them
/// ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)); this is for who reads events.
#[derive(Debug, Default)]
pub struct Programs {
    running: HashMap<u32, Program>,
    cleaned: Option<Instant>,
}

#[derive(Debug)]
struct Program {
    start_ns: u64,
    line: Box<[u8]>,
    cut: bool,
    gone: Option<Instant>,
}

impl Programs {
    /// A process runs another program.
    pub fn begins(&mut self, exec: &Exec<'_>) {
        let line = exec.cmdline.map_or(&[][..], |line| line.bytes);
        let program = Program {
            start_ns: exec.start_ns,
            line: line.into(),
            cut: exec.cmdline.is_some_and(|line| line.cut),
            gone: None,
        };
        self.running.insert(exec.pid, program);
    }

    /// What a process ran that has ended: its own program, or its parent's that it was forked from.
    pub fn of(&mut self, exit: &Exit) -> Option<Cmdline<'_>> {
        self.forget();
        let own = self.running.get_mut(&exit.pid);
        let pid = match own.filter(|own| own.start_ns == exit.start_ns) {
            Some(own) => {
                own.gone = Some(Instant::now());
                exit.pid
            }
            None => exit.ppid?,
        };
        let program = self.running.get(&pid)?;
        let is_it = program.start_ns <= exit.start_ns && !program.line.is_empty();
        is_it.then_some(Cmdline {
            bytes: &program.line,
            cut: program.cut,
        })
    }

    fn forget(&mut self) {
        if self.cleaned.is_some_and(|at| at.elapsed() < LATEST) {
            return;
        }
        self.cleaned = Some(Instant::now());
        self.running
            .retain(|_, program| program.gone.is_none_or(|at| at.elapsed() < LATEST));
    }
}
