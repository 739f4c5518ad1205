//! Who may see what: the kernel's ptrace access check, as a rule over records.

pub(crate) mod mask;
mod viewer;

use std::io;

use rustix::thread::{CapabilitySet, capabilities};

pub use self::viewer::Viewer;
use crate::{
    base::{
        frozen,
        namespaces::{INITIAL_USER_NS, in_initial_user_ns},
        proc_root,
    },
    records::record::Users,
    rules::rights::Rights,
    snapshot::{
        exit::{Exit, Owner},
        process::Process,
    },
};

/// Whether a reader may see what the kernel shows only to those who could trace the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The reader may see everything.
    Granted,
    /// The reader may see everything but addresses, wait channel and exit code.
    Denied,
}

const CAP_SYS_PTRACE: u64 = 1 << 19;
/// `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`.
const READS_EVERY_FOLDER: u64 = 1 << 1 | 1 << 2;
/// `MMF_DUMPABLE_MASK`, and `SUID_DUMP_USER` within it.
const DUMPABLE_MASK: u64 = 3;
const DUMPABLE: u64 = 1;

/// The process that reads records.
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
    /// Whether a security module with rules of its own (`SELinux`, `AppArmor`, Smack, Landlock) confines the reader.
    /// This reader may see itself; nothing is certain about other processes.
    pub confined: bool,
}

/// Whether the kernel would show this thread everything about every process: it may trace all of them, and read
/// files that it does not own.
///
/// Capabilities decide that only in the initial user namespace, and a security module may still deny it (Landlock
/// denies every process outside of its sandbox). So this asks the kernel about the process with pid 2, the parent of
/// all kernel threads in the initial pid namespace.
pub fn may_trace_all() -> bool {
    if frozen::folder().is_some() {
        return true;
    }
    let files = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
    let holds = capabilities(None).is_ok_and(|held| {
        held.effective.contains(CapabilitySet::SYS_PTRACE) && held.effective.intersects(files)
    });
    let is_shown = || match std::fs::read_link(proc_root::path("/proc/2/exe")) {
        // The kernel checks access before it finds that there is no program.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(_) => true,
    };
    holds && in_initial_user_ns() && is_shown()
}

