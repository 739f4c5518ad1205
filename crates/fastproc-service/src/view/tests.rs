//! What is removed from a record before its reader may see it.

use fastproc::record::Record;

use super::*;

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
