//! Reads the rights of a process from `/proc` at the same time as other data.

use rustix::fs::{AtFlags, statat};

use super::{
    DetailError,
    directory::{Directory, failed},
};
use crate::{rules::rights::Rights, snapshot::exit::Owner, text::status::parse_rights};

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use crate::{base::host::Host, details::Directories};

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
