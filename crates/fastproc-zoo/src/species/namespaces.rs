//! Other namespaces: pids with several numbers, users that are someone else outside, clocks with an offset.

use rustix::{io::Errno, thread::UnshareFlags};

use super::{Species, single};
use crate::{
    expect::Expect::{OtherNamespace, State, Status, Words},
    nest::{At, Grown, Nest, Trouble, idle},
    sys,
};

pub const SPECIES: &[Species] = &[
    Species {
        animals: &[
            (
                "pidns-1",
                &[State('S'), Words("NSpid", 2), OtherNamespace("pid")],
            ),
            // In a session and a process group of its own, where the outer one is in one of another namespace.
            (
                "pidns-2",
                &[
                    State('S'),
                    Words("NSpid", 3),
                    Words("NSsid", 3),
                    OtherNamespace("pid"),
                ],
            ),
            (
                "pidns-3",
                &[
                    State('S'),
                    Words("NSpid", 4),
                    Words("NSpgid", 4),
                    OtherNamespace("pid"),
                ],
            ),
            // Not the init of its namespace.
            (
                "pidns-3-second",
                &[
                    State('S'),
                    Words("NSpid", 4),
                    Words("NStgid", 4),
                    OtherNamespace("pid"),
                ],
            ),
        ],
        raise: |nest| {
            unshare_or_with_users(UnshareFlags::NEWPID)?;
            nest.fork(|nest| {
                deeper(nest, "pidns-1", |nest| {
                    rustix::process::setsid().at("setsid")?;
                    deeper(nest, "pidns-2", |nest| {
                        nest.fork(|nest| nest.settle("pidns-3-second"))?;
                        nest.settle("pidns-3")
                    })
                })
            })?;
            idle()
        },
    },
    single!(
        "userns",
        [OtherNamespace("user"), Status("Threads", "1")],
        |nest| {
            enter_users()?;
            nest.settle("userns")
        }
    ),
    single!("timens", [OtherNamespace("time")], |nest| {
        unshare_or_with_users(UnshareFlags::NEWTIME)?;
        std::fs::write("/proc/self/timens_offsets", "boottime 86400 0\n").at("timens_offsets")?;
        nest.fork(|nest| nest.settle("timens"))?;
        idle()
    }),
    single!(
        "namespaces",
        [
            OtherNamespace("uts"),
            OtherNamespace("ipc"),
            OtherNamespace("net"),
            OtherNamespace("mnt")
        ],
        |nest| {
            unshare_or_with_users(
                UnshareFlags::NEWUTS
                    | UnshareFlags::NEWIPC
                    | UnshareFlags::NEWNET
                    | UnshareFlags::NEWNS,
            )?;
            nest.settle("namespaces")
        }
    ),
];

/// The init of a namespace, whose children are in one below.
fn deeper(nest: &Nest, label: &str, inner: fn(&Nest) -> Grown) -> Grown {
    sys::unshare(UnshareFlags::NEWPID).at("unshare(CLONE_NEWPID)")?;
    nest.fork(inner)?;
    nest.settle(label)
}

/// Without privilege namespaces are had inside of a user namespace, where the kernel allows that.
fn unshare_or_with_users(flags: UnshareFlags) -> Result<(), Trouble> {
    match sys::unshare(flags) {
        Err(Errno::PERM) => {
            enter_users()?;
            sys::unshare(flags).at("unshare in a user namespace")
        }
        result => result.at("unshare"),
    }
}

fn enter_users() -> Result<(), Trouble> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER).at("unshare(CLONE_NEWUSER)")?;
    std::fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1\n", uid.as_raw())).at("uid_map")?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1\n", gid.as_raw())).at("gid_map")
}
