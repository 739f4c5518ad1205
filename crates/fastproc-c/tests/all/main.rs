//! The library for C. Programs in C call it in `records` and `examples`; `calls` calls it from Rust; `header` checks what is
//! generated.

mod calls;
mod common;
mod examples;
mod header;
mod records;