impl Reader {
    /// The current process as a reader. `None` without its [`Fields::USERS`](crate::Fields::USERS) and
    /// [`Fields::CREDENTIALS`](crate::Fields::CREDENTIALS).
    pub fn from_process(process: Process<'_>) -> Option<Self> {
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

    /// What this reader may see of `target`, by the rule of `__ptrace_may_access()` in kernel/ptrace.c with
    /// `PTRACE_MODE_READ_FSCREDS`, and of `cap_ptrace_access_check()` in security/commoncap.c.
    ///
    /// A process may see itself. Otherwise access is granted if both of these hold:
    /// - the reader's filesystem ids equal the real, effective and saved ids of the target, its effective
    ///   capabilities include all permitted ones of the target, both are in one user namespace and the target
    ///   is dumpable; or the reader has `CAP_SYS_PTRACE` in the target's user namespace;
    /// - no security module objects ([`confined`](Self::confined)).
    ///
    /// Access is denied if a record lacks what the rule needs (the groups that
    /// [`from_process`](Self::from_process) needs, and
    /// [`Fields::MEMORY_DETAILS`](crate::Fields::MEMORY_DETAILS)), or if the kernel had already hidden it
    /// from the reader of the record.
    pub fn access(&self, target: Process<'_>) -> Access {
        if target.identity().masked == 0 && (self.pid == target.pid() || self.may_trace(target)) {
            Access::Granted
        } else {
            Access::Denied
        }
    }

    /// Whether this reader may see what `target` has open, as in `/proc/PID/fd`: the records of [`files`](crate::files).
    ///
    /// A process may see its own. Otherwise the links need the access of [`access`](Self::access). And the folder has the mode
    /// 0500: it can be read by its owner, who is the effective user of a process that is dumpable and else root
    /// (`task_dump_owner()` in fs/proc/base.c), or by a reader with `CAP_DAC_READ_SEARCH` or `CAP_DAC_OVERRIDE`. These, and the ids of
    /// root, count only in the initial user namespace.
    pub fn may_list_files(&self, target: Process<'_>) -> bool {
        if self.access(target) == Access::Denied {
            return false;
        }
        let user = target.users().map(|users| users.euid);
        self.pid == target.pid() || self.reads_folder(user.filter(|_| is_dumpable(target)))
    }

    /// Whether this reader may list a folder of the mode 0500 of a process with this effective user; `None` if it may not be dumped.
    fn reads_folder(&self, user: Option<u32>) -> bool {
        let is_initial = self.user_ns == INITIAL_USER_NS;
        let reads_all = is_initial && self.cap_effective & READS_EVERY_FOLDER != 0;
        let owns = match user {
            Some(user) => user == self.fsuid,
            None => is_initial && self.fsuid == 0,
        };
        reads_all || owns
    }

    /// Whether the kernel certainly denies this reader access to a process with these ids in this user namespace. The reader has no
    /// capabilities. Its own processes are not certain: a security module may decide, and one of them is the reader. Nor are those
    /// of another user namespace: its creator has all capabilities there.
    #[doc(hidden)]
    pub fn is_surely_denied(&self, of: &Users, user_ns: u32) -> bool {
        let is_another = [of.uid, of.euid, of.suid] != [self.fsuid; 3]
            || [of.gid, of.egid, of.sgid] != [self.fsgid; 3];
        is_another && user_ns == self.user_ns
    }

    /// Removes from an exit what this reader could not have seen: the exit status of the zombie, and the I/O
    /// counters before. Older kernels do not show whether a zombie was dumpable, and do not check it for the
    /// exit status.
    #[must_use]
    pub fn redact_exit(&self, exit: &Exit) -> Exit {
        let may_trace = |is_dumpable| self.may_trace_with(&exit.owner, || is_dumpable);
        Exit {
            status: exit
                .status
                .filter(|_| may_trace(exit.dumpable != Some(false))),
            io: exit.io.filter(|_| may_trace(exit.dumpable == Some(true))),
            ..*exit
        }
    }

    /// Whether this reader is this owner, with all its rights.
    fn owns(&self, owner: &Owner) -> bool {
        let users = &owner.users;
        [users.uid, users.euid, users.suid] == [self.fsuid; 3]
            && [users.gid, users.egid, users.sgid] == [self.fsgid; 3]
            && self.user_ns != 0
            && self.user_ns == owner.user_ns
            && owner.cap_permitted & !self.cap_effective == 0
    }

    fn may_trace(&self, target: Process<'_>) -> bool {
        let of = target.users().zip(target.credentials());
        of.is_some_and(|(users, credentials)| {
            self.may_trace_with(&Owner::new(users, credentials), || is_dumpable(target))
        })
    }

    fn may_trace_with(&self, owner: &Owner, is_dumpable: impl FnOnce() -> bool) -> bool {
        if self.confined {
            return false;
        }
        if self.may_trace_namespace(owner.user_ns) {
            // The memory may belong to another user namespace than the credentials. The initial one is
            // above all of them.
            return self.user_ns == INITIAL_USER_NS || is_dumpable();
        }
        self.owns(owner) && is_dumpable()
    }

    /// `ns_capable(user_ns, CAP_SYS_PTRACE)`, as far as known here: capabilities count in their own namespace and those
    /// below it, and only the initial one is known to be above all others.
    fn may_trace_namespace(&self, user_ns: u32) -> bool {
        self.cap_effective & CAP_SYS_PTRACE != 0
            && (self.user_ns == INITIAL_USER_NS || (self.user_ns != 0 && self.user_ns == user_ns))
    }
}

fn is_dumpable(target: Process<'_>) -> bool {
    target
        .memory_details()
        .is_some_and(|details| details.mm_flags & DUMPABLE_MASK == DUMPABLE)
}

impl Rights {
    /// As [`Reader::access`], for a process that had these rights when they were read.
    pub fn access_of(&self, reader: &Reader) -> Access {
        let may = reader.may_trace_with(&self.owner, || self.is_dumpable);
        if may { Access::Granted } else { Access::Denied }
    }

