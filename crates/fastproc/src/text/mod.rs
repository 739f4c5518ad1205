//! The texts of `/proc`: parsed into records, and rendered from records to the kernel's own bytes.
//!
//! The machine-wide files have renderers that own their text and rewrite only the numbers that changed since the last
//! rendering, so that a reader who polls pays for what moved.

#![allow(
    clippy::inline_always,
    reason = "what is put in one piece is one check and a run of stores only when it is inlined"
)]

mod buffer;
mod cursor;
mod files;
pub mod interrupts;
pub mod io;
mod lines;
pub mod loadavg;
pub mod machine_stat;
mod name;
mod numbers;
mod render;
pub mod softirqs;
pub mod stat;
pub mod statm;
pub mod status;
mod units;
pub mod uptime;
pub mod vmstat;

pub use buffer::Text;
pub use files::Files;
pub use render::RenderError;
pub use units::Units;

pub use crate::base::error::parse::ParseError;
