//! Records in the orders in which the kernel may write them.

use super::*;
use crate::base::plain::bytes_of;

/// The bytes of a record.
fn record(kind: u32, pid: u32, start_ns: u64, end_ns: u64) -> Vec<u8> {
    let mut exit: layout::Exit = read(&[0; size_of::<layout::Exit>()]).expect("it is plain data");
    (exit.event.kind, exit.event.tgid, exit.event.start_ns) = (kind, pid, start_ns);
    (exit.tid, exit.ppid, exit.end_ns) = (pid, 1, end_ns);
    bytes_of(&exit).to_vec()
}

/// The events for the reader: start times, whether the values are final, and the end.
fn ended(records: &[Vec<u8>]) -> Vec<(u64, bool, Option<u64>)> {
    let (mut pending, mut ended) = (Pending::default(), Vec::new());
    for bytes in records {
        pending.take(bytes, &mut |event| match event {
            Event::Exit(exit) => ended.push((exit.start_ns, exit.is_final, exit.end_ns)),
            _ => panic!("{event:?}"),
        });
    }
    assert!(pending.ended.is_empty(), "{pending:?}");
    ended
}

#[test]
fn processes_that_share_a_pid_each_have_one_exit() {
    let records = [
        record(layout::ENDED, 7, 100, 150),
        record(layout::ENDED, 7, 200, 250),
        record(layout::EXIT, 7, 100, 0),
        record(layout::ENDED, 7, 300, 350),
        record(layout::EXIT, 7, 200, 0),
        record(layout::EXIT, 7, 300, 0),
    ];
    let expected = [
        (100, true, Some(150)),
        (200, true, Some(250)),
        (300, true, Some(350)),
    ];
    assert_eq!(ended(&records), expected);
}

#[test]
fn the_first_of_two_last_threads_counts() {
    let records = [
        record(layout::ENDED, 7, 100, 150),
        record(layout::ENDED, 7, 100, 160),
        record(layout::EXIT, 7, 100, 0),
    ];
    assert_eq!(ended(&records), [(100, true, Some(150))]);
}

/// The first of the two to read the fork also removes it.
#[test]
fn either_of_two_last_threads_may_know_the_program() {
    let program = |exec_id| {
        let mut ended: layout::Exit =
            read(&record(layout::ENDED, 7, 100, 150)).expect("it is plain data");
        ended.program.exec_id = exec_id;
        bytes_of(&ended).to_vec()
    };
    for records in [[program(0), program(3)], [program(3), program(0)]] {
        let (mut pending, mut known) = (Pending::default(), Vec::new());
        let last = record(layout::EXIT, 7, 100, 0);
        for bytes in records.iter().chain([&last]) {
            pending.take(bytes, &mut |event| match event {
                Event::Exit(exit) => known.push(exit.program.exec_id),
                _ => panic!("{event:?}"),
            });
        }
        assert_eq!(known, [3]);
    }
}

#[test]
fn an_exited_process_is_not_taken_for_a_living_one() {
    let stat = |flags: u32| format!("7 (a) b) R 1 7 7 0 -1 {flags} 1 0 0 0");
    for (flags, ends) in [(0x40_0000, false), (0x40_0004, true)] {
        assert_eq!(is_ending(stat(flags).as_bytes()), Some(ends));
    }
    assert_eq!(is_ending(b"7 (a)"), None);
}
