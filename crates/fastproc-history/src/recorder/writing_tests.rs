//! Disks that hang or are full.

use std::{sync::mpsc, time::Duration};

use super::{
    tests::{Full, Memory, at, push, record, session},
    *,
};
use crate::table::{MACHINE, PROCESSES};

const SECOND: i64 = 1_000_000;
/// At the beginning of a quarter of an hour.
const START: i64 = 1_800_000_000 * SECOND;

/// Blocks until it is told to go on, or fails until then.
struct Stuck {
    memory: Memory,
    go_on: mpsc::Receiver<()>,
    blocks: bool,
    is_free: bool,
}

impl Place for Stuck {
    type Error = Full;

    fn write(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Full> {
        if !self.is_free && self.blocks {
            let _ = self.go_on.recv();
            self.is_free = true;
        }
        self.is_free |= self.go_on.try_recv().is_ok();
        if !self.is_free {
            return Err(Full);
        }
        self.memory.write(job, told)
    }
}

fn stuck(blocks: bool) -> (Memory, mpsc::Sender<()>, Session) {
    let memory = Memory::default();
    let (free, go_on) = mpsc::channel();
    let stuck = Stuck {
        memory: memory.clone(),
        go_on,
        blocks,
        is_free: false,
    };
    (memory, free, session(stuck))
}

#[test]
fn a_disk_that_hangs_stops_no_walk_and_loses_nothing_for_a_while() {
    let (memory, free, mut session) = stuck(true);
    for second in 0..1_000_i64 {
        push(
            &mut session,
            at(START + second * SECOND),
            &[record(1, 5, second.cast_unsigned())],
            &[],
        );
    }
    free.send(()).expect("the thread lives");
    assert!(session.finish("test"));
    assert_eq!(memory.column(&PROCESSES, "utime_ns").len(), 1_000);
    assert!(!memory.has_event("blind"));
}

#[test]
fn an_event_tells_which_times_a_hung_disk_lost() {
    let (memory, free, mut session) = stuck(true);
    // Each process has another value in each second.
    let records = |second: u64| -> Vec<_> {
        (1..20)
            .map(|pid| record(pid, 5, second * 1_000_003 % 99_999_989))
            .collect()
    };
    for second in 0..3_000_i64 {
        push(
            &mut session,
            at(START + second * SECOND),
            &records(second.cast_unsigned()),
            &[],
        );
    }
    session.take_told();
    push(&mut session, at(START + 3_000 * SECOND), &records(0), &[]);
    free.send(()).expect("the thread lives");
    assert!(session.finish("test"));
    assert!(memory.has_event("blind"), "{:?}", memory.events());
}

#[test]
fn a_full_disk_is_told_once_it_has_room() {
    let (memory, free, mut session) = stuck(false);
    for second in 0..20 {
        push(
            &mut session,
            at(START + second * SECOND),
            &[record(1, 5, 0)],
            &[],
        );
    }
    // The thread tells that it has failed.
    while session.take_told().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    free.send(()).expect("the thread lives");
    push(
        &mut session,
        at(START + 20 * SECOND),
        &[record(1, 5, 0)],
        &[],
    );
    assert!(session.finish("test"));
    assert!(memory.has_event("failed"));
}

/// Tells that it dropped the first part, and takes the row groups.
struct Dropping(Memory);

impl Place for Dropping {
    type Error = Full;

    fn write(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Full> {
        let (Job::Part(group) | Job::Group(group)) = job;
        if group.from == START {
            told.push(Event {
                event: "dropped",
                since: Some(group.from),
                until: Some(group.to),
                ..Event::default()
            });
        }
        self.0.write(job, told)
    }
}

#[test]
fn a_row_group_whose_beginning_was_dropped_is_begun_again() {
    let memory = Memory::default();
    let mut session = session(Dropping(memory.clone()));
    for second in 0..9 {
        push(
            &mut session,
            at(START + second * SECOND),
            &[record(1, 5, 0)],
            &[],
        );
        while second == 5 && session.take_told().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(session.finish("test"));
    let whole = memory.column(&MACHINE, "whole");
    assert_eq!(whole, [1, 0, 0].map(Cell::Number));
    assert!(memory.has_event("dropped"));
}
