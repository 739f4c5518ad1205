//! Facts that decide who may see a process.

use crate::records::record::{Credentials, Users};

/// Credentials of a process, and whether it may be dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    pub(crate) users: Users,
    pub(crate) credentials: Credentials,
    pub(crate) is_dumpable: bool,
}

impl Rights {
    /// The real user.
    pub fn real_user(&self) -> u32 {
        self.users.uid
    }
}
