//! What a viewer sees of exited processes.

use rustix::{
    process::{getegid, geteuid},
    thread::capabilities,
};

use super::{Reader, may_trace_all};
use crate::{
    base::namespaces::own_user_ns,
    snapshot::exit::{Exit, Owner},
};

/// A viewer of exited processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Somebody to whom the kernel shows everything.
    All,
    /// A reader without this right.
    Of(Reader),
}

impl Viewer {
    /// The calling thread: [`All`](Self::All) if it [may trace all processes](may_trace_all). If not, it sees the
    /// arguments of its own user's processes, but no exit status and no I/O, which a security module may deny.
    pub fn own() -> Self {
        if may_trace_all() {
            return Self::All;
        }
        let held = capabilities(None).map(|held| held.effective.bits());
        Self::Of(Reader {
            pid: std::process::id(),
            fsuid: geteuid().as_raw(),
            fsgid: getegid().as_raw(),
            cap_effective: held.unwrap_or(0),
            user_ns: own_user_ns(),
            confined: true,
        })
    }

    /// Removes from an exit what this viewer could not have seen of the process: its exit status and its I/O.
    #[must_use]
    pub fn redact_exit(&self, exit: &Exit) -> Exit {
        match self {
            Self::All => *exit,
            Self::Of(reader) => reader.redact_exit(exit),
        }
    }

    /// Whether this viewer may see the arguments of a process that it saw exit.
    pub(crate) fn may_see_arguments(&self, exit: &Exit) -> bool {
        match self {
            Self::All => true,
            Self::Of(reader) => reader.owns(&exit.owner) || reader.redact_exit(exit).io.is_some(),
        }
    }

    /// Whether this viewer may see the arguments of a program that was executed by this owner.
    pub(crate) fn may_see_arguments_of(&self, owner: &Owner) -> bool {
        match self {
            Self::All => true,
            Self::Of(reader) => {
                let namespace = owner.user_ns;
                reader.owns(owner) || (!reader.confined && reader.may_trace_namespace(namespace))
            }
        }
    }
}
