//! The library for C. Programs in C call it in `accessors` and `examples`; `calls` calls it from Rust; `header` and `tags`
//! check what is generated.

mod accessors;
mod calls;
mod common;
mod examples;
mod header;
mod tags;
