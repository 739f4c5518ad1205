//! Facts that decide who may see a process.

use crate::snapshot::exit::Owner;

/// Credentials of a process, and whether it may be dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    pub(crate) owner: Owner,
    pub(crate) is_dumpable: bool,
}

impl Rights {
    /// The real user.
    pub fn real_user(&self) -> u32 {
        self.owner.users.uid
    }
}
