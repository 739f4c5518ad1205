//! What a reader is shown: what the kernel would show it.

pub(crate) use fastproc::access::Mask;
use fastproc::{
    Fields, Process,
    access::{Access, Reader},
    exits::Exit,
    record::{Io, Record},
};

/// What a reader may see. Readers of one view share buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything: root, with the capability that it takes.
    All,
    /// What a user without capabilities may see. The pid stands for nobody.
    Of(Reader),
}

/// What a view shows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// All of it.
    Full,
    /// What everybody may see.
    Public,
    /// The reader shall ask the kernel itself.
    Unsure,
}

impl View {
    /// Who is counted for what this view is lent.
    pub(crate) fn uid(&self) -> u32 {
        match self {
            Self::All => 0,
            Self::Of(reader) => reader.fsuid,
        }
    }

    /// Groups of fields that it takes to tell what this view may see, beside those that are asked for.
    pub(crate) fn needs(&self) -> Fields {
        match self {
            Self::All => Fields::empty(),
            Self::Of(_) => Fields::USERS | Fields::CREDENTIALS | Fields::MEMORY_DETAILS,
        }
    }

    /// What of a process may be shown. `user_ns`: its user namespace, where its record does not tell.
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
        let users = [ids.uid, ids.euid, ids.suid];
        let groups = [ids.gid, ids.egid, ids.sgid];
        // Over a user namespace of its own making a user has all capabilities; and of its own processes it may see
        // itself, and others as a security module says.
        let is_another = users != [reader.fsuid; 3] || groups != [reader.fsgid; 3];
        if is_another && user_ns == reader.user_ns {
            Visibility::Public
        } else {
            Visibility::Unsure
        }
    }
}

impl View {
    /// A process that has ended, as it would have been shown.
    pub(crate) fn mask_exit(&self, exit: &Exit) -> Exit {
        match self {
            Self::All => *exit,
            Self::Of(reader) => reader.redact_exit(exit),
        }
    }

    /// Whether the arguments of a process that has ended may be shown; its name always may.
    pub(crate) fn shows_arguments(&self, exit: &Exit) -> bool {
        match self {
            Self::All => true,
            Self::Of(reader) => reader.may_see_arguments(exit),
        }
    }
}

/// Of a process without memory, as a zombie is, the files that only their owner may read are root's (`task_dump_owner()` of
/// fs/proc/base.c).
pub(crate) fn hide_io_without_memory(record: &mut Record) {
    if record.identity.has_mm == 0 {
        record.identity.groups &= !Fields::IO.bits();
        record.io = Io::default();
    }
}

#[cfg(test)]
mod tests;
