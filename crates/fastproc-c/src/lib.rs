//! The library for C: `libfastproc.so` and `fastproc.h`.
//!
//! - `reader`: a collector, its last snapshot by places, texts and differences. Safe code, which may panic.
//! - `failure`: failures, as a number and as a sentence.
//! - `handle`: the caller's handle; the only place where its pointers are dereferenced.
//! - `constants`: results and arguments of functions.
//! - `cgroups`: a collector of cgroups; `cgroup_exports`: its functions.
//! - `exports`: the functions that are not accessors of a single member. `build/` generates the accessors.
//!
//! The header is `include/fastproc.h`, which `tests/all/header.rs` writes from these functions.
//!
//! This code runs within other programs. It prints nothing, starts no thread, keeps its capabilities, and catches all
//! panics.

mod cgroup_exports;
mod cgroups;
mod constants;
mod exports;
mod failure;
mod handle;
mod reader;

pub use cgroup_exports::*;
pub use constants::*;
pub use exports::*;
pub use handle::{Fastproc, FastprocCgroups};

/// An accessor for each member of a record.
#[allow(
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    clippy::redundant_closure_for_method_calls,
    reason = "one promise for all, in the header; its documentation is C's; it is generated"
)]
mod accessors {
    use std::ffi::{c_char, c_int};

    use crate::{
        handle::{Fastproc, FastprocCgroups, get, hand_out},
        reader::Guard,
    };

    include!(concat!(env!("OUT_DIR"), "/accessors.rs"));
}
pub use accessors::*;
