//! What a reader sees: what the kernel would show it.

pub(crate) use fastproc::Mask;
use fastproc::{
    Fields, Process,
    access::{Access, Reader, Viewer},
    record::{Io, Record},
};

/// What a reader may see. Readers of one view share buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything: root with the capabilities for that.
    All,
    /// What a user without capabilities may see. The pid is that of no process.
    Of(Reader),
}

/// What a view shows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// All fields.
    Full,
    /// The fields that every user may see.
    Public,
    /// Unknown: the reader must ask the kernel itself.
    Unsure,
}

#[cfg(test)]
impl View {
    /// That of a user without capabilities.
    pub(crate) const fn of_user(uid: u32) -> Self {
        Self::Of(Reader {
            pid: 0,
            fsuid: uid,
            fsgid: uid,
            cap_effective: 0,
            user_ns: 1,
            confined: false,
        })
    }
}

impl View {
    /// The user that is charged for what this view is lent.
    pub(crate) fn uid(&self) -> u32 {
        match self {
            Self::All => 0,
            Self::Of(reader) => reader.fsuid,
        }
    }

    /// Groups of fields that decide what this view may see, in addition to the requested ones.
    pub(crate) fn needs(&self) -> Fields {
        match self {
            Self::All => Fields::empty(),
            Self::Of(_) => Fields::USERS | Fields::CREDENTIALS | Fields::MEMORY_DETAILS,
        }
    }

    /// How much of a process may be shown. `user_ns`: its user namespace, if its record does not have it.
    pub(crate) fn visibility(
        &self,
        process: Process<'_>,
        user_ns: impl FnOnce() -> u32,
    ) -> Visibility {
        let Self::Of(reader) = self else {
            return Visibility::Full;
        };
        let Some((ids, credentials)) = process.users().zip(process.credentials()) else {
            return Visibility::Unsure;
        };
        if reader.access(process) == Access::Granted {
            return Visibility::Full;
        }
        let user_ns = credentials.user_ns().unwrap_or_else(user_ns);
        if reader.is_surely_denied(ids, user_ns) {
            Visibility::Public
        } else {
            Visibility::Unsure
        }
    }
}

impl From<View> for Viewer {
    fn from(view: View) -> Self {
        match view {
            View::All => Self::All,
            View::Of(reader) => Self::Of(reader),
        }
    }
}

/// For a process without memory, such as a zombie, root owns the files that only their owner may read
/// (`task_dump_owner()` of fs/proc/base.c). Kernels with `task_exec_state` show them to its user.
pub(crate) fn hide_io_without_memory(record: &mut Record) {
    if record.identity.has_mm == 0 {
        record.identity.groups &= !Fields::IO.bits();
        record.io = Io::default();
    }
}

#[cfg(test)]
mod tests;
