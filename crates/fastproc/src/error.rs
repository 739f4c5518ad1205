//! What can go wrong, why, and what to do about it.

use std::io;

use thiserror::Error;

use crate::source::procfs;

/// Why a source cannot be used, or why it failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The running kernel does not describe its structures.
    #[error(
        "the kernel has no BTF at /sys/kernel/btf/vmlinux, so its structures cannot be read by name; \
         use a kernel built with CONFIG_DEBUG_INFO_BTF=y, or the source procfs"
    )]
    NoBtf(#[source] io::Error),

    /// A capability is missing.
    #[error(
        "{missing} missing; run as root, or grant it: setcap cap_bpf,cap_perfmon+ep on the program"
    )]
    MissingCapability {
        /// What is missing, as in `CAP_BPF and CAP_PERFMON are`.
        missing: &'static str,
    },

    /// The kernel is locked down.
    #[error(
        "the kernel is locked down for confidentiality, and gives no program the kernel's memory; \
         boot without lockdown=confidentiality, or use the source procfs"
    )]
    Lockdown,

    /// The kernel lacks what the source is made of.
    #[error("this kernel is too old for it: it has no {missing} (Linux {since})")]
    KernelTooOld {
        /// What the kernel does not have.
        missing: &'static str,
        /// The first version that has it.
        since: &'static str,
    },

    /// The kernel refused a program.
    #[error("the kernel refused the program: {reason}\n{log}")]
    Verifier {
        /// The kernel's answer.
        reason: String,
        /// The end of what libbpf and the verifier said.
        log: String,
    },

    /// The BPF object and the library disagree about a record.
    #[error(
        "the BPF object lays out {what} differently from the library: build both from the same sources"
    )]
    Layout {
        /// The structure or member.
        what: String,
    },

    /// The caller lives in a namespace that shows other ids than the kernel's own.
    #[error(
        "this process is in a {namespace} namespace of its own, where ids differ; /proc translates them"
    )]
    Namespace {
        /// `pid` or `user`.
        namespace: &'static str,
    },

    /// `/proc` is mounted so that it hides processes from the caller.
    #[error(
        "/proc is mounted with hidepid, and hides other users' processes from you; run as root to see them all"
    )]
    HidePid,

    /// CPU times are not where this library reads them.
    #[error("CPU times are accounted {how} on this kernel, and only its own text has them")]
    CpuAccounting {
        /// How, as in `by nohz_full CPUs`.
        how: &'static str,
    },

    /// A program could not be run.
    #[error("running the program failed")]
    Run(#[source] io::Error),

    /// A map could not be created or mapped.
    #[error("mapping {map} failed")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },

    /// The table grew faster than the array for it, again and again.
    #[error(
        "there are more than {capacity} {what}, and the array for them cannot grow fast enough"
    )]
    Overflow {
        /// Entries that there is room for.
        capacity: u32,
        /// What they are.
        what: &'static str,
    },

    /// Reading `/proc` failed.
    #[error(transparent)]
    Procfs(#[from] procfs::Error),

    /// A fact about this machine could not be read.
    #[error("cannot read {path}")]
    Host {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}
