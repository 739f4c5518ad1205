//! - `page`: `docs/history-tables.md`, and what `docs/top.md` says of a history
//! - `cpu_time`: what is recorded of the running kernel, beside the kernel's own count; guests with other kernels run it too

mod cpu_time;
mod page;
