//! States: running, dead, stopped, traced, waiting for a vfork.

use std::{hint::black_box, thread};

use rustix::process::{Signal, WaitOptions, getpid, kill_process, waitpid};

use super::{Species, single};
use crate::{
    expect::Expect::{Stat, StatAtLeast, State, Status},
    nest::{At, Grown, Nest, Trouble, idle},
    sys::{self, Sched, Trace},
};

pub const SPECIES: &[Species] = &[
    single!(
        "idle",
        [State('S'), Status("Threads", "1"), Status("TracerPid", "0")],
        |nest| nest.settle("idle")
    ),
    // It takes only time that nobody else wants.
    single!(
        "running",
        [State('R'), Stat(41, libc::SCHED_IDLE as i64)],
        |nest| {
            sys::set_sched(Sched {
                policy: libc::SCHED_IDLE as u32,
                ..Sched::default()
            })
            .at("SCHED_IDLE")?;
            nest.announce("running")?;
            loop {
                black_box(());
            }
        }
    ),
    single!(
        "zombie",
        [State('Z'), Status("Threads", "1"), Stat(52, 7 << 8)],
        |nest| {
            nest.announce("zombie")?;
            sys::exit_now(7)
        }
    ),
    single!("zombie-killed", [State('Z'), Stat(52, 15)], |nest| {
        nest.announce("zombie-killed")?;
        kill_process(getpid(), Signal::TERM).at("kill")?;
        idle()
    }),
    // The leader is gone, its threads are not: the process is a zombie that runs.
    single!(
        "dead-leader",
        [State('Z'), Status("Threads", "4"), Stat(20, 4)],
        |nest| {
            nest.announce("dead-leader")?;
            for _ in 0..3 {
                thread::Builder::new()
                    .spawn(|| idle())
                    .at("pthread_create")?;
            }
            sys::exit_thread()
        }
    ),
    single!("stopped", [State('T')], |nest| {
        nest.announce("stopped")?;
        kill_process(getpid(), Signal::STOP).at("kill")?;
        idle()
    }),
    // All threads of a group stop.
    single!(
        "stopped-threads",
        [State('T'), Status("Threads", "3")],
        |nest| {
            for _ in 0..2 {
                thread::Builder::new()
                    .spawn(|| idle())
                    .at("pthread_create")?;
            }
            nest.announce("stopped-threads")?;
            kill_process(getpid(), Signal::STOP).at("kill")?;
            idle()
        }
    ),
    // By a sibling, as a debugger attaches.
    Species {
        animals: &[("tracer", &[State('S')]), ("traced", &[State('t')])],
        raise: seized,
    },
    // By the parent, as a debugger starts it. The zero: it has no other tracer.
    Species {
        animals: &[
            ("tracing-parent", &[State('S'), Status("TracerPid", "0")]),
            ("traced-child", &[State('t')]),
        ],
        raise: traced_child,
    },
    // The kernel's own uninterruptible sleep that can be had without a broken disk.
    Species {
        animals: &[
            ("vfork-parent", &[State('D'), Status("Threads", "1")]),
            ("vfork-child", &[State('S')]),
        ],
        raise: vforked,
    },
    // Children that are gone have left their times and faults with it.
    single!(
        "bereaved",
        [StatAtLeast(16, 1), StatAtLeast(11, 100)],
        |nest| {
            let child = nest.fork(|_| {
                touch(1 << 20)?;
                burn(4);
                sys::exit_now(0)
            })?;
            waitpid(Some(child), WaitOptions::empty()).at("waitpid")?;
            nest.settle("bereaved")
        }
    ),
    single!(
        "spent",
        [StatAtLeast(14, 2), StatAtLeast(10, 100)],
        |nest| {
            touch(1 << 20)?;
            burn(4);
            nest.settle("spent")
        }
    ),
];

fn seized(nest: &Nest) -> Grown {
    let (from_tracee, to_tracer) = rustix::pipe::pipe().at("pipe")?;
    let tracee = nest.fork(|nest| {
        // Where Yama restricts tracing to descendants; other kernels do not know it and need not.
        let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
        nest.announce("traced")?;
        rustix::io::write(&to_tracer, b"!").at("write")?;
        idle()
    })?;
    nest.fork(|nest| {
        rustix::io::read(&from_tracee, &mut [0; 1]).at("read")?;
        sys::trace(Trace::Seize(tracee)).at("PTRACE_SEIZE")?;
        sys::trace(Trace::Interrupt(tracee)).at("PTRACE_INTERRUPT")?;
        nest.settle("tracer")
    })?;
    idle()
}

fn traced_child(nest: &Nest) -> Grown {
    nest.fork(|nest| {
        sys::trace(Trace::Me).at("PTRACE_TRACEME")?;
        nest.announce("traced-child")?;
        kill_process(getpid(), Signal::STOP).at("kill")?;
        idle()
    })?;
    nest.settle("tracing-parent")
}

fn vforked(nest: &Nest) -> Grown {
    nest.announce("vfork-parent")?;
    nest.clone_sharing(libc::CLONE_VM | libc::CLONE_VFORK, |nest| {
        nest.settle("vfork-child")
    })?;
    Err(Trouble::broken("vfork returned"))
}

/// Uses the CPU for so many clock ticks.
fn burn(ticks: u64) {
    let limit = 1_000_000_000 / rustix::param::clock_ticks_per_second() * ticks;
    loop {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        if now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 >= limit {
            return;
        }
        for round in 0..10_000 {
            black_box(round);
        }
    }
}

/// Faults in fresh memory.
fn touch(len: usize) -> Result<(), Trouble> {
    super::memory::touched(len, rustix::mm::MapFlags::PRIVATE).map(drop)
}
