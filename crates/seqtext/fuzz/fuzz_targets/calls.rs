//! Any calls with any arguments, into memory of any size, against the model of the tests:
//! `cargo +nightly fuzz run calls` in `crates/seqtext`.
#![no_main]

#[path = "../../tests/model/mod.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<model::Call>, u16)| {
    let (calls, size) = input;
    model::check(&calls, usize::from(size));
});
