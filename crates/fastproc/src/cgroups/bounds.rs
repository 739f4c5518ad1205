//! How much a reader of cgroups takes at most, whatever users make.

use std::time::Duration;

use super::{Cgroups, error::Error, record::Record};
use crate::base::timing;

/// How much a reader takes at most. Default: without bounds, but for paths that cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Cgroups.
    pub cgroups: usize,
    /// Bytes of a path. A cgroup with a longer path is left out, with those below it.
    pub path_bytes: usize,
    /// Parts of a path, which is looked up part by part. A cgroup with more is left out as well.
    pub parts: usize,
    /// Bytes of all paths together.
    pub bytes_of_all: usize,
    /// Files that stay open.
    pub descriptors: usize,
    /// The CPU time of the reading thread from which on nothing is opened. The snapshot fails then, and the next one goes
    /// on from what is known.
    pub until: Duration,
}

/// The kernel takes paths of 4,096 bytes, with the zero at the end. With a longer path than this one it would refuse
/// that of some file.
const LONGEST_PATH: usize = 4096 - "./".len() - "/memory.events.local".len() - 1;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            cgroups: usize::MAX,
            path_bytes: LONGEST_PATH,
            parts: usize::MAX,
            bytes_of_all: usize::MAX,
            descriptors: usize::MAX,
            until: Duration::MAX,
        }
    }
}

impl Bounds {
    /// Whether a path is too long.
    pub(super) fn leave_out(self, path: &[u8]) -> bool {
        path.len() > self.path_bytes || path.split(|&byte| byte == b'/').count() - 1 > self.parts
    }

    /// Whether reading has taken as long as it may.
    pub(super) fn are_over(self) -> bool {
        self.until != Duration::MAX && timing::cpu() >= self.until
    }

    /// Nothing is loaded or walked if there are more cgroups below the root.
    pub(super) fn check(self, descendants: u32) -> Result<(), Error> {
        if descendants as usize >= self.cgroups {
            return Err(Error::TooMany);
        }
        Ok(())
    }
}

#[doc(hidden)]
impl Cgroups {
    /// Sets how much the next snapshots take at most. They fail with [`Error::TooMany`] if there are more cgroups, before
    /// they read them, and if reading takes too long, or paths have too many bytes.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.tree.bounds = bounds;
    }

    /// Whether the last snapshot is within these bounds.
    pub fn fits(&self, bounds: Bounds) -> bool {
        self.tree.fits(bounds)
    }
}

impl Cgroups {
    /// The walk is not begun if there are more cgroups than the bounds allow.
    pub(super) fn check_count(&mut self) -> Result<(), Error> {
        let bounds = self.tree.bounds;
        if bounds.cgroups == usize::MAX {
            return Ok(());
        }
        let mut root = Record::default();
        root.identity.id = self.tree.root_id();
        self.files.identity(&mut self.tree, &mut root);
        bounds.check(root.identity.descendants)
    }
}
