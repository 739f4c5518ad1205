//! Whether a process is idle. What was read of it stays valid while it is.

use fastproc::Process;

/// Numbers that stay the same while a process is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    /// Every run ends in a switch that is counted before the process leaves the CPU, and the walk checks that first.
    switches: u64,
    /// A thread that executes a program takes the leader's place, and has switches of its own; the run time includes
    /// both.
    run_ns: u64,
}

impl Idle {
    /// `None`: the process runs, is traced, or shares its memory. It may be changing.
    pub(crate) fn from_process(process: Process<'_>) -> Option<Self> {
        let (identity, cpu) = (process.identity(), process.cpu()?);
        let is_alone = identity.num_threads == 1 && process.memory()?.mm_users() == Some(1);
        let rests = identity.on_cpu() == Some(0) && identity.tracer_pid == 0;
        let run_ns = cpu.sum_exec_ns()?;
        (is_alone && rests).then(|| Self {
            switches: cpu.nvcsw.wrapping_add(cpu.nivcsw),
            run_ns,
        })
    }
}