    /// As [`Reader::may_list_files`], for another process that had these rights when its files were read.
    pub(crate) fn show_files_to(&self, reader: &Reader) -> bool {
        let user = self.is_dumpable.then_some(self.owner.users.euid);
        self.access_of(reader) == Access::Granted && reader.reads_folder(user)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        records::{
            fields::Fields,
            record::{Io, Record, Users},
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
    /// The owner of the user's processes.
    pub(crate) const USERS: Owner = Owner {
        users: Users {
            uid: 1000,
            euid: 1000,
            suid: 1000,
            fsuid: 1000,
            gid: 100,
            egid: 100,
            sgid: 100,
            fsgid: 100,
        },
        user_ns: INITIAL_USER_NS,
        cap_permitted: 0,
    };

    fn access(reader: Reader, change: impl FnOnce(&mut Record)) -> Access {
        let mut record = target();
        change(&mut record);
        reader.access(Process::new(&record, &[]))
    }

    #[test]
    fn files_are_listed_for_who_may_trace_and_read_the_folder() {
        let lists = |reader: Reader, change: fn(&mut Record)| {
            let mut record = target();
            change(&mut record);
            reader.may_list_files(Process::new(&record, &[]))
        };
        assert!(lists(USER, |_| ()) && lists(ROOT, |_| ()));
        let other = Reader {
            fsuid: 1001,
            ..USER
        };
        assert!(!lists(other, |_| ()));
        // The folder of a process that may not be dumped belongs to root.
        let undumpable: fn(&mut Record) = |target| target.memory_details.mm_flags = 0;
        assert!(!lists(USER, undumpable) && lists(ROOT, undumpable));
        // Who may trace every process, and reads no folder of others.
        let tracer = Reader {
            cap_effective: CAP_SYS_PTRACE,
            ..other
        };
        assert_eq!(access(tracer, |_| ()), Access::Granted);
        assert!(!lists(tracer, |_| ()));
        let own = Reader {
            fsuid: 1000,
            ..tracer
        };
        assert!(lists(own, |_| ()) && !lists(own, undumpable));
        let root = Reader { fsuid: 0, ..tracer };
        assert!(!lists(root, |_| ()) && lists(root, undumpable));
        for capability in [1 << 1, 1 << 2] {
            let reads = |cap_effective, user_ns| {
                let reader = Reader {
                    cap_effective,
                    user_ns,
                    ..other
                };
                lists(reader, |target| target.credentials.user_ns = 7)
            };
            assert!(reads(CAP_SYS_PTRACE | capability, INITIAL_USER_NS));
            // Its capabilities do not count for the folder.
            assert!(!reads(CAP_SYS_PTRACE | capability, 7));
            assert!(!reads(capability, INITIAL_USER_NS));
        }
        let itself = Reader { pid: 10, ..other };
        assert!(lists(itself, undumpable));
        assert!(!lists(itself, |target| target.identity.masked = 1));
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
    fn an_exit_shows_as_much_as_its_process_did() {
        let exit = |change: fn(&mut Exit)| {
            let mut exit = Exit {
                status: Some(256),
                io: Some(Io::default()),
                owner: USERS,
                dumpable: Some(true),
                ..Exit::default()
            };
            change(&mut exit);
            exit
        };
        let seen = |reader: Reader, exit: Exit| {
            let seen = reader.redact_exit(&exit);
            (seen.status.is_some(), seen.io.is_some())
        };
        assert_eq!(seen(USER, exit(|_| ())), (true, true));
        for (dumpable, shown) in [(None, (true, false)), (Some(false), (false, false))] {
            let mut exit = exit(|_| ());
            exit.dumpable = dumpable;
            assert_eq!(seen(USER, exit), shown);
            assert_eq!(seen(ROOT, exit), (true, true));
        }
        let others: [fn(&mut Exit); 6] = [
            |exit| exit.owner.users.uid = 0,
            |exit| exit.owner.users.suid = 0,
            |exit| exit.owner.users.sgid = 0,
            |exit| exit.owner.user_ns = 7,
            |exit| exit.owner.cap_permitted = 1,
            |exit| exit.owner.users.egid = 0,
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
    fn access_is_denied_if_ids_are_unknown() {
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
