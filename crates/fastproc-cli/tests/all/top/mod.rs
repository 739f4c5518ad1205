//! `fastproc top` on a real pseudoterminal: the screens, and the ways to leave.

mod cgroups;
mod leaving;
mod live;
mod mouse;
mod options;
mod past;
mod screens;
mod storm;
mod targets;
pub mod terminal;
