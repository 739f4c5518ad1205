//! `fastproc top` on a real pseudo-terminal: what a person sees, every key, and how it is left.

mod cgroups;
#[path = "../common/mod.rs"]
mod common;
mod keys;
mod leaving;
mod live;
mod mouse;
mod options;
mod recording;
mod screens;
mod storm;
mod targets;
mod terminal;
