//! Whether this host lets us read its structures: decided from its BTF and by trying, never by a version.

use std::{fs, ops::Range};

use libbpf_rs::{ErrorKind, MapHandle};
use rustix::thread::CapabilitySet;

use crate::{
    base::{
        error::Error,
        namespaces::{Numbering, in_user_namespace},
        proc_root, timing,
    },
    kernel::{KernelTypes, Wanted, shapes, walk::Walk},
    records::fields::Fields,
};

/// What this kernel has beyond the walk itself.
#[derive(Debug)]
pub(crate) struct Support {
    /// `bpf_map_lookup_percpu_elem()` (5.19), by which per-CPU memory is found; kernels that show the exact resident
    /// set all have it.
    pub(crate) percpu_lookup: bool,
    /// The features of a thread, where users have shadow stacks (x86, from 6.6 on).
    pub(crate) thread_features: bool,
    /// Whether ids are those of this process's pid namespace, and not the initial one's.
    pub(crate) nested: bool,
    /// The code that is skipped when the kernel unwinds a stack to find a wait channel; otherwise empty.
    pub(crate) scheduler: Scheduler,
    pub(crate) types: KernelTypes,
}

/// `in_sched_functions()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduler {
    pub(crate) sched: Range<u64>,
    pub(crate) locks: Range<u64>,
}

/// Refuses for every reason that is known before a program is loaded; the verifier reports the rest. `allow`: checks
/// that there is memory, before any is allocated.
pub(crate) fn check(
    walk: Walk,
    fields: Fields,
    allow: impl FnOnce() -> Result<(), Error>,
) -> Result<Support, Error> {
    let numbering = Numbering::of_proc()?;
    let (machine, own) = ("the whole machine", "this pid namespace");
    let of_others = match (walk, numbering) {
        (Walk::OpenCoded, Numbering::Own) => Some((machine, own)),
        // The kernel's iterator visits the reader's pid namespace.
        (Walk::Iterator, Numbering::Outer) => Some((own, machine)),
        _ => None,
    };
    if let Some((reads, shows)) = of_others {
        return Err(Error::OtherProcesses { reads, shows });
    }
    permitted()?;
    allow()?;
    timing::done("checks");
    let types = KernelTypes::read(Wanted {
        object: Some(walk.object(fields)),
        structures: &["bpf_iter__task", "thread_struct", "signal_struct"],
        paths: &shapes::paths(),
        functions: &["bpf_iter_task_new", "bpf_map_lookup_percpu_elem"],
        ..Wanted::default()
    })?;
    timing::done("type information");
    shapes::check(&types, fields)?;
    match walk {
        Walk::OpenCoded if !types.has_function("bpf_iter_task_new") => Err(Error::KernelTooOld {
            missing: "open-coded task iterator (bpf_iter_task_new)",
            since: "6.7",
        }),
        Walk::Iterator if !types.has_type("bpf_iter__task") => Err(Error::KernelTooOld {
            missing: "task iterator (iter/task)",
            since: "5.8",
        }),
        _ => Ok(Support {
            nested: numbering == Numbering::Own,
            percpu_lookup: types.has_function("bpf_map_lookup_percpu_elem"),
            thread_features: types.offset("thread_struct", "features").is_some()
                && types.offset("thread_struct", "features_locked").is_some(),
            scheduler: if unwinds_for_wchan(&types) {
                scheduler(&fs::read(proc_root::path("/proc/kallsyms")).unwrap_or_default())
            } else {
                Scheduler::default()
            },
            types,
        }),
    }
}

/// Refuses a reader from whom the kernel would hide what the programs see, or who may not load programs.
pub(crate) fn permitted() -> Result<(), Error> {
    may_load()?;
    hidepid()?;
    lockdown()?;
    accounting()
}

/// Kernels before 5.16, in which `core_state` moved to `signal_struct`; see `wchan.h`.
fn unwinds_for_wchan(types: &KernelTypes) -> bool {
    types.has_type("signal_struct") && types.offset("signal_struct", "core_state").is_none()
}

