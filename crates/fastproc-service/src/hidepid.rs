//! Whether `/proc` hides processes.

use std::{
    fs,
    time::{Duration, Instant},
};

/// Whether `/proc`, as this process sees it, hides processes from users without rights over them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hidepid {
    pub(crate) hides: bool,
    read: Instant,
}

impl Hidepid {
    /// Reads the mounts. If they cannot be read, `/proc` counts as hiding.
    pub(crate) fn read() -> Self {
        let read = Instant::now();
        let hides = fs::read("/proc/self/mounts").map_or(true, |mounts| hides_in(&mounts));
        Self { hides, read }
    }

    /// Whether to read the mounts again: a new mount causes an event, but fsconfig(2) changes the option of an old one
    /// without.
    pub(crate) fn is_old(&self) -> bool {
        self.read.elapsed() >= Duration::from_secs(1)
    }
}

fn hides_in(mounts: &[u8]) -> bool {
    mounts.split(|&byte| byte == b'\n').any(|line| {
        let mut words = line.split(|&byte| byte == b' ').skip(1);
        words.next() == Some(b"/proc")
            && words.next() == Some(b"proc")
            && words
                .next()
                .unwrap_or_default()
                .split(|&byte| byte == b',')
                .any(|option| {
                    option
                        .strip_prefix(b"hidepid=")
                        .is_some_and(|level| !matches!(level, b"0" | b"off"))
                })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidepid_is_seen() {
        assert!(!hides_in(b"proc /proc proc rw,relatime 0 0\n"));
        assert!(!hides_in(
            b"proc /mnt/proc proc rw,hidepid=2 0 0\nproc /proc proc rw,hidepid=off 0 0\n"
        ));
        assert!(hides_in(
            b"x / ext4 rw 0 0\nproc /proc proc rw,hidepid=invisible 0 0\n"
        ));
        assert!(hides_in(b"proc /proc proc rw,hidepid=4,subset=pid 0 0"));
    }
}
