//! `fastproc-enter PLACE PROGRAM ARGUMENT…`: runs a program as another user, in its own namespaces, or under a profile of
//! `AppArmor`, in the emulated machines that fastproc is tested on.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, exit},
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount},
    process::{Gid, Resource, Rlimit, Uid, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, capabilities,
        configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities,
        set_thread_gid, set_thread_groups, set_thread_uid, unshare_unsafe,
    },
};

/// This program, from anywhere.
const ENTER: &str = "/bin/fastproc-enter";
const HIERARCHY: &str = "/sys/fs/cgroup";
/// A user that owns nothing in the testbed.
const NOBODY: u32 = 65534;

/// Where, and as whom, a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It runs as a user without any capability.
    Nobody,
    /// It runs as a user who has `CAP_BPF` and `CAP_PERFMON` and no other capability.
    Reader,
    /// It runs as root, in a pid namespace with its own `/proc`.
    PidNamespace,
    /// It runs as root of a user namespace that has no other user.
    UserNamespace,
    /// It runs as root, in a cgroup namespace that begins at its own cgroup, with a mount of its own hierarchy.
    CgroupNamespace,
    /// It runs unchanged, with the `/proc` of its pid namespace: the inner half of `PidNamespace`.
    OwnProc,
    /// It runs unchanged, under a profile of `AppArmor` that does not let it read other processes.
    Confined,
    /// It runs under the profile for a service.
    Service,
    /// It runs under the profile for the exporter in clusters.
    Pod,
}

impl Place {
    const ALL: [Self; 9] = [
        Self::Nobody,
        Self::Reader,
        Self::PidNamespace,
        Self::UserNamespace,
        Self::CgroupNamespace,
        Self::OwnProc,
        Self::Confined,
        Self::Service,
        Self::Pod,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Reader => "reader",
            Self::PidNamespace => "pid-namespace",
            Self::UserNamespace => "user-namespace",
            Self::CgroupNamespace => "cgroup-namespace",
            Self::OwnProc => "own-proc",
            // The names of their profiles.
            Self::Confined => "confined",
            Self::Service => "service",
            Self::Pod => "fastproc-pod",
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let error = enter(&words);
    eprintln!("fastproc-enter: {error}");
    ExitCode::from(125)
}

/// Becomes the program. Returns only on an error.
fn enter(words: &[OsString]) -> io::Error {
    let (Some(place), Some(program)) = (words.first(), words.get(1)) else {
        return io::Error::other("what is to be run where?");
    };
    let Some(place) = Place::ALL.into_iter().find(|known| place == known.name()) else {
        return io::Error::other(format!("there is no place {}", place.display()));
    };
    match go_to(place) {
        Err(error) => error,
        Ok(()) if place == Place::PidNamespace => {
            // Only children are in the new pid namespace.
            match Command::new(ENTER)
                .arg(Place::OwnProc.name())
                .args(&words[1..])
                .status()
            {
                Ok(status) => exit(status.code().unwrap_or(125)),
                Err(error) => error,
            }
        }
        Ok(()) => Command::new(program).args(&words[2..]).exec(),
    }
}

fn go_to(place: Place) -> io::Result<()> {
    match place {
        Place::Nobody => become_nobody()?,
        Place::Reader => {
            // Before 5.11 a map's memory counts as locked.
            setrlimit(
                Resource::Memlock,
                Rlimit {
                    current: None,
                    maximum: None,
                },
            )?;
            set_keep_capabilities(true)?;
            become_nobody()?;
            keep_only(CapabilitySet::BPF | CapabilitySet::PERFMON)?;
        }
        Place::PidNamespace => unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS)?,
        Place::UserNamespace => {
            unshare(UnshareFlags::NEWUSER)?;
            fs::write("/proc/self/uid_map", "0 0 1")?;
            // A process may map its own group from inside once setgroups(2) is denied.
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/gid_map", "0 0 1")?;
        }
        Place::CgroupNamespace => {
            unshare(UnshareFlags::NEWCGROUP | UnshareFlags::NEWNS)?;
            keep_mounts()?;
            rustix::mount::unmount(HIERARCHY, UnmountFlags::DETACH)?;
            mount_new("cgroup2", HIERARCHY)?;
        }
        Place::OwnProc => {
            keep_mounts()?;
            mount_new("proc", "/proc")?;
        }
        Place::Confined | Place::Service | Place::Pod => {
            // This takes effect at the next exec.
            let profile = format!("exec {}", place.name());
            fs::write("/proc/self/attr/apparmor/exec", profile)?;
        }
    }
    Ok(())
}

/// Makes the mounts of this process its own. The root of an initramfs has no parent to share mounts with.
fn keep_mounts() -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change("/", private)?)
}

fn mount_new(kind: &str, place: &str) -> io::Result<()> {
    Ok(mount(kind, place, kind, MountFlags::empty(), None)?)
}

fn become_nobody() -> io::Result<()> {
    set_thread_groups(&[])?;
    set_thread_gid(Gid::from_raw(NOBODY))?;
    set_thread_uid(Uid::from_raw(NOBODY))?;
    Ok(())
}

fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    let permitted = capabilities(None)?.permitted & kept;
    set_capabilities(
        None,
        CapabilitySets {
            effective: permitted,
            permitted,
            inheritable: permitted,
        },
    )?;
    // Ambient, because exec would drop them otherwise.
    for capability in permitted.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: no table of descriptors is unshared, and this program has one thread.
    unsafe { unshare_unsafe(flags) }?;
    Ok(())
}
