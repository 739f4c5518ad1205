//! Groups from one snapshot to the next: exits, exec, pids that are given away, names that change.

mod counting;
mod limits;
mod machine;
mod membership;
