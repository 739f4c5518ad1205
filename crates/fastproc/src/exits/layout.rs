//! The structures that `bpf/exits.bpf.c` writes, generated from `bpf/exits.h`.
#![allow(dead_code, reason = "some members are for the programs alone")]

#[cfg(test)]
use crate::records::record::USERS_SCHEMA as FP_USERS_SCHEMA;
use crate::records::record::Users as FpUsers;

include!(concat!(env!("OUT_DIR"), "/exits.rs"));
