//! The structures shared with `bpf/counters.bpf.c`, generated from `bpf/counters.h`.
#![allow(
    dead_code,
    reason = "some members and structures are for the programs alone"
)]

include!(concat!(env!("OUT_DIR"), "/counters.rs"));
