//! The structures that `bpf/exits.bpf.c` writes, generated from `bpf/exits.h`.
#![allow(dead_code, reason = "some members are for the programs alone")]

include!(concat!(env!("OUT_DIR"), "/exits.rs"));
