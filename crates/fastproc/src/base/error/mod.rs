//! What can go wrong, with the cause and what to do about it.

pub mod parse;
pub mod procfs;
pub mod service;

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};
use thiserror::Error;

/// An error and its causes on one line, for the programs of this workspace. A cause that is already in the text before
/// is left out.
#[must_use]
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = text + ": " + &cause_text;
        }
        next = cause.source();
    }
    text
}

/// A text for one line of a log. A name in it cannot break the line, or change the terminal that shows it: control,
/// formatting and combining characters become escapes, as in Rust.
#[must_use]
pub fn log_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        let escaped = character.escape_debug();
        if matches!(character, '\'' | '"' | '\\') || escaped.len() == 1 {
            line.push(character);
        } else {
            line.extend(escaped);
        }
    }
    line
}

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

    /// The kernel's description of its structures cannot be read here, as in a chroot or a container with
    /// only `/proc`.
    #[error(
        "there is no /sys here, where the kernel describes its structures (/sys/kernel/btf/vmlinux); \
         mount it (mount -t sysfs sysfs /sys), or use the source procfs"
    )]
    NoSys(#[source] io::Error),

    /// A capability is missing.
    #[error(
        "{missing} missing; run as root, or grant it: setcap cap_bpf,cap_perfmon+ep on the program; \
         whoever may execute it then sees all processes and exits, but no exit status, no I/O and no arguments of \
         exited processes of other users"
    )]
    MissingCapability {
        /// What is missing, as in `CAP_BPF and CAP_PERFMON are`.
        missing: &'static str,
    },

    /// The system call is refused in spite of the capabilities.
    #[error(
        "the system call bpf is forbidden here, by a seccomp filter or a security module, or this kernel has none; \
         permit it in the profile of the container, or use the source procfs: {reason}"
    )]
    Forbidden {
        /// The kernel's answer.
        reason: String,
    },

    /// The kernel is locked down.
    #[error(
        "the kernel is locked down for confidentiality, and lets no program read its memory; \
         boot without lockdown=confidentiality, or use the source procfs"
    )]
    Lockdown,

    /// The kernel lacks a feature that the source needs.
    #[error("this kernel is too old: the {missing} needs Linux {since}")]
    KernelTooOld {
        /// What the kernel does not have.
        missing: &'static str,
        /// The first version that has it.
        since: &'static str,
    },

    /// The kernel's description of its structures has no shape of a value that the programs know.
    #[error(
        "this version does not know how this kernel stores the {value}: its structures lack {missing}; \
         use the source procfs, or a newer version"
    )]
    UnknownKernel {
        /// What cannot be read, as in `resident set`.
        value: &'static str,
        /// A member that is looked for, as in `mm_struct.rss_stat[].count`.
        missing: &'static str,
    },

    /// The kernel's structures say something else about this process than the kernel's own text.
    #[error(
        "the {value} of this process is {records} by the kernel's structures, but {kernel} by the kernel's own answer, so \
         this version reads these structures wrongly; use the source procfs, or a newer version"
    )]
    Differs {
        /// What differs, as in `resident set`.
        value: &'static str,
        /// What the structures say.
        records: u64,
        /// What the kernel says.
        kernel: u64,
    },

    /// The kernel refused a program.
    #[error("the kernel refused the program: {reason}\n{log}")]
    Verifier {
        /// The kernel's answer.
        reason: String,
        /// The end of what libbpf and the verifier printed.
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
        "this process is in a {namespace} namespace of its own, where ids differ; use the source procfs"
    )]
    Namespace {
        /// `pid` or `user`.
        namespace: &'static str,
    },

    /// The source meets other processes than `/proc` shows, as one of the two is of another pid namespace.
    #[error("this source would read the processes of {reads}, but /proc shows those of {shows}")]
    OtherProcesses {
        /// Whose processes the source meets.
        reads: &'static str,
        /// Whose processes `/proc` shows.
        shows: &'static str,
    },

    /// The kernel frees a thread after it has taken its number in a pid namespace.
    #[error(
        "in a pid namespace of its own, only exits of processes can be recorded, not those of threads"
    )]
    NestedThreads,

    /// `/proc` is mounted so that it hides processes from the caller.
    #[error(
        "/proc is mounted with hidepid, and hides other users' processes from you; run as root to see them all"
    )]
    HidePid,

    /// CPU times are not in the members that this library reads.
    #[error(
        "this kernel accounts CPU time {how}, and only /proc shows the result; use the source procfs"
    )]
    CpuAccounting {
        /// How, as in `by nohz_full CPUs`.
        how: &'static str,
    },

    /// The process may not open more descriptors.
    #[error(
        "the limit of {limit} open descriptors is too low; raise it (ulimit -n; LimitNOFILE= of a systemd unit)"
    )]
    Descriptors {
        /// The soft limit (`RLIMIT_NOFILE`).
        limit: u64,
    },

    /// A control group has less memory left than is needed.
    #[error(
        "the memory limit {} is {limit_bytes} bytes, of which {left_bytes} are free, but {needed_bytes} are needed; raise it (MemoryMax= \
         of a systemd unit; the memory limit of a container), ask for fewer fields, or use the source procfs", file.display()
    )]
    MemoryLimit {
        /// The file that holds the limit.
        file: PathBuf,
        /// The limit.
        limit_bytes: u64,
        /// How much of it is unused or can be reclaimed.
        left_bytes: u64,
        /// How much the arrays and loading the programs need.
        needed_bytes: u64,
    },

    /// This process was forked from the one that opened the collector.
    #[error(
        "this process was forked after the collector was opened, and shares its memory with the parent; open a new \
         collector after the fork"
    )]
    Forked,

    /// A program could not be run.
    #[error("cannot run the BPF program")]
    Run(#[source] io::Error),

    /// A map could not be created or mapped.
    #[error("cannot map {map}")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },

    /// The table grew faster than its array, several times in a row.
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
    Procfs(procfs::Error),

    /// The service cannot be used.
    #[error(transparent)]
    Service(#[from] service::Error),

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

impl From<procfs::Error> for Error {
    fn from(error: procfs::Error) -> Self {
        let descriptors = error.io().and_then(Self::descriptor_limit);
        descriptors.unwrap_or(Self::Procfs(error))
    }
}

impl Error {
    /// The error for type information that cannot be read.
    pub(crate) fn no_types(error: io::Error) -> Self {
        if let Some(limit) = Self::descriptor_limit(&error) {
            limit
        } else if Path::new("/sys/kernel").exists() {
            Self::NoBtf(error)
        } else {
            Self::NoSys(error)
        }
    }

    /// The error for a file of the machine that cannot be read.
    pub(crate) fn unreadable(path: impl Into<String>, source: io::Error) -> Self {
        let path = path.into();
        Self::descriptor_limit(&source).unwrap_or(Self::Host { path, source })
    }

    /// Whether the same may succeed later: there was not enough memory, or no descriptor was free.
    pub(crate) fn is_temporary(&self) -> bool {
        let lacks = |source: &io::Error| {
            let errno = Errno::from_io_error(source);
            matches!(errno, Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE))
        };
        match self {
            Self::Descriptors { .. } | Self::MemoryLimit { .. } => true,
            Self::NoBtf(source)
            | Self::NoSys(source)
            | Self::Run(source)
            | Self::Map { source, .. }
            | Self::Host { source, .. } => lacks(source),
            // Of a refusal only the text is known.
            Self::Verifier { reason, .. } => [Errno::NOMEM, Errno::NFILE]
                .into_iter()
                .any(|errno| reason.ends_with(&io::Error::from(errno).to_string())),
            _ => false,
        }
    }

    /// The error for the limit of descriptors, if `error` is about it.
    pub(crate) fn descriptor_limit(error: &io::Error) -> Option<Self> {
        let errno = Errno::from_io_error(error)?;
        (errno == Errno::MFILE).then(|| Self::Descriptors {
            limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_and_of_descriptors_is_temporary() {
        let refused = |errno: Errno| Error::Verifier {
            reason: format!("failed to create a map: {}", io::Error::from(errno)),
            log: String::new(),
        };
        assert!(refused(Errno::NOMEM).is_temporary() && !refused(Errno::PERM).is_temporary());
        let map = |errno: Errno| Error::Map {
            map: "records",
            source: errno.into(),
        };
        assert!(map(Errno::NOMEM).is_temporary() && !map(Errno::PERM).is_temporary());
        assert!(Error::Descriptors { limit: 1 }.is_temporary() && !Error::Lockdown.is_temporary());
    }
}
