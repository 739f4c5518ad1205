//! The service and its readers, over real sockets.
//!
//! - who is served: `connections`, `trust`, `before_peer_pidfd`, `confine`
//! - what a reader gets: `cgroups`, `files`, `exits`, `executed`, `kept` (command lines), `reused` (buffers)
//! - what goes wrong: `failures`, `fuzz`; attacks of a hostile user: `hostile` and the modules after it

mod before_peer_pidfd;
mod cgroups;
mod common;
mod confine;
mod connections;
mod executed;
mod exits;
mod failures;
mod files;
mod fuzz;
mod hostile;
mod hostile_descriptors;
mod hostile_files;
mod hostile_fuse;
mod hostile_limits;
mod hostile_memory;
mod hostile_oracle;
mod hostile_users;
mod kept;
mod reused;
mod trust;
