//! Whether a process rests: what was read of it then holds as long as it does.

use fastproc::Process;

/// What is the same while a process rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Every run ends in a switch that is counted before it is on no CPU any more, and the walk looks at that first.
    switches: u64,
    /// A thread that executes a program takes the leader's place, with switches of its own; the run time is of both.
    run_ns: u64,
}

impl Rest {
    /// `None`: the process runs, or somebody else uses its memory. It may be changing.
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
