//! The library on the running kernel, against the kernel's own texts and against slow and simple code. One program, because
//! each one links everything; `scripts/run-tests` runs each test in a process of its own.
//!
//! - processes: `walks` (the BPF sources: storms, kept records, threads, sums), `procfs`, `kernel_bytes`,
//!   `examples`
//! - opening where something is missing: `opening`, `growth`, `unknown_kernel`
//! - exited processes: `exits`, `exits_leaders`, `exits_pids`
//! - counters of the machine, and cgroups: `counters_live`, `counters_latency`, `counters_text`, `cgroups`
//! - texts without a kernel: `text_live`, `text_properties`, `status_formats`
//! - what is generated: `field_table`, `prebuilt`, `public_api`, `tags`
//!
//! A test of one module without the kernel belongs beside its code in `src`.

mod cgroups;
mod children;
mod counters_latency;
mod counters_live;
mod counters_text;
mod examples;
mod exits;
mod exits_leaders;
mod exits_pids;
mod field_table;
mod growth;
mod kernel_bytes;
mod opening;
mod prebuilt;
mod procfs;
mod public_api;
mod status_formats;
mod tags;
mod text_live;
mod text_properties;
mod unknown_kernel;
mod walks;
