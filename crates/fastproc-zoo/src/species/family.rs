//! Threads and relatives: many threads, orphans, processes that share memory or signal handlers without being threads.

use std::thread;

use rustix::process::{WaitOptions, set_parent_process_death_signal, waitpid};

use super::{Species, single};
use crate::{
    expect::Expect::{Comm, Stat, StatAtLeast, State, Status},
    nest::{At, Grown, Nest, Trouble, idle},
    sys::{self, Action},
};

pub const SPECIES: &[Species] = &[
    single!(
        "threads-8",
        [State('S'), Status("Threads", "8"), Stat(20, 8)],
        |nest| threads(nest, "threads-8", 8)
    ),
    single!(
        "threads-100",
        [State('S'), Status("Threads", "100")],
        |nest| threads(nest, "threads-100", 100)
    ),
    // Its faults and times come from a thread that has ended; threads that live have names and policies of their own.
    single!(
        "threads-mixed",
        [
            Status("Threads", "3"),
            Comm(b"leader"),
            StatAtLeast(10, 200)
        ],
        |nest| {
            rustix::thread::set_name(c"leader").at("PR_SET_NAME")?;
            let gone = thread::Builder::new()
                .spawn(|| super::memory::touched(1 << 20, rustix::mm::MapFlags::PRIVATE).map(drop));
            gone.at("pthread_create")?
                .join()
                .map_err(|_| Trouble::broken("a thread panicked"))??;
            thread::Builder::new()
                .name("one ) R".into())
                .spawn(|| idle())
                .at("pthread_create")?;
            let batch = thread::Builder::new().spawn(|| {
                sys::set_sched(sys::Sched {
                    policy: libc::SCHED_BATCH as u32,
                    nice: 7,
                    ..sys::Sched::default()
                })
                .is_ok()
                .then(|| idle())
            });
            batch.at("pthread_create")?;
            nest.settle("threads-mixed")
        }
    ),
    // Its parent has ended; the keeper, a subreaper, is the parent now.
    single!("orphan", [State('S')], orphan),
    Species {
        animals: &[
            ("clone-vm", &[State('S'), Status("Threads", "1")]),
            ("clone-vm-child", &[State('S'), Status("Threads", "1")]),
        ],
        raise: |nest| {
            nest.clone_sharing(libc::CLONE_VM, |nest| nest.settle("clone-vm-child"))?;
            nest.settle("clone-vm")
        },
    },
    // The child's handler is the parent's too: the one who sets it is not the one who shares it.
    Species {
        animals: &[
            ("clone-sighand", &[Status("Threads", "1"), CAUGHT]),
            ("clone-sighand-child", &[Status("Threads", "1"), CAUGHT]),
        ],
        raise: |nest| {
            let shared = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_FILES | libc::CLONE_FS;
            sys::reset_signal(libc::SIGUSR1).at("rt_sigaction")?;
            nest.clone_sharing(shared, |nest| {
                sys::on_signal(libc::SIGUSR1, Action::Catch).at("sigaction")?;
                nest.settle("clone-sighand-child")
            })?;
            nest.settle("clone-sighand")
        },
    },
];

const CAUGHT: crate::expect::Expect = Status("SigCgt", "0000000000000200");

fn threads(nest: &Nest, label: &str, count: usize) -> Grown {
    for _ in 1..count {
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(|| idle())
            .at("pthread_create")?;
    }
    nest.settle(label)
}

fn orphan(nest: &Nest) -> Grown {
    let parent = nest.fork(|nest| {
        let (from_child, to_parent) = rustix::pipe::pipe().at("pipe")?;
        nest.fork(|nest| {
            set_parent_process_death_signal(None).at("PR_SET_PDEATHSIG")?;
            rustix::io::write(&to_parent, b"!").at("write")?;
            nest.adopted()?.settle("orphan")
        })?;
        rustix::io::read(&from_child, &mut [0; 1]).at("read")?;
        sys::exit_now(0)
    })?;
    waitpid(Some(parent), WaitOptions::empty()).at("waitpid")?;
    idle()
}
