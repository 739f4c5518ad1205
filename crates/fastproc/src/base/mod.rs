//! What all other folders need: errors, facts about this machine, clocks, plain data.

pub mod cgroup_root;
pub mod error;
pub mod frozen;
pub mod host;
pub mod kept;
pub mod mapping;
pub mod message;
pub mod mounts;
pub(crate) mod namespaces;
pub(crate) mod plain;
pub mod proc_root;
pub mod regular_file;
pub mod slice;
pub mod source_kind;
pub mod terminals;
mod time_namespace;
pub mod timing;
pub mod whole_file;
