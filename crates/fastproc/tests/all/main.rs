//! These tests compare the library on the running kernel with the kernel's own texts, and with slow and simple code. They are
//! one program, because each one links everything; `scripts/run-tests` runs each test in a process of its own.
//!
//! - `walks` tests the BPF sources (storms, kept records, threads, sums), and `procfs`, `kernel_bytes`, `children` and `examples`
//!   test processes.
//! - `opening`, `growth` and `unknown_kernel` open the library where something is missing.
//! - `exits`, `exits_leaders` and `exits_pids` record exited processes.
//! - `files` reads open files and sockets.
//! - `counters_live`, `counters_latency`, `counters_text` and `cgroups` read the machine's counters and its cgroups.
//! - `text_live`, `text_properties` and `status_formats` test texts without a kernel.
//! - `field_table`, `prebuilt`, `public_api` and `tags` check what is generated.
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
mod files;
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
