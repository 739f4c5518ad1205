//! Who may see what: the kernel's ptrace access check, as a rule over records.

mod mask;

use std::io;

use rustix::thread::{CapabilitySet, capabilities};

pub use self::mask::Mask;
use crate::{
    base::namespaces::{INITIAL_USER_NS, in_initial_user_ns},
    records::record::{Credentials, Users},
    rules::rights::Rights,
    snapshot::{exit::Exit, process::Process},
};

/// Whether a reader may see what the kernel shows only to those who could trace the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// All of it.
    Granted,
    /// Without addresses, wait channel and exit code.
    Denied,
}

const CAP_SYS_PTRACE: u64 = 1 << 19;
/// `MMF_DUMPABLE_MASK`, and `SUID_DUMP_USER` within it.
const DUMPABLE_MASK: u64 = 3;
const DUMPABLE: u64 = 1;

/// Somebody who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Process id.
    pub pid: u32,
    /// Filesystem user id.
    pub fsuid: u32,
    /// Filesystem group id.
    pub fsgid: u32,
    /// Effective capabilities, as bits.
    pub cap_effective: u64,
    /// Inode number of the user namespace; 0 if not known.
    pub user_ns: u32,
    /// Whether a security module with rules of its own (`SELinux`, `AppArmor`, Smack, Landlock) confines the reader. It
    /// may then see itself, and nothing else is certain.
    pub confined: bool,
}

/// Whether the kernel would show this thread everything about everyone: it may trace all, and read files that are not
/// its own.
///
/// Capabilities say so in the initial user namespace alone, and security modules may still object (Landlock to every
/// process outside of its sandbox): the kernel is asked about the parent of its threads, or who has that number here.
pub fn may_trace_all() -> bool {
    let files = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
    let holds = capabilities(None).is_ok_and(|held| {
        held.effective.contains(CapabilitySet::SYS_PTRACE) && held.effective.intersects(files)
    });
    let is_shown = || match std::fs::read_link("/proc/2/exe") {
        // The access is checked before there is found to be no program.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(_) => true,
    };
    holds && in_initial_user_ns() && is_shown()
}

impl Reader {
    /// The reader that is this process; `None` without its [`Fields::USERS`](crate::Fields::USERS) and
    /// [`Fields::CREDENTIALS`](crate::Fields::CREDENTIALS).
    pub fn of(process: Process<'_>) -> Option<Self> {
        let (users, credentials) = (process.users()?, process.credentials()?);
        Some(Self {
            pid: process.pid(),
            fsuid: users.fsuid,
            fsgid: users.fsgid,
            cap_effective: credentials.cap_effective,
            user_ns: credentials.user_ns,
            confined: false,
        })
    }

    /// What this reader may see of `target`: `__ptrace_may_access()` of kernel/ptrace.c with
    /// `PTRACE_MODE_READ_FSCREDS`, and `cap_ptrace_access_check()` of security/commoncap.c.
    ///
    /// Access is granted to the process itself; and otherwise where both of these hold:
    /// - the reader's filesystem ids are the real, effective and saved ids of the target, its effective capabilities
    ///   include all that the target is permitted, both are in one user namespace and the target may be dumped; or the
    ///   reader has `CAP_SYS_PTRACE` over the target's user namespace;
    /// - no security module objects ([`confined`](Self::confined)).
    ///
    /// Where a record does not hold what the rule asks for (the groups that [`of`](Self::of) takes, and
    /// [`Fields::MEMORY_DETAILS`](crate::Fields::MEMORY_DETAILS)), access is denied, as also where the kernel had already
    /// hidden it from whoever read the record.
    pub fn access(&self, target: Process<'_>) -> Access {
        if target.identity().masked == 0 && (self.pid == target.pid() || self.may_trace(target)) {
            Access::Granted
        } else {
            Access::Denied
        }
    }

    /// The same of a process with these rights, at the time when they were read.
    pub fn access_with(&self, rights: &Rights) -> Access {
        let may = self.may_trace_with(&rights.users, &rights.credentials, || rights.is_dumpable);
        if may { Access::Granted } else { Access::Denied }
    }

    /// A process that has ended, with as much of it as this reader might see: of its exit status when it was a zombie,
    /// of its I/O before. Kernels that do not tell whether it could be dumped do not ask for it of a zombie either.
    #[must_use]
    pub fn sees(&self, exit: &Exit) -> Exit {
        let owner = &exit.owner;
        let users = Users {
            uid: exit.uid,
            euid: exit.euid,
            suid: owner.suid,
            gid: exit.gid,
            egid: exit.egid,
            sgid: owner.sgid,
            ..Users::default()
        };
        let credentials = Credentials {
            cap_permitted: owner.cap_permitted,
            user_ns: owner.user_ns,
            ..Credentials::default()
        };
        let may_trace = |is_dumpable| self.may_trace_with(&users, &credentials, || is_dumpable);
        Exit {
            status: exit
                .status
                .filter(|_| may_trace(owner.dumpable != Some(false))),
            io: exit.io.filter(|_| may_trace(owner.dumpable == Some(true))),
            ..*exit
        }
    }

