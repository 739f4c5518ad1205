//! Splits texts of `/proc` into named fields.

use std::fmt;

/// The per-process files that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// `/proc/PID/stat`
    Stat,
    /// `/proc/PID/statm`
    Statm,
    /// `/proc/PID/status`
    Status,
    /// `/proc/PID/io`
    Io,
    /// `/proc/PID/schedstat`
    Schedstat,
}

impl File {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Stat,
        Self::Statm,
        Self::Status,
        Self::Io,
        Self::Schedstat,
    ];

    /// Name of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::Statm => "statm",
            Self::Status => "status",
            Self::Io => "io",
            Self::Schedstat => "schedstat",
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The fields of stat from the third on, by their names in proc(5).
const STAT: &str = "state ppid pgrp session tty_nr tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime priority nice \
    num_threads itrealvalue starttime vsize rss rsslim startcode endcode startstack kstkesp kstkeip signal blocked \
    sigignore sigcatch wchan nswap cnswap exit_signal processor rt_priority policy delayacct_blkio_ticks guest_time \
    cguest_time start_data end_data start_brk arg_start arg_end env_start env_end exit_code";

const STATM: &str = "size resident shared text lib data dt";

const SCHEDSTAT: &str = "run_ns run_delay_ns timeslices";

/// What can be expected of a value while it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// It counts up: ours must be between the kernel's values before and after.
    Rising,
    /// An id, a name, a list or a mask, with few values in one process: the kernel must have shown ours.
    Few,
    /// Sizes, addresses, signals, switches, the activity of a thread: any value is possible.
    Any,
}

/// What can be expected of this field. `value` is one of its values.
pub fn motion(name: &str, value: &[u8]) -> Motion {
    match name {
        // These belong to the process. Switches and waits for disks only belong to the leader, and restart when another
        // thread executes a program and replaces it.
        "minflt"
        | "cminflt"
        | "majflt"
        | "cmajflt"
        | "utime"
        | "stime"
        | "cutime"
        | "cstime"
        | "guest_time"
        | "cguest_time"
        | "rchar"
        | "wchar"
        | "syscr"
        | "syscw"
        | "read_bytes"
        | "write_bytes"
        | "cancelled_write_bytes" => Motion::Rising,
        // The name of a kernel worker shows what it works on.
        "comm" | "Name" if value.windows(8).any(|part| part == b"kworker/") => Motion::Any,
        "pid" | "comm" | "ppid" | "pgrp" | "session" | "tty_nr" | "nice" | "starttime"
        | "exit_signal" | "rt_priority" | "policy" | "Name" | "Umask" | "Tgid" | "Ngid" | "Pid"
        | "PPid" | "TracerPid" | "Uid" | "Gid" | "Groups" | "NStgid" | "NSpid" | "NSpgid"
        | "NSsid" | "Kthread" | "CoreDumping" | "THP_enabled" | "CapInh" | "CapPrm" | "CapEff"
        | "CapBnd" | "CapAmb" | "NoNewPrivs" | "Seccomp" | "Seccomp_filters" | "Cpus_allowed"
        | "Cpus_allowed_list" | "Mems_allowed" | "Mems_allowed_list" | "untag_mask" => Motion::Few,
        _ => Motion::Any,
    }
}

/// A field: its name and its bytes.
pub type Field<'t> = (&'t str, &'t [u8]);

/// Splits a text into its fields. What is not a field is called `?`, so that it is compared too.
pub fn split(file: File, text: &[u8]) -> Vec<Field<'_>> {
    match file {
        File::Stat => split_stat(text),
        File::Statm => words(text, STATM),
        File::Schedstat => words(text, SCHEDSTAT),
        File::Status | File::Io => lines(text),
    }
}

fn split_stat(text: &[u8]) -> Vec<Field<'_>> {
    // The name may contain anything, also closing parentheses; what follows cannot.
    let open = text.iter().position(|&byte| byte == b'(');
    let close = text.iter().rposition(|&byte| byte == b')');
    let (Some(open), Some(close)) = (open, close) else {
        return vec![("?", text)];
    };
    let mut fields = vec![
        ("pid", text[..open].trim_ascii()),
        ("comm", &text[open..=close]),
    ];
    fields.extend(words(&text[close + 1..], STAT));
    fields
}

fn words<'t>(text: &'t [u8], names: &'static str) -> Vec<Field<'t>> {
    let words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let names = names.split(' ').chain(std::iter::repeat("?"));
    names.zip(words).collect()
}

fn lines(text: &[u8]) -> Vec<Field<'_>> {
    let lines = text
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
            let name = str::from_utf8(&line[..colon])
                .ok()
                .filter(|name| !name.is_empty());
            match name {
                Some(name) => (name, &line[colon + 1..]),
                None => ("?", line),
            }
        })
        .collect()
}

/// Whether a value is more than zero or empty: a zero proves little about its source.
pub fn is_nonzero(value: &[u8]) -> bool {
    value
        .trim_ascii()
        .iter()
        .any(|byte| !b"0 \t,-kB".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let mut text = b"7 (a) b (c) S 1".to_vec();
        text.extend(std::iter::repeat_n(*b" 5", 48).flatten());
        text.push(b'\n');
        let fields = split(File::Stat, &text);
        assert_eq!(fields[0], ("pid", &b"7"[..]));
        assert_eq!(fields[1], ("comm", &b"(a) b (c)"[..]));
        assert_eq!(fields[2], ("state", &b"S"[..]));
        assert_eq!(fields.last(), Some(&("exit_code", &b"5"[..])));
    }

    #[test]
    fn labels_name_the_lines_of_status() {
        let fields = split(File::Status, b"Name:\ta:b\nGroups:\t \nodd\n");
        assert_eq!(
            fields,
            [("Name", &b"\ta:b"[..]), ("Groups", b"\t "), ("?", b"odd")]
        );
    }

    #[test]
    fn zeros_prove_nothing() {
        for zero in ["0", "\t       0 kB", "\t0000000000000000", "-0", "\t0\t0"] {
            assert!(!is_nonzero(zero.as_bytes()), "{zero:?}");
        }
        for value in ["1", "\t       4 kB", "-1", "R", "\t0000000000000100"] {
            assert!(is_nonzero(value.as_bytes()), "{value:?}");
        }
    }
}
