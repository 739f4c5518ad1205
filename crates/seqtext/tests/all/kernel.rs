//! The running kernel's own text, read and written again.

use std::{ffi::CString, fs};

use rustix::{
    fs::Mode,
    process::umask,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_name},
};
use seqtext::{Escape, SeqBuf};

/// The value behind `label` in the status of this thread.
fn status(label: &str) -> Vec<u8> {
    let status =
        fs::read("/proc/thread-self/status").expect("the kernel lets a thread read its status");
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(label.as_bytes()));
    line.unwrap_or_else(|| panic!("no {label} in this kernel's status"))
        .to_vec()
}

fn rendered(render: impl FnOnce(&mut SeqBuf<'_>)) -> String {
    let mut memory = vec![0; 4096];
    let mut buf = SeqBuf::new(&mut memory);
    render(&mut buf);
    String::from_utf8_lossy(buf.text().expect("4096 bytes are enough")).into_owned()
}

#[test]
fn names_are_escaped_as_in_status() {
    let every_byte: Vec<u8> = (1..=255).collect();
    // Up to 15 bytes are a name; one name is full of what doubles.
    for name in every_byte
        .chunks(13)
        .chain([&b"\\\n\\\n\\\n\\\n\\\n\\\n\\\n\\"[..]])
    {
        set_name(&CString::new(name).expect("no NUL")).expect("a thread may name itself");
        let ours = rendered(|buf| {
            buf.escape_str(name, Escape::SPACE | Escape::SPECIAL, b"\n\\");
        });
        assert_eq!(
            ours,
            String::from_utf8_lossy(&status("Name:\t")),
            "{name:x?}"
        );
    }
}

#[test]
fn umasks_are_octal_as_in_status() {
    let before = umask(Mode::empty());
    for mask in [0, 0o7, 0o22, 0o77, 0o777] {
        umask(Mode::from_bits_truncate(mask));
        let ours = rendered(|buf| {
            buf.put_octal("", mask.into(), 4);
        });
        assert_eq!(ours.as_bytes(), status("Umask:\t"));
    }
    umask(before);
}

/// The words of a bitmap and its bits, from the kernel's text.
fn parse_bitmap(text: &str) -> (Vec<u64>, usize) {
    let groups: Vec<&str> = text.split(',').collect();
    let mut words = vec![0; groups.len().div_ceil(2)];
    for (index, group) in groups.iter().rev().enumerate() {
        words[index / 2] |=
            u64::from_str_radix(group, 16).expect("hexadecimal") << (index % 2 * 32);
    }
    (words, (groups.len() - 1) * 32 + groups[0].len() * 4)
}

fn check_bitmap(label: &str) {
    let text = String::from_utf8(status(&format!("{label}:\t"))).expect("ASCII");
    let list = String::from_utf8(status(&format!("{label}_list:\t"))).expect("ASCII");
    let (words, nbits) = parse_bitmap(&text);
    assert_eq!(rendered(|buf| _ = buf.put_bitmap(&words, nbits)), text);
    assert_eq!(rendered(|buf| _ = buf.put_bitmap_list(&words, nbits)), list);
}

#[test]
fn bitmaps_are_as_in_status() {
    check_bitmap("Mems_allowed");
    check_bitmap("Cpus_allowed");
    let allowed = sched_getaffinity(None).expect("a thread may ask for its CPUs");
    for cpu in (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .take(8)
    {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).expect("a thread may leave CPUs that it has");
        check_bitmap("Cpus_allowed");
    }
    sched_setaffinity(None, &allowed).expect("and come back");
}

#[test]
fn signal_and_capability_sets_are_as_in_status() {
    for label in [
        "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd",
        "CapAmb",
    ] {
        let text = String::from_utf8(status(&format!("{label}:\t"))).expect("ASCII");
        let set = u64::from_str_radix(&text, 16).expect("hexadecimal");
        assert_eq!(rendered(|buf| _ = buf.put_sigset(set)), text, "{label}");
        assert_eq!(
            rendered(|buf| _ = buf.put_hex_ll("", set, 16)),
            text,
            "{label}"
        );
    }
}

#[test]
fn sizes_are_padded_as_in_status() {
    for label in ["VmPeak", "VmSize", "VmRSS", "VmStk", "VmPTE", "VmSwap"] {
        let text = String::from_utf8(status(&format!("{label}:"))).expect("ASCII");
        let kib = text
            .trim_start()
            .strip_suffix(" kB")
            .expect("in kB")
            .parse()
            .expect("a number");
        let ours = rendered(|buf| {
            buf.put_decimal_ull_width("\t", kib, 8).puts(" kB");
        });
        assert_eq!(ours, text, "{label}");
    }
}
