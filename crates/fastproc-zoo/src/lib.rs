//! A zoo of odd processes: what a reader of the process table must get right and rarely meets by chance.
//!
//! [`Zoo::open`] starts labelled processes (zombies, dead thread group leaders, traced and stopped processes, names that
//! break parsers, nested pid namespaces, …), each of them checked against `/proc` before it is shown, and keeps them
//! until the [`Zoo`] is dropped; then all of them are killed and reaped. [`Storm::start`] makes processes and threads
//! come and go as fast as they can, for readers that must survive it.
//!
//! ```
//! use fastproc_zoo::{Options, Zoo};
//!
//! let zoo = Zoo::open(&Options::only(["zombie", "pidns-3"]))?;
//! for animal in zoo.animals() {
//!     println!("{} {}", animal.pid, animal.label);
//! }
//! for absent in zoo.absent() {
//!     eprintln!("no {absent}");
//! }
//! # Ok::<(), fastproc_zoo::ZooError>(())
//! ```
//!
//! # Where the processes come from
//!
//! A test runs in a process with many threads, and a child forked from it may do no more than async-signal-safe work
//! until it executes a program: no allocation, no threads, nothing of what the animals need. A dev-dependency's binary,
//! on the other hand, is not built for the tests that depend on it. So the program that is executed is the one that is
//! running: `/proc/self/exe`, with the variable `FASTPROC_ZOO_ROLE` in its environment. This crate places a constructor
//! in `.init_array`; it runs before `main`, sees the variable and plays the role: the process becomes the *keeper*,
//! has a single thread and a small address space, forks the animals with all of the standard library at hand, and never
//! reaches `main`. That works the same from the tests of any crate, from the command `fastproc-zoo` and in a static
//! executable that is the only file of a guest.
//!
//! # How they end
//!
//! The keeper ends everything when its lifeline closes, a pipe whose other end only the opener holds: by dropping the
//! [`Zoo`], or by dying, however suddenly. A lifeline rather than `PR_SET_PDEATHSIG`, because that signal is sent when the
//! *thread* that created the child ends, and a test's thread ends long before its process. Below the keeper, where each
//! parent has one thread, `PR_SET_PDEATHSIG` is right: every process dies with its parent, so killing the keeper itself
//! leaves nothing behind either. The keeper is the subreaper of all of them and reaps what it kills.

mod expect;
pub mod gate;
mod keeper;
mod nest;
mod role;
mod species;
mod storm;
mod sys;
mod zoo;

pub use expect::{Expect, Mismatch};
pub use storm::{Storm, Tally};
pub use zoo::{Absent, Animal, Options, Why, Zoo, ZooError, catalogue};
