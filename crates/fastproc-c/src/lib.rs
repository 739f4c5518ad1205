//! The library for C: `libfastproc.so` and `fastproc.h`.
//!
//! - `reader`: a collector, its last snapshot by places, texts and differences. Safe code, which may panic.
//! - `cgroups`, `files`: the same for cgroups and for open files.
//! - `unknown`: what a copy of a record has in place of values that are not known.
//! - `failure`: failures, as a number and as a sentence.
//! - `handle`: the caller's handle; the only place where its pointers are dereferenced.
//! - `constants`: results and arguments of functions.
//! - `structures`: what functions fill besides records.
//! - `exports`: the functions.
//!
//! The header is `include/fastproc.h`, which `tests/all/header.rs` writes from these functions and from the descriptions of
//! records in `bpf/`.
//!
//! This code runs within other programs. It prints nothing, starts no thread, keeps its capabilities, and catches all
//! panics.

mod cgroups;
mod constants;
mod exports;
mod failure;
mod files;
mod handle;
mod reader;
mod structures;
mod unknown;

pub use constants::*;
pub use exports::*;
pub use handle::Fastproc;
pub use structures::*;