    /// Whether this reader may see the arguments with which a process that has ended executed its program.
    ///
    /// A program may erase them from its command line while it runs, as `mysql` and `curl` do with passwords. So they are for
    /// its user, and for those who might have traced it.
    pub fn sees_arguments(&self, exit: &Exit) -> bool {
        let uids = [exit.uid, exit.euid, exit.owner.suid];
        let gids = [exit.gid, exit.egid, exit.owner.sgid];
        let is_own = uids == [self.fsuid; 3] && gids == [self.fsgid; 3];
        is_own || self.sees(exit).io.is_some()
    }

    fn may_trace(&self, target: Process<'_>) -> bool {
        let of = target.users().zip(target.credentials());
        of.is_some_and(|(users, credentials)| {
            self.may_trace_with(users, credentials, || is_dumpable(target))
        })
    }

    fn may_trace_with(
        &self,
        users: &Users,
        credentials: &Credentials,
        is_dumpable: impl FnOnce() -> bool,
    ) -> bool {
        if self.confined {
            return false;
        }
        if self.may_trace_namespace(credentials.user_ns) {
            // The memory may belong to another user namespace than the credentials; the initial one is above all.
            return self.user_ns == INITIAL_USER_NS || is_dumpable();
        }
        self.has_ids_of(users)
            && self.user_ns != 0
            && self.user_ns == credentials.user_ns
            && credentials.cap_permitted & !self.cap_effective == 0
            && is_dumpable()
    }

    /// `ns_capable(user_ns, CAP_SYS_PTRACE)`, as far as it can be told: capabilities in a namespace hold there and
    /// below, and only the initial one is known to be above every other.
    fn may_trace_namespace(&self, user_ns: u32) -> bool {
        self.cap_effective & CAP_SYS_PTRACE != 0
            && (self.user_ns == INITIAL_USER_NS || (self.user_ns != 0 && self.user_ns == user_ns))
    }

    fn has_ids_of(&self, target: &Users) -> bool {
        [target.euid, target.suid, target.uid] == [self.fsuid; 3]
            && [target.egid, target.sgid, target.gid] == [self.fsgid; 3]
    }
}

