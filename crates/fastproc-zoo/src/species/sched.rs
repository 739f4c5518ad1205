//! How it is scheduled, and where.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{Species, single};
use crate::{
    expect::Expect::{Cpus, Stat},
    nest::{At, Grown, Nest, Trouble},
    sys::{self, Sched},
};

pub const SPECIES: &[Species] = &[
    single!("fifo", [Stat(41, 1), Stat(40, 42), Stat(18, -43)], |nest| {
        scheduled(
            nest,
            "fifo",
            Sched {
                policy: libc::SCHED_FIFO as u32,
                priority: 42,
                ..Sched::default()
            },
        )
    }),
    single!(
        "rr-highest",
        [Stat(41, 2), Stat(40, 99), Stat(18, -100)],
        |nest| {
            scheduled(
                nest,
                "rr-highest",
                Sched {
                    policy: libc::SCHED_RR as u32,
                    priority: 99,
                    ..Sched::default()
                },
            )
        }
    ),
    single!("batch", [Stat(41, 3), Stat(19, 5), Stat(18, 25)], |nest| {
        scheduled(
            nest,
            "batch",
            Sched {
                policy: libc::SCHED_BATCH as u32,
                nice: 5,
                ..Sched::default()
            },
        )
    }),
    single!("sched-idle", [Stat(41, 5), Stat(19, 0)], |nest| {
        scheduled(
            nest,
            "sched-idle",
            Sched {
                policy: libc::SCHED_IDLE as u32,
                ..Sched::default()
            },
        )
    }),
    // A thousandth of a CPU, so that it is admitted beside others.
    single!("deadline", [Stat(41, 6), Stat(18, -101)], |nest| {
        let sched = Sched {
            policy: libc::SCHED_DEADLINE as u32,
            runtime: 100_000,
            deadline: 100_000_000,
            period: 100_000_000,
            ..Sched::default()
        };
        scheduled(nest, "deadline", sched)
    }),
    single!("nice-19", [Stat(19, 19), Stat(18, 39)], |nest| nice(
        nest, "nice-19", 19
    )),
    single!("nice-minus-20", [Stat(19, -20), Stat(18, 0)], |nest| nice(
        nest,
        "nice-minus-20",
        -20
    )),
    single!("one-cpu", [Cpus(1)], |nest| {
        let allowed = sched_getaffinity(None).at("sched_getaffinity")?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
        let mut one = CpuSet::new();
        one.set(last.ok_or_else(|| Trouble::broken("no CPU is allowed"))?);
        sched_setaffinity(None, &one).at("sched_setaffinity")?;
        nest.settle("one-cpu")
    }),
];

fn scheduled(nest: &Nest, label: &str, sched: Sched) -> Grown {
    sys::set_sched(sched).at("sched_setattr")?;
    nest.settle(label)
}

fn nice(nest: &Nest, label: &str, nice: i32) -> Grown {
    rustix::process::setpriority_process(None, nice).at("setpriority")?;
    nest.settle(label)
}
