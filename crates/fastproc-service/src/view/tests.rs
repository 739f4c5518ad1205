//! What is taken away from a record before everybody may see it.

use fastproc::record::Record;

use super::*;

const TICK: u64 = 10_000_000;
const MASK: Mask = Mask {
    tick_ns: TICK,
    boot_offset_ns: 0,
    thp_disable_bit: Some(24),
};

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
    MASK.record(&mut shown);
    let mut expected = Record::default();
    set(&mut expected, 3 * TICK);
    expected.identity.masked = 1;
    expected.identity.groups = (Fields::all() - Fields::IO).bits();
    expected.memory_details.mm_flags = 1 << 24;
    assert_eq!(shown, expected);
}

#[test]
fn io_of_a_process_without_memory_is_roots() {
    let mut record = Record::default();
    record.identity.groups = Fields::all().bits();
    record.io.rchar = 7;
    record.identity.has_mm = 1;
    let mut shown = record;
    hide_io_without_memory(&mut shown);
    assert_eq!(shown, record);
    shown.identity.has_mm = 0;
    hide_io_without_memory(&mut shown);
    assert_eq!(shown.io, Io::default());
    assert_eq!(shown.identity.groups, (Fields::all() - Fields::IO).bits());
}
