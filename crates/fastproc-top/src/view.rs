//! The screen, drawn from the state and a snapshot: nothing here changes what is chosen, but for what can be seen of it.

pub mod cgroup;
pub mod cgroups;
pub mod details;
pub mod grid;
pub mod header;
pub mod overlay;
pub mod table;
pub mod theme;
