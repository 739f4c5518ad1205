//! Draws the screen from the state and a snapshot. It changes only the windows of the state.

pub mod cgroup;
pub mod cgroups;
pub mod details;
pub mod graphs;
pub mod grid;
pub mod header;
pub mod overlay;
pub mod table;
pub mod theme;
