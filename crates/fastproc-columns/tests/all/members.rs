//! Each column shows the member of the record that it is named after, and not a neighbouring one.

use fastproc::{Fields, Host, Process, record::Record};
use fastproc_columns::{Lookup, Row, Value, field};

/// Gives each member its own number, and returns which column must show which.
macro_rules! numbered {
    ($record:ident: $($column:literal $group:ident.$member:ident,)*) => {{
        let mut number = 1_000_u32;
        vec![$({
            number += 1;
            $record.$group.$member = number.into();
            ($column, u64::from(number))
        },)*]
    }};
}

#[test]
fn each_shows_its_own_member() {
    let mut record = Record::default();
    record.identity.tgid = 42;
    record.identity.has_mm = 1;
    record.identity.groups = Fields::all().bits();
    let expected = numbered! { record:
        "ppid" identity.ppid,
        "pgrp" identity.pgrp,
        "session" identity.session,
        "tracer_pid" identity.tracer_pid,
        "num_threads" identity.num_threads,
        "utime" cpu.utime_ns,
        "stime" cpu.stime_ns,
        "guest_time" cpu.gtime_ns,
        "cutime" cpu.cutime_ns,
        "cstime" cpu.cstime_ns,
        "cguest_time" cpu.cgtime_ns,
        "minflt" cpu.minflt,
        "majflt" cpu.majflt,
        "cminflt" cpu.cminflt,
        "cmajflt" cpu.cmajflt,
        "nvcsw" cpu.nvcsw,
        "nivcsw" cpu.nivcsw,
        "vsize" memory.vsize,
        "rssanon" memory.rss_anon,
        "rssfile" memory.rss_file,
        "rssshmem" memory.rss_shmem,
        "vmswap" memory.swap,
        "vmpeak" memory.peak_vsize,
        "vmhwm" memory.peak_rss,
        "vmlck" memory.locked,
        "vmpin" memory.pinned,
        "vmdata" memory.data,
        "vmstk" memory.stack,
        "vmexe" memory.exe,
        "vmlib" memory.lib,
        "trs" memory.text,
        "rchar" io.rchar,
        "wchar" io.wchar,
        "syscr" io.syscr,
        "syscw" io.syscw,
        "read_bytes" io.read_bytes,
        "write_bytes" io.write_bytes,
        "cancelled_write_bytes" io.cancelled_write_bytes,
        "ruid" users.uid,
        "euid" users.euid,
        "suid" users.suid,
        "fsuid" users.fsuid,
        "rgid" users.gid,
        "egid" users.egid,
        "sgid" users.sgid,
        "fsgid" users.fsgid,
        "capinh" credentials.cap_inheritable,
        "capprm" credentials.cap_permitted,
        "capeff" credentials.cap_effective,
        "capbnd" credentials.cap_bounding,
        "capamb" credentials.cap_ambient,
    };
    let row = Row::new(Process::new(&record, &[]));
    let mut lookup = Lookup::new(&Host::read().expect("a machine"), true).expect("/proc");
    for (name, number) in expected {
        let value = field::find(name).expect(name).value(&row, &mut lookup);
        assert!(
            matches!(value, Value::Unsigned(shown) if shown == number),
            "{name}: {value:?} instead of {number}"
        );
    }
}
