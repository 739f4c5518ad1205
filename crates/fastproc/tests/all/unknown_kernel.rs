//! A kernel that keeps a value where the programs do not expect it: the test edits the type information, and mounts it
//! in place of this kernel's for one process.

use std::fs;

use fastproc::{Collector, Error, Fields, SourceKind};
use fastproc_testbed::{gate, is_case, is_rerun, needs, rerun};
use rustix::{
    mount::{MountPropagationFlags, mount_bind, mount_change},
    thread::UnshareFlags,
};

const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Parsed type information.
struct Btf {
    bytes: Vec<u8>,
    types: std::ops::Range<usize>,
    names: std::ops::Range<usize>,
}

impl Btf {
    fn read() -> Self {
        let bytes = fs::read(TYPES).expect("this kernel has type information");
        let word = |at: usize| {
            u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let part = |at: usize| {
            let start = word(4) + word(at);
            start..start + word(at + 4)
        };
        let (types, names) = (part(8), part(16));
        Self {
            bytes,
            types,
            names,
        }
    }

    /// The offset of a name.
    fn find(&self, name: &str) -> usize {
        let text = format!("\0{name}\0");
        let mut windows = self.bytes[self.names.clone()].windows(text.len());
        let at = windows.position(|window| window == text.as_bytes());
        at.unwrap_or_else(|| panic!("there is no {name}")) + 1
    }

    /// Changes a name.
    fn rename(&mut self, name: &str) {
        let last = self.names.start + self.find(name) + name.len() - 1;
        self.bytes[last] = b'X';
    }

    /// Moves the members of this name by this many bits.
    fn shift(&mut self, member: &str, bits: i32) {
        let name = self.find(member);
        let entries: Vec<_> = self
            .members()
            .into_iter()
            .filter(|&at| self.word(at) == name)
            .collect();
        assert!(!entries.is_empty());
        for entry in entries {
            let before = self.word(entry + 8) as u32;
            let after = before.wrapping_add_signed(bits).to_ne_bytes();
            self.bytes[entry + 8..entry + 12].copy_from_slice(&after);
        }
    }

    fn word(&self, at: usize) -> usize {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }

    /// The offsets of the entries of all members of structures and unions: name, type, offset. Other words may equal
    /// the offset of a name by chance.
    fn members(&self) -> Vec<usize> {
        let mut members = Vec::new();
        let mut at = self.types.start;
        while at < self.types.end {
            let info = self.word(at + 4);
            let count = info & 0xffff;
            at += 12;
            // `BTF_KIND_…` of linux/btf.h, and the data after a type of that kind.
            at += match info >> 24 & 0x1f {
                4 | 5 => {
                    members.extend((0..count).map(|member| at + 12 * member));
                    12 * count
                }
                1 | 14 | 17 => 4,
                3 => 12,
                6 | 13 => 8 * count,
                15 | 19 => 12 * count,
                _ => 0,
            };
        }
        members
    }

    /// Makes this process use it as its kernel's.
    fn mount(&self) {
        let file = std::env::temp_dir().join(format!("fastproc-types-{}", std::process::id()));
        fs::write(&file, &self.bytes).expect("it can be written");
        // SAFETY: the harness's thread waits, and touches no files.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.expect("a namespace");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("it is private");
        mount_bind(&file, TYPES).expect("it is mounted");
        fs::remove_file(&file).expect("it was written");
    }
}

/// Both walks are refused with `expected`, and the files work.
fn only_files_serve(fields: Fields, expected: impl Fn(&Error) -> bool) {
    for kind in [SourceKind::Bpf, SourceKind::BpfIter] {
        let opened = Collector::builder()
            .source(Some(kind))
            .fields(fields)
            .open();
        let Err(error) = opened else {
            panic!("{kind} would show something else than is there");
        };
        assert!(expected(&error), "{kind}: {error:?}");
    }
    let mut collector = Collector::builder()
        .service_socket(None)
        .fields(fields | Fields::MEMORY)
        .open()
        .expect("/proc serves");
    assert_eq!(collector.source(), SourceKind::Procfs);
    let snapshot = collector.snapshot().expect("/proc can be read");
    let own = snapshot.get(std::process::id()).expect("this one is there");
    assert!(own.memory().is_some_and(|memory| memory.rss() > 0));
}

#[test]
fn a_member_of_unknown_shape_is_refused_by_name() {
    needs!(gate::bpf());
    for (member, fields, shape) in [
        ("rss_stat", Fields::MEMORY, "resident set"),
        ("counters", Fields::MEMORY, "resident set"),
        ("sum_sched_runtime", Fields::CPU, "CPU time"),
        ("euid", Fields::USERS, "users and groups"),
        ("cap_bset", Fields::CREDENTIALS, "capabilities"),
        ("ioac", Fields::IO, "I/O counters"),
    ] {
        if !is_case(member) {
            if !is_rerun() {
                rerun(a_member_of_unknown_shape_is_refused_by_name, member);
            }
            continue;
        }
        let mut types = Btf::read();
        types.rename(member);
        types.mount();
        only_files_serve(
            fields,
            |error| matches!(error, Error::UnknownKernel { value, .. } if *value == shape),
        );
        // A value that is not requested is not checked.
        for kind in [SourceKind::Bpf, SourceKind::BpfIter] {
            let others = (Fields::CPU | Fields::MEMORY) - fields;
            let opened = Collector::builder()
                .source(Some(kind))
                .fields(others)
                .open();
            assert!(
                opened.is_ok(),
                "{kind} without {member}: {:?}",
                opened.err()
            );
        }
    }
}

#[test]
fn a_member_at_an_impossible_offset_is_refused_by_name() {
    needs!(gate::bpf());
    for (member, bits, fields, differing) in [
        // The next of the four counters, the run time before the thread got its CPU, and neighbouring capabilities.
        ("rss_stat", 8 * 40, Fields::MEMORY, "resident set"),
        ("total_vm", 64, Fields::MEMORY, "virtual size"),
        ("sum_exec_runtime", -64, Fields::CPU, "CPU time"),
        (
            "cap_inheritable",
            64,
            Fields::CREDENTIALS,
            "inheritable capabilities",
        ),
    ] {
        if !is_case(member) {
            if !is_rerun() {
                rerun(a_member_at_an_impossible_offset_is_refused_by_name, member);
            }
            continue;
        }
        let mut types = Btf::read();
        types.shift(member, bits);
        types.mount();
        only_files_serve(
            fields,
            |error| matches!(error, Error::Differs { value, .. } if *value == differing),
        );
    }
}
