//! How the tags of members change records.

use super::*;
use crate::records::schema::{Member, Unit};

const TICK: u64 = 10_000_000;
const MASK: Mask = Mask {
    tick_ns: TICK,
    boot_offset_ns: 0,
    thp_disable_bit: Some(24),
};

const fn member(name: &'static str, offset: usize, type_of: Type, shown: Shown) -> Member {
    Member {
        name,
        offset,
        type_of,
        unit: Unit::None,
        shown,
        threads: None,
        unknown: None,
        is_inner: false,
        doc: "",
    }
}

#[test]
fn only_what_a_tag_shows_is_kept() {
    static PART: Structure = Structure {
        name: "part",
        c_name: "fp_part",
        size: 16,
        doc: "",
        members: &[
            member("secret", 0, Type::Chars(8), Shown::Nobody),
            member("layout", 8, Type::U64, Shown::Tracers),
        ],
    };
    static WHOLE: Structure = Structure {
        name: "whole",
        c_name: "fp_whole",
        size: 48,
        doc: "",
        members: &[
            member("id", 0, Type::U32, Shown::Public),
            member("untagged", 4, Type::U8, Shown::Nobody),
            Member {
                unknown: Some(7),
                ..member("flag", 5, Type::U8, Shown::Tracers)
            },
            // Two bytes without a tag.
            member("part", 8, Type::Structure(&PART), Shown::Public),
            member("time", 24, Type::U64, Shown::Ticks),
            member("start", 32, Type::U64, Shown::BootTicks),
            member("name", 40, Type::Chars(8), Shown::Public),
        ],
    };
    const BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let plan = Plan::from_structure(&WHOLE);
    let all = u64::from_ne_bytes(BYTES);
    let time = 7 * TICK + 1;
    let words = [all, all, all, time, time, all];
    let id = u64::from_ne_bytes([1, 2, 3, 4, 0, 7, 0, 0]);
    let mut public = words;
    plan.hide(&mut public);
    plan.round(&mut public, &MASK);
    assert_eq!(public, [id, 0, 0, 7 * TICK, 7 * TICK, all]);
    let mut traced = words;
    keep(&plan.tracers, &mut traced);
    let id_and_flag = u64::from_ne_bytes([1, 2, 3, 4, 0, 6, 0, 0]);
    assert_eq!(traced, [id_and_flag, 0, all, time, time, all]);
}

#[test]
fn ticks_of_the_time_since_boot_begin_where_readers_clocks_say() {
    let mask = Mask {
        boot_offset_ns: 3,
        ..MASK
    };
    let mut record = Record::default();
    (record.identity.start_ns, record.cpu.utime_ns) = (3 * TICK - 1, 3 * TICK - 1);
    mask.record(&mut record);
    // Between 3 * TICK - 3 and 4 * TICK - 4; on a whole tick it says that it is rounded.
    assert_eq!(record.identity.start_ns, 3 * TICK);
    assert_eq!(record.cpu.utime_ns, 2 * TICK);
}

#[test]
fn everybody_sees_times_to_a_tick_and_nothing_that_is_hidden() {
    let mut record = Record::default();
    record.identity.groups = Fields::all().bits();
    record.identity.exit_code = 9;
    record.identity.wchan = 1;
    record.layout.start_stack = 5;
    record.layout.arg_start = 5;
    record.io.read_bytes = 7;
    record.credentials.user_ns = 8;
    record.memory_details.mm_flags = u64::MAX;
    let set = |record: &mut Record, time: u64| {
        record.identity.start_ns = time;
        let cpu = &mut record.cpu;
        for to in [
            &mut cpu.utime_ns,
            &mut cpu.stime_ns,
            &mut cpu.gtime_ns,
            &mut cpu.cutime_ns,
            &mut cpu.cstime_ns,
            &mut cpu.cgtime_ns,
            &mut cpu.sampled_utime_ns,
            &mut cpu.sampled_stime_ns,
            &mut cpu.prev_utime_ns,
            &mut cpu.prev_stime_ns,
            &mut record.scheduling_details.blkio_ns,
        ] {
            *to = time;
        }
    };
    set(&mut record, 3 * TICK + 1);
    let mut shown = record;
    Mask::record_for_tracers(&mut shown);
    assert_eq!(shown, record, "who could trace it sees all of it");
    MASK.record(&mut shown);
    let mut expected = Record::default();
    set(&mut expected, 3 * TICK);
    expected.identity.masked = 1;
    expected.identity.groups = (Fields::all() - Fields::IO).bits();
    expected.memory_details.mm_flags = 1 << 24;
    assert_eq!(shown, expected);
}

#[test]
fn a_masked_exit_does_not_claim_hidden_members() {
    let mut exit = ExitRecord {
        known: u32::MAX,
        status: 9,
        pid: 4,
        ..ExitRecord::default()
    };
    exit.io.rchar = 5;
    let mut traced = exit;
    Mask::exit_for_tracers(&mut traced);
    assert_eq!(traced, exit);
    MASK.exit(&mut exit);
    let expected = ExitRecord {
        known: !(EXIT_STATUS | EXIT_IO),
        pid: 4,
        ..ExitRecord::default()
    };
    assert_eq!(exit, expected);
}