fn is_dumpable(target: Process<'_>) -> bool {
    target
        .memory_details()
        .is_some_and(|details| details.mm_flags & DUMPABLE_MASK == DUMPABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        records::{
            fields::Fields,
            record::{Io, Record},
        },
        snapshot::exit::Owner,
    };

    fn target() -> Record {
        let mut record = Record::default();
        record.identity.tgid = 10;
        record.identity.has_mm = 1;
        record.identity.groups =
            (Fields::USERS | Fields::CREDENTIALS | Fields::MEMORY_DETAILS).bits();
        record.memory_details.mm_flags = DUMPABLE;
        let users = &mut record.users;
        for id in [&mut users.uid, &mut users.euid, &mut users.suid] {
            *id = 1000;
        }
        for id in [&mut users.gid, &mut users.egid, &mut users.sgid] {
            *id = 100;
        }
        record.credentials.user_ns = INITIAL_USER_NS;
        record
    }

    const USER: Reader = Reader {
        pid: 20,
        fsuid: 1000,
        fsgid: 100,
        cap_effective: 0,
        user_ns: INITIAL_USER_NS,
        confined: false,
    };
    const ROOT: Reader = Reader {
        fsuid: 0,
        fsgid: 0,
        cap_effective: u64::MAX,
        ..USER
    };

    fn access(reader: Reader, change: impl FnOnce(&mut Record)) -> Access {
        let mut record = target();
        change(&mut record);
        reader.access(Process::new(&record, &[]))
    }

    #[test]
    fn the_same_user_may() {
        assert_eq!(access(USER, |_| ()), Access::Granted);
        assert_eq!(
            access(
                Reader {
                    fsuid: 1001,
                    ..USER
                },
                |_| ()
            ),
            Access::Denied
        );
        assert_eq!(
            access(Reader { fsgid: 101, ..USER }, |_| ()),
            Access::Denied
        );
        assert_eq!(access(USER, |target| target.users.suid = 0), Access::Denied);
        assert_eq!(access(USER, |target| target.users.egid = 0), Access::Denied);
    }

    #[test]
    fn not_what_is_more_powerful_or_may_not_be_dumped() {
        assert_eq!(
            access(USER, |target| target.credentials.cap_permitted = 1),
            Access::Denied
        );
        assert_eq!(
            access(USER, |target| target.memory_details.mm_flags = 0),
            Access::Denied
        );
        assert_eq!(
            access(USER, |target| target.memory_details.mm_flags = 2),
            Access::Denied
        );
        assert_eq!(
            access(USER, |target| target.credentials.user_ns = 7),
            Access::Denied
        );
        assert_eq!(
            access(USER, |target| target.identity.has_mm = 0),
            Access::Granted
        );
    }

    #[test]
    fn another_capability_is_not_the_one_that_the_process_has() {
        let reader = Reader {
            cap_effective: 0b10,
            ..USER
        };
        let seen = |permitted| {
            access(reader, |target| {
                target.credentials.cap_permitted = permitted;
            })
        };
        assert_eq!(seen(0b10), Access::Granted);
        assert_eq!(seen(0b01), Access::Denied);
        assert_eq!(seen(0b11), Access::Denied);
    }

    #[test]
    fn the_capability_counts_where_it_is_held() {
        assert_eq!(access(ROOT, |_| ()), Access::Granted);
        assert_eq!(
            access(ROOT, |target| target.credentials.user_ns = 7),
            Access::Granted
        );
        assert_eq!(
            access(ROOT, |target| target.memory_details.mm_flags = 0),
            Access::Granted
        );
        let contained = Reader { user_ns: 7, ..ROOT };
        assert_eq!(access(contained, |_| ()), Access::Denied);
        assert_eq!(
            access(contained, |target| target.credentials.user_ns = 7),
            Access::Granted
        );
        assert_eq!(
            access(
                Reader {
                    cap_effective: !CAP_SYS_PTRACE,
                    ..ROOT
                },
                |_| ()
            ),
            Access::Denied
        );
    }

    #[test]
    fn of_an_exit_as_much_is_seen_as_of_the_process() {
        let exit = |change: fn(&mut Exit)| {
            let mut exit = Exit {
                uid: 1000,
                euid: 1000,
                gid: 100,
                egid: 100,
                status: Some(256),
                io: Some(Io::default()),
                owner: Owner {
                    suid: 1000,
                    sgid: 100,
                    user_ns: INITIAL_USER_NS,
                    cap_permitted: 0,
                    dumpable: Some(true),
                },
                ..Exit::default()
            };
            change(&mut exit);
            exit
        };
        let seen = |reader: Reader, exit: Exit| {
            let seen = reader.sees(&exit);
            (seen.status.is_some(), seen.io.is_some())
        };
        assert_eq!(seen(USER, exit(|_| ())), (true, true));
        for (dumpable, shown) in [(None, (true, false)), (Some(false), (false, false))] {
            let mut exit = exit(|_| ());
            exit.owner.dumpable = dumpable;
            assert_eq!(seen(USER, exit), shown);
            assert_eq!(seen(ROOT, exit), (true, true));
        }
        let others: [fn(&mut Exit); 6] = [
            |exit| exit.uid = 0,
            |exit| exit.owner.suid = 0,
            |exit| exit.owner.sgid = 0,
            |exit| exit.owner.user_ns = 7,
            |exit| exit.owner.cap_permitted = 1,
            |exit| exit.egid = 0,
        ];
        for change in others {
            assert_eq!(seen(USER, exit(change)), (false, false));
            assert_eq!(seen(ROOT, exit(change)), (true, true));
        }
        let confined = Reader {
            confined: true,
            ..USER
        };
        assert_eq!(seen(confined, exit(|_| ())), (false, false));
    }

    #[test]
    fn what_is_not_known_is_denied() {
        assert_eq!(
            access(ROOT, |target| target.identity.groups = 0),
            Access::Denied
        );
        assert_eq!(
            access(USER, |target| target.identity.groups =
                (Fields::USERS | Fields::CREDENTIALS).bits()),
            Access::Denied
        );
        assert_eq!(
            access(ROOT, |target| target.identity.masked = 1),
            Access::Denied
        );
        assert_eq!(
            access(
                Reader {
                    confined: true,
                    ..ROOT
                },
                |_| ()
            ),
            Access::Denied
        );
        assert_eq!(
            access(Reader { user_ns: 0, ..USER }, |target| target
                .credentials
                .user_ns = 0),
            Access::Denied
        );
    }

    #[test]
    fn everybody_may_see_themselves() {
        assert_eq!(
            access(
                Reader {
                    pid: 10,
                    fsuid: 5,
                    confined: true,
                    ..USER
                },
                |target| target.identity.groups = 0
            ),
            Access::Granted
        );
    }
}
