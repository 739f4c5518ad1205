//! `fastproc top` on a real pseudoterminal: the screens, every key, and the ways to leave.

mod cgroups;
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
