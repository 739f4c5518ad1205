//! The command lines of processes that may exit before they could be read.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::Exec;
use crate::snapshot::{cmdline::Cmdline, exit::Exit};

/// Events of two CPUs may arrive out of order: a child's exit after its parent's.
const LATEST: Duration = Duration::from_secs(10);

/// The most processes, and bytes of command lines, that are remembered. A lost exit leaves its process here, so
/// without a bound a flood of exits could fill the memory. Beyond it, the half that started first is forgotten.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 16 << 20;

/// The command lines of processes that executed a program while execs were recorded, until shortly after their exit.
///
/// For callers that read events. A collector that collects command lines has them in its snapshots
/// ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)).
#[derive(Debug, Default)]
pub struct Programs {
    running: HashMap<u32, Program>,
    /// Bytes of all command lines.
    bytes: usize,
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
    /// Records that a process executes another program.
    pub fn begins(&mut self, exec: &Exec<'_>) {
        let line = exec.cmdline.map_or(&[][..], |line| line.bytes);
        let program = Program {
            start_ns: exec.start_ns,
            line: line.into(),
            cut: exec.cmdline.is_some_and(|line| line.cut),
            gone: None,
        };
        self.bytes += program.line.len();
        if let Some(before) = self.running.insert(exec.pid, program) {
            self.bytes -= before.line.len();
        }
        if self.running.len() > MOST || self.bytes > MOST_BYTES {
            self.forget_half();
        }
    }

    /// The command line of an exited process: of its own program, or, if it was only forked, of its parent's.
    pub fn cmdline(&mut self, exit: &Exit) -> Option<Cmdline<'_>> {
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
        self.retain(|program| program.gone.is_none_or(|at| at.elapsed() < LATEST));
    }

    fn forget_half(&mut self) {
        let mut starts: Vec<u64> = self.running.values().map(|one| one.start_ns).collect();
        let middle = starts.len() / 2;
        let (_, &mut median, _) = starts.select_nth_unstable(middle);
        self.retain(|program| program.start_ns > median);
    }

    fn retain(&mut self, keep: impl Fn(&Program) -> bool) {
        let bytes = &mut self.bytes;
        self.running.retain(|_, program| {
            let keeps = keep(program);
            if !keeps {
                *bytes -= program.line.len();
            }
            keeps
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_whose_exit_was_lost_do_not_fill_memory() {
        let mut programs = Programs::default();
        let line = vec![b'x'; 1024];
        for pid in 1..=40_000_u32 {
            programs.begins(&Exec {
                pid,
                ppid: 1,
                start_ns: pid.into(),
                at_ns: pid.into(),
                uid: 0,
                euid: 0,
                flags: 0,
                cgroup_id: 0,
                comm: &[],
                path: &[],
                cmdline: Some(Cmdline {
                    bytes: &line,
                    cut: false,
                }),
            });
            assert!(programs.bytes <= MOST_BYTES && programs.running.len() <= MOST);
            assert!(programs.running.contains_key(&pid), "the newest is known");
        }
        let bytes: usize = programs.running.values().map(|one| one.line.len()).sum();
        assert_eq!(bytes, programs.bytes);
        programs.retain(|_| false);
        assert_eq!(programs.bytes, 0);
    }
}
