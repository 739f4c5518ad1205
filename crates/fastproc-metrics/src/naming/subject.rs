//! What a process is named by.

/// What a rule can ask about a process.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Process id.
    pub pid: u32,
    /// The name in `/proc/PID/stat`.
    pub comm: &'a [u8],
    /// `/proc/PID/cmdline`: arguments that end with a NUL each.
    pub cmdline: &'a [u8],
    /// Name of the effective user.
    pub username: &'a str,
    /// Paths of its cgroups.
    pub cgroups: &'a [String],
    /// Start time, in nanoseconds since 1970.
    pub start_unix_ns: u64,
}

impl<'a> Subject<'a> {
    /// The arguments without the NULs that end the last.
    fn trimmed(&self) -> &'a [u8] {
        let end = self.cmdline.iter().rposition(|&byte| byte != 0);
        &self.cmdline[..end.map_or(0, |at| at + 1)]
    }

    /// The first argument, if there is any.
    pub(super) fn argv0(&self) -> Option<&'a [u8]> {
        let line = self.trimmed();
        if line.is_empty() {
            return None;
        }
        line.split(|&byte| byte == 0).next()
    }

    /// The first argument, or the name of what has none.
    pub(super) fn exe(&self) -> &'a [u8] {
        self.argv0().unwrap_or(self.comm)
    }

    /// The last element of the first argument, or the name of what has none: that is no path, whatever is in it.
    pub(super) fn exe_base(&self) -> &'a [u8] {
        self.argv0().map_or(self.comm, base)
    }

    /// The arguments with a space between them.
    pub(super) fn line(&self) -> String {
        let line = String::from_utf8_lossy(self.trimmed());
        line.replace('\0', " ")
    }
}

/// What has to be read of a process before rules can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The command line.
    pub cmdline: bool,
    /// The name of the user.
    pub username: bool,
    /// The cgroups.
    pub cgroups: bool,
}

impl Wants {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            cmdline: self.cmdline || other.cmdline,
            username: self.username || other.username,
            cgroups: self.cgroups || other.cgroups,
        }
    }
}

/// The last element of a path, as Go's `filepath.Base` has it.
pub(super) fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|&byte| byte != b'/');
    let Some(end) = end else { return b"/" };
    let path = &path[..=end];
    let start = path.iter().rposition(|&byte| byte == b'/');
    &path[start.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_as_go_has_them() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//", "/"),
            ("a/b/", "b"),
            ("b", "b"),
            ("/x", "x"),
        ] {
            assert_eq!(base(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
