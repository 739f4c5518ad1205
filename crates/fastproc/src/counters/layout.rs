//! What the library and `bpf/counters.bpf.c` hand each other, made from `bpf/counters.h`.
#![allow(
    dead_code,
    reason = "some members and structures are for the programs alone"
)]

include!(concat!(env!("OUT_DIR"), "/counters.rs"));
