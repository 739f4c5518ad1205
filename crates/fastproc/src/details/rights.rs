//! Reads the rights of a process from `/proc` at the same time as other data.

use rustix::fs::{AtFlags, statat};

use super::{
    DetailError,
    directory::{Directory, failed},
};
use crate::{
    records::record::{Credentials, Users},
    rules::rights::Rights,
    snapshot::exit::Owner,
};

impl Directory {
    /// The current rights of the process. If two calls return the same, everything that was read in between was read
    /// with these rights.
    ///
    /// # Errors
    /// The process has exited, or is hidden from this reader.
    pub fn rights(&self) -> Result<Rights, DetailError> {
        const WHAT: &str = "credentials";
        let mut status = Vec::new();
        self.file(c"status", WHAT, &mut status)?;
        let (mut users, credentials) = parse_rights(&status).ok_or_else(|| {
            let source = std::io::Error::other("its status is not what the kernel writes there");
            failed(self.pid(), WHAT, source)
        })?;
        // The namespace is a link to a file. The owner of `exe` shows whether the process is dumpable
        // (`task_dump_owner()`).
        let failed = |error: rustix::io::Errno| failed(self.pid(), WHAT, error.into());
        let namespace = statat(self.fd(), c"ns/user", AtFlags::empty()).map_err(failed)?;
        let owner = statat(self.fd(), c"exe", AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        users.fsuid = users.euid;
        users.fsgid = users.egid;
        Ok(Rights {
            owner: Owner {
                users,
                user_ns: namespace.st_ino as u32,
                cap_permitted: credentials.cap_permitted,
            },
            is_dumpable: (owner.st_uid, owner.st_gid) == (users.euid, users.egid),
        })
    }

    /// The user namespace of the process, as a file.
    ///
    /// # Errors
    /// The process has exited, or is hidden from this reader.
    pub fn user_namespace(&self) -> Result<std::fs::File, DetailError> {
        let file = super::directory::open(self.fd(), c"ns/user");
        file.map(Into::into)
            .map_err(|error| failed(self.pid(), "user namespace", error))
    }
}

/// Parses the rights of a process from its status: all users and groups, permitted and effective capabilities, and
/// `no_new_privs`. `None`: the text is not a status file.
pub fn parse_rights(status: &[u8]) -> Option<(Users, Credentials)> {
    // The name of the process comes first, and cannot contain a line end.
    let text = std::str::from_utf8(status.get(status.iter().position(|&b| b == b'\n')?..)?);
    let text = text.ok()?;
    let line = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let ids = |name| {
        let mut ids = line(name)?.split_whitespace().map(str::parse);
        let mut next = || ids.next()?.ok();
        Some([next()?, next()?, next()?, next()?])
    };
    let set = |name| u64::from_str_radix(line(name)?.trim(), 16).ok();
    let ([uid, euid, suid, fsuid], [gid, egid, sgid, fsgid]) = (ids("Uid")?, ids("Gid")?);
    let users = Users {
        uid,
        euid,
        suid,
        fsuid,
        gid,
        egid,
        sgid,
        fsgid,
    };
    let credentials = Credentials {
        cap_permitted: set("CapPrm")?,
        cap_effective: set("CapEff")?,
        atomic_flags: u64::from(line("NoNewPrivs")?.trim() != "0"),
        ..Credentials::default()
    };
    Some((users, credentials))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::{base::host::Host, details::Directories};

    #[test]
    fn they_are_read_below_the_name() {
        let status = b"Name:\tUid:\\n\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n\
            CapPrm:\t00000000000000ff\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t1\n";
        let (users, credentials) = parse_rights(status).expect("all is there");
        let uids = [users.uid, users.euid, users.suid, users.fsuid];
        let gids = [users.gid, users.egid, users.sgid, users.fsgid];
        assert_eq!((uids, gids), ([1, 2, 3, 4], [5, 6, 7, 8]));
        assert_eq!(credentials.cap_permitted, 0xff);
        assert_eq!(credentials.cap_effective, 0x1ff_ffff_ffff);
        assert!(credentials.no_new_privs());
        assert!(parse_rights(b"Name:\tx\nUid:\t1\t2\n").is_none());
        assert!(parse_rights(b"").is_none());
    }

    #[test]
    fn whether_a_process_may_be_dumped_is_told_by_who_owns_its_files() {
        let host = Host::read().expect("/proc");
        let directories = Directories::open(&host).expect("/proc");
        let stat = std::fs::read("/proc/self/stat").expect("/proc is mounted");
        let ticks = super::super::directory::start_ticks(&stat).expect("a start");
        let start_ns = ticks * (1_000_000_000 / host.ticks_per_second);
        let start_ns = start_ns.saturating_add_signed(-host.boot_offset_ns);
        let directory = directories
            .get(std::process::id(), start_ns)
            .expect("this process");
        let rights = directory.rights().expect("its own");
        let own = std::fs::metadata("/proc/self/ns/user").expect("/proc is mounted");
        assert_eq!(rights.owner.user_ns, own.ino() as u32);
        assert_eq!(rights.owner.users.euid, rustix::process::geteuid().as_raw());
        let same = directory.rights().expect("its own");
        assert_eq!(rights, same);
    }
}
