//! A testbed of odd processes: those that a reader of the process table must handle and rarely meets by chance.
//!
//! [`Testbed::open`] starts labelled processes (zombies, dead thread group leaders, traced and stopped processes, names that
//! break parsers, nested pid namespaces, …), each of them checked against `/proc` before it is shown, and keeps them
//! until the [`Testbed`] is dropped; then all of them are killed and reaped. [`Storm::start`] starts and ends processes and
//! threads as fast as it can, for readers that must survive it; [`Changing::start`] makes one process change one of its
//! properties.
//!
//! ```
//! use fastproc_testbed::{Options, Testbed};
//!
//! let testbed = Testbed::open(&Options::only(["zombie", "pidns-3"]))?;
//! for process in testbed.processes() {
//!     println!("{} {}", process.pid, process.label);
//! }
//! for absent in testbed.absent() {
//!     eprintln!("no {absent}");
//! }
//! # Ok::<(), fastproc_testbed::TestbedError>(())
//! ```
//!
//! # Where the processes come from
//!
//! A test runs in a process with many threads, and a child forked from it may only do async-signal-safe work until it
//! executes a program: no allocation, no threads, nothing that the test processes need. A dev-dependency's binary, on
//! the other hand, is not built for the tests that depend on it. So the test executes its own program,
//! `/proc/self/exe`, with the variable `FASTPROC_TESTBED_ROLE` in its environment. This crate places a constructor in
//! `.init_array`; it runs before `main`, reads the variable and plays the role: the process becomes the *supervisor*,
//! has a single thread and a small address space, forks the test processes with the whole standard library available,
//! and never reaches `main`. This works in the tests of any crate, in the command `fastproc-testbed` and in a static
//! executable that is the only file of a guest.
//!
//! # How they end
//!
//! The supervisor ends everything when its lifeline closes, a pipe whose other end only the opener holds: when the
//! opener drops the [`Testbed`], or dies, however suddenly. It does not use `PR_SET_PDEATHSIG` for this, because that
//! signal is sent when the *thread* that created the child ends, and a test's thread ends long before its process.
//! Below the supervisor, where each parent has one thread, `PR_SET_PDEATHSIG` is right: every process dies with its
//! parent, so killing the supervisor itself leaves no process behind either. The supervisor is the subreaper of all of
//! them and reaps what it kills.

mod alone;
mod bracket;
mod cgroup;
mod change;
mod constructor;
mod context;
mod ended;
mod error;
mod expect;
mod fixtures;
mod folder;
mod frozen;
pub mod gate;
mod hung_fuse;
mod lossy_disk;
mod moving;
mod reborn;
mod rerun;
mod role;
mod running;
mod sleepers;
mod storm;
mod supervisor;
mod sys;
mod testbed;
mod user;
mod wait;

pub use alone::{Alone, LOCK_FILE, alone, leave_lock_to_parent};
pub use bracket::Brackets;
pub use cgroup::Cgroup;
pub use change::{Change, Changing, GROUPS};
pub use ended::ended_shell;
pub use error::{Absent, TestbedError, Why};
pub use expect::{Expect, Mismatch};
pub use folder::Folder;
pub use frozen::{Frozen, check, golden, transcript};
pub use hung_fuse::{HungFuse, own_mounts};
pub use lossy_disk::LossyDisk;
pub use moving::Moving;
pub use reborn::Reborn;
pub use rerun::{again, assert_passed, is_case, is_rerun, name_of, own_process, rerun};
pub use running::{Running, wait_for_state, wait_until_asleep};
pub use sleepers::Sleepers;
pub use storm::{Storm, Tally};
pub use testbed::{Options, TestProcess, Testbed, catalogue};
pub use user::{READS_BY_BPF, as_user_with};
pub use wait::{GUARD, wait_for, wait_until};

/// Ends a test that needs what is missing here: each condition is one of [`gate`], or like those.
#[macro_export]
macro_rules! needs {
    ($($is_met:expr),+) => {
        $(if !$is_met {
            return;
        })+
    };
}

/// A structure with some of its members set: records are `#[non_exhaustive]`, so a literal cannot make them.
#[macro_export]
macro_rules! with {
    (@ $made:ident $member:ident) => { $made.$member = $member; };
    (@ $made:ident $member:ident $value:expr) => { $made.$member = $value; };
    ($base:expr, { $($member:ident $(: $value:expr)?),* $(,)? }) => {{
        let mut made = $base;
        $($crate::with!(@ made $member $($value)?);)*
        made
    }};
}