/// Finds the code in the kernel's symbols. If their addresses are hidden it is empty, and the kernel is queried for
/// every task that does not run.
fn scheduler(kallsyms: &[u8]) -> Scheduler {
    let mut found = Scheduler::default();
    for line in kallsyms.split(|&byte| byte == b'\n') {
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(address), Some(_kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let place = match name {
            b"__sched_text_start" => &mut found.sched.start,
            b"__sched_text_end" => &mut found.sched.end,
            b"__lock_text_start" => &mut found.locks.start,
            b"__lock_text_end" => &mut found.locks.end,
            _ => continue,
        };
        let address = std::str::from_utf8(address).unwrap_or_default();
        *place = u64::from_str_radix(address, 16).unwrap_or(0);
    }
    if found.sched.is_empty() || found.locks.is_empty() {
        return Scheduler::default();
    }
    found
}

/// The effective capabilities of this thread.
///
/// Not by rustix: valgrind believes that the kernel writes only the first of the two structures, and would call the test for
/// `CAP_BPF`, a bit of the second, one of undefined memory.
fn effective() -> CapabilitySet {
    // `_LINUX_CAPABILITY_VERSION_3`, and this thread.
    let header = [0x2008_0522_u32, 0];
    // The effective, permitted and inheritable capabilities, first their low words.
    let mut sets = [0_u32; 6];
    // SAFETY: this version's header has two words, and the kernel writes six.
    let failed = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    let held = if failed == 0 { sets } else { [0; 6] };
    CapabilitySet::from_bits_retain(u64::from(held[0]) | u64::from(held[3]) << 32)
}

/// Whether this thread may load programs at all.
pub(crate) fn may_load() -> Result<(), Error> {
    // Its capabilities do not count outside of it.
    if in_user_namespace() {
        return Err(Error::Namespace { namespace: "user" });
    }
    capabilities()?;
    system_call()
}

fn capabilities() -> Result<(), Error> {
    let effective = effective();
    // The kernel accepts CAP_SYS_ADMIN for either, as before they existed (5.8).
    if effective.contains(CapabilitySet::SYS_ADMIN) {
        return Ok(());
    }
    let (bpf, perfmon) = (
        effective.contains(CapabilitySet::BPF),
        effective.contains(CapabilitySet::PERFMON),
    );
    let missing = match (bpf, perfmon) {
        (true, true) => return Ok(()),
        (false, false) => "CAP_BPF and CAP_PERFMON are",
        (false, true) => "CAP_BPF is",
        (true, false) => "CAP_PERFMON is",
    };
    Err(Error::MissingCapability { missing })
}

/// Whether anything but the capabilities keeps this thread from calling bpf(2).
fn system_call() -> Result<(), Error> {
    // A call that needs no capability and changes nothing. A kernel that runs it finds nothing there.
    match MapHandle::from_pinned_path("") {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::Forbidden {
            reason: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// With hidepid a reader sees only processes it has ptrace access to; one with the capability sees all.
fn hidepid() -> Result<(), Error> {
    if effective().contains(CapabilitySet::SYS_PTRACE) {
        return Ok(());
    }
    if crate::base::host::proc_hides_processes()? {
        return Err(Error::HidePid);
    }
    Ok(())
}

fn lockdown() -> Result<(), Error> {
    // The file is missing without the lockdown module, or if securityfs is not mounted; then the verifier will refuse.
    let level = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if level.contains("[confidentiality]") {
        Err(Error::Lockdown)
    } else {
        Ok(())
    }
}

/// If ticks do not sample CPU time, a task's times are elsewhere, and partly not in memory.
fn accounting() -> Result<(), Error> {
    if cfg!(any(target_arch = "s390x", target_arch = "powerpc64")) {
        return Err(Error::CpuAccounting {
            how: "by the architecture's own clock",
        });
    }
    let full = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    if !matches!(full.trim(), "" | "(null)") {
        return Err(Error::CpuAccounting {
            how: "by nohz_full CPUs",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Scheduler, scheduler};

    #[test]
    fn the_schedulers_code_is_found_where_its_addresses_are_shown() {
        let shown = b"ffffffff81000000 T _text\nffffffff81900010 T __sched_text_start\n\
            ffffffff81900020 t __schedule\nffffffff81902000 T __sched_text_end\n\
            ffffffff81903000 T __lock_text_start\nffffffff81904000 T __lock_text_end\n\
            ffffffffc0000000 t __sched_text_start_of_some\t[module]\n";
        let found = scheduler(shown);
        assert_eq!(found.sched, 0xffff_ffff_8190_0010..0xffff_ffff_8190_2000);
        assert_eq!(found.locks, 0xffff_ffff_8190_3000..0xffff_ffff_8190_4000);

        let hidden: Vec<u8> = shown
            .split(|&byte| byte == b'\n')
            .flat_map(|line| {
                [
                    &b"0000000000000000"[..],
                    line.get(16..).unwrap_or_default(),
                    b"\n",
                ]
                .concat()
            })
            .collect();
        assert_eq!(scheduler(&hidden), Scheduler::default());
        assert_eq!(scheduler(b""), Scheduler::default());
    }
}
