//! Signals pending, blocked, ignored and caught, real-time ones among them.

use super::{Species, single};
use crate::{
    expect::Expect::{Status, StatusAtLeast},
    nest::{At, Trouble},
    sys::{self, Action, Queue},
};

pub const SPECIES: &[Species] = &[
    // To the process and to its thread; the same one several times counts in SigQ alone.
    single!(
        "signals-pending",
        [
            Status("SigPnd", "4000000200000000"),
            Status("ShdPnd", "8000000400000200"),
            Status("SigBlk", "fffffffffffbfeff"),
            StatusAtLeast("SigQ", 6),
        ],
        |nest| {
            sys::block_signals(u64::MAX).at("rt_sigprocmask")?;
            for (signal, to) in [
                (libc::SIGUSR1, Queue::Process),
                (35, Queue::Process),
                (35, Queue::Process),
                (64, Queue::Process),
                (34, Queue::Thread),
                (34, Queue::Thread),
                (63, Queue::Thread),
            ] {
                sys::queue_signal(signal, to).at("rt_sigqueueinfo")?;
            }
            // SIGKILL (9) and SIGSTOP (19) cannot be blocked.
            nest.settle("signals-pending")
        }
    ),
    single!(
        "signals-ignored",
        [
            Status("SigIgn", "c000000200011001"),
            Status("SigCgt", "0000000000000000")
        ],
        |nest| {
            reset()?;
            for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGCHLD, 34, 63, 64] {
                sys::on_signal(signal, Action::Ignore).at("sigaction")?;
            }
            nest.settle("signals-ignored")
        }
    ),
    // Every signal that can be caught: not SIGKILL, not SIGSTOP, and not the two that the C library keeps to itself.
    single!(
        "signals-caught",
        [
            Status("SigCgt", "fffffffe7ffbfeff"),
            Status("SigIgn", "0000000000000000")
        ],
        |nest| {
            reset()?;
            for signal in
                (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(signal))
            {
                sys::on_signal(signal, Action::Catch).at("sigaction")?;
            }
            nest.settle("signals-caught")
        }
    ),
    single!(
        "signals-blocked",
        [
            Status("SigBlk", "8000000180004001"),
            Status("ShdPnd", "0000000000000000")
        ],
        |nest| {
            sys::block_signals(0x8000_0001_8000_4001).at("rt_sigprocmask")?;
            nest.settle("signals-blocked")
        }
    ),
];

/// What the opener ignores is ignored by whom it starts, and so on: even signals that the C library keeps to itself.
fn reset() -> Result<(), Trouble> {
    (1..=64)
        .filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal))
        .try_for_each(|signal| sys::reset_signal(signal).at("rt_sigaction"))
}
