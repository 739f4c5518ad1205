//! Who it is and what it may: ids, groups, capabilities, seccomp.

use rustix::{
    process::{Gid, Uid},
    thread::{CapabilitySet, CapabilitySets},
};

use super::{Species, single};
use crate::{
    expect::Expect::{State, Status, Words},
    nest::{At, Grown, Nest, Trouble},
    sys,
};

pub const SPECIES: &[Species] = &[
    // Real, effective, saved and file system ids, all different.
    single!(
        "ids",
        [
            Status("Uid", "1001 1002 1003 1004"),
            Status("Gid", "2001 2002 2003 2004")
        ],
        |nest| {
            rustix::thread::set_keep_capabilities(true).at("PR_SET_KEEPCAPS")?;
            rustix::thread::set_thread_res_gid(gid(2001), gid(2002), gid(2003)).at("setresgid")?;
            rustix::thread::set_thread_res_uid(uid(1001), uid(1002), uid(1003)).at("setresuid")?;
            let kept = CapabilitySet::SETUID | CapabilitySet::SETGID;
            set_capabilities(kept, kept, CapabilitySet::empty())?;
            if !sys::set_fs_ids(1004, 2004) {
                return Err(Trouble::broken("setfsuid or setfsgid did nothing"));
            }
            nest.settle("ids")
        }
    ),
    // The ids that stand for none are (unsigned) -1 and -2 and longer than others.
    single!(
        "ids-largest",
        [Status("Uid", "4294967294 4294967294 4294967294 4294967294")],
        |nest| {
            rustix::thread::set_thread_res_gid(
                gid(u32::MAX - 1),
                gid(u32::MAX - 1),
                gid(u32::MAX - 1),
            )
            .at("setresgid")?;
            rustix::thread::set_thread_res_uid(
                uid(u32::MAX - 1),
                uid(u32::MAX - 1),
                uid(u32::MAX - 1),
            )
            .at("setresuid")?;
            nest.settle("ids-largest")
        }
    ),
    single!("groups-0", [Words("Groups", 0)], |nest| groups(
        nest, "groups-0", 0
    )),
    single!("groups-40", [Words("Groups", 40)], |nest| groups(
        nest,
        "groups-40",
        40
    )),
    single!("groups-300", [Words("Groups", 300)], |nest| groups(
        nest,
        "groups-300",
        300
    )),
    // NGROUPS_MAX: its status is far longer than a page.
    single!("groups-65536", [Words("Groups", 65_536)], |nest| groups(
        nest,
        "groups-65536",
        65_536
    )),
    // Each of the sets differs from the others. CAP_CHOWN is 0, CAP_NET_BIND_SERVICE 10, CAP_NET_RAW 13, CAP_KILL 5.
    single!(
        "capabilities",
        [
            Status("CapInh", "0000000000002400"),
            Status("CapPrm", "0000000000002421"),
            Status("CapEff", "0000000000000420"),
            Status("CapAmb", "0000000000000400"),
        ],
        |nest| {
            use rustix::thread::{
                configure_capability_in_ambient_set, remove_capability_from_bounding_set,
            };
            remove_capability_from_bounding_set(CapabilitySet::SYS_MODULE).at("PR_CAPBSET_DROP")?;
            let inheritable = CapabilitySet::NET_BIND_SERVICE | CapabilitySet::NET_RAW;
            set_capabilities(
                CapabilitySet::NET_BIND_SERVICE | CapabilitySet::KILL,
                inheritable | CapabilitySet::CHOWN | CapabilitySet::KILL,
                inheritable,
            )?;
            configure_capability_in_ambient_set(CapabilitySet::NET_BIND_SERVICE, true)
                .at("PR_CAP_AMBIENT_RAISE")?;
            nest.settle("capabilities")
        }
    ),
    single!(
        "no-capabilities",
        [
            Status("CapPrm", "0000000000000000"),
            Status("CapEff", "0000000000000000")
        ],
        |nest| {
            set_capabilities(
                CapabilitySet::empty(),
                CapabilitySet::empty(),
                CapabilitySet::empty(),
            )?;
            nest.settle("no-capabilities")
        }
    ),
    single!("no-new-privs", [Status("NoNewPrivs", "1")], |nest| {
        rustix::thread::set_no_new_privs(true).at("PR_SET_NO_NEW_PRIVS")?;
        nest.settle("no-new-privs")
    }),
    // It may read, write, exit and return from a signal, and that is all; so it waits in a read that never ends.
    single!(
        "seccomp-strict",
        [State('S'), Status("Seccomp", "1")],
        |nest| {
            let (silence, _held) = rustix::pipe::pipe().at("pipe")?;
            nest.announce("seccomp-strict")?;
            rustix::thread::set_secure_computing_mode(rustix::thread::SecureComputingMode::Strict)
                .at("PR_SET_SECCOMP")?;
            loop {
                let _ = rustix::io::read(&silence, &mut [0; 1]);
            }
        }
    ),
    single!(
        "seccomp-filter",
        [
            Status("Seccomp", "2"),
            Status("NoNewPrivs", "1"),
            Status("Seccomp_filters", "2")
        ],
        |nest| {
            rustix::thread::set_no_new_privs(true).at("PR_SET_NO_NEW_PRIVS")?;
            sys::filter_system_calls().at("seccomp")?;
            sys::filter_system_calls().at("seccomp")?;
            nest.settle("seccomp-filter")
        }
    ),
];

fn uid(id: u32) -> Uid {
    Uid::from_raw(id)
}

fn gid(id: u32) -> Gid {
    Gid::from_raw(id)
}

fn groups(nest: &Nest, label: &str, count: u32) -> Grown {
    let groups: Vec<Gid> = (0..count).map(|number| gid(5_000 + 3 * number)).collect();
    rustix::thread::set_thread_groups(&groups).at("setgroups")?;
    nest.settle(label)
}

fn set_capabilities(
    effective: CapabilitySet,
    permitted: CapabilitySet,
    inheritable: CapabilitySet,
) -> Result<(), Trouble> {
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective,
            permitted,
            inheritable,
        },
    )
    .at("capset")
}
