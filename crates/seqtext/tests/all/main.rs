//! Every call against slow and simple code: `decimal` for numbers, `forms` for all calls, `kernel` for the kernel's own
//! text. `no_panic.rs` is a program of its own, because the published crate lacks what it links.

mod decimal;
mod forms;
#[cfg(all(target_os = "linux", not(miri)))]
mod kernel;
mod model;
