//! Command lines.

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cmdline<'a> {
    /// The arguments as in `/proc/PID/cmdline`: each ends with a NUL, unless the process has changed them.
    /// Empty for a kernel thread or a zombie.
    pub bytes: &'a [u8],
    /// Whether it is longer: only its first 128 KiB were read, or of an exited process 4 KiB or less
    /// ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)).
    pub cut: bool,
}
