//! The files of `/proc`: parsed, and those that have records or counters rendered to the same bytes that the kernel prints.
//!
//! The renderers of the machine-wide files keep their text, and rewrite only the numbers that changed since the
//! last rendering.

#![allow(
    clippy::inline_always,
    reason = "what is put in one piece is one check and a run of stores only when it is inlined"
)]

mod buffer;
mod cursor;
mod files;
pub mod interrupts;
#[doc(hidden)]
pub mod io;
mod lines;
pub mod loadavg;
pub mod machine_stat;
mod name;
mod numbers;
mod render;
#[doc(hidden)]
pub mod schedstat;
pub mod softirqs;
#[doc(hidden)]
pub mod stat;
#[doc(hidden)]
pub mod statm;
#[doc(hidden)]
pub mod status;
mod units;
pub mod uptime;
pub mod vmstat;

pub use files::Files;
pub use render::RenderError;
#[doc(hidden)]
pub use {buffer::Text, units::Units};

pub use crate::base::error::parse::{FormatError, ParseError};
