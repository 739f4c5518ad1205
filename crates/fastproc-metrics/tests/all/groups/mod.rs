//! Groups from one snapshot to the next: exits, exec, reused pids, changed names.

mod counting;
mod limits;
mod machine;
mod membership;
