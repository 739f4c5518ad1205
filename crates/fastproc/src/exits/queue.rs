//! The exits that belong to one snapshot.

use std::mem;

use crate::{
    records::record::is_same_start,
    snapshot::{EndedExits, Snapshot, cmdline::Cmdline, exit::Exit},
};

/// Exits that belong to the last snapshot, and those that belong to a later one.
#[derive(Debug, Default)]
pub(crate) struct ExitQueue {
    exits: Vec<Exit>,
    /// The bytes of their command lines.
    lines: Vec<u8>,
    /// Exits after the end of the last snapshot, or after the process was in it.
    held: Vec<Held>,
    /// Number of exits that were lost before the last snapshot.
    lost: u64,
}

/// An exit with its own command line.
#[derive(Debug)]
struct Held {
    exit: Exit,
    line: Box<[u8]>,
    cut: bool,
}

impl ExitQueue {
    /// Advances to the next snapshot. `take` appends the exits since the last one to the two vectors, which are empty,
    /// and returns how many were lost.
    pub(super) fn advance<E>(
        &mut self,
        snapshot: &Snapshot<'_>,
        take: impl FnOnce(&mut Vec<Exit>, &mut Vec<u8>) -> Result<u64, E>,
    ) -> Result<(), E> {
        self.exits.clear();
        self.lines.clear();
        self.lost = take(&mut self.exits, &mut self.lines)?;
        for Held {
            mut exit,
            line,
            cut,
        } in mem::take(&mut self.held)
        {
            let line = Cmdline { bytes: &line, cut };
            exit.put_line(line, &mut self.lines);
            self.exits.push(exit);
        }
        let (held, lines) = (&mut self.held, &self.lines);
        self.exits.retain(|exit| {
            let is_later = is_later(exit, snapshot);
            if is_later {
                let line = exit.line(lines);
                held.push(Held {
                    exit: *exit,
                    line: line.map_or(&[][..], |line| line.bytes).into(),
                    cut: line.is_some_and(|line| line.cut),
                });
            }
            !is_later
        });
        Ok(())
    }

    /// The exits of the last snapshot, and how many were lost before it.
    pub(crate) fn exits(&self) -> (EndedExits<'_>, u64) {
        let ends = EndedExits {
            exits: &self.exits,
            lines: &self.lines,
        };
        (ends, self.lost)
    }
}

/// Whether an exit belongs to a later snapshot.
pub(super) fn is_later(exit: &Exit, snapshot: &Snapshot<'_>) -> bool {
    let is_there = snapshot
        .get(exit.pid)
        .is_some_and(|process| is_same_start(process.identity().start_ns, exit.start_ns));
    // On a busy machine the exits of a snapshot may be taken long after it.
    let end_ns = snapshot.stats().kernel_end_ns();
    is_there || exit.end_ns.is_some_and(|at_ns| at_ns > end_ns)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use super::*;
    use crate::{
        base::source_kind::SourceKind,
        records::record::Record,
        snapshot::{SnapshotStats, table::Table},
    };

    #[test]
    fn exits_after_a_snapshot_belong_to_the_next() {
        let exit = |pid, end_ns| Exit {
            pid,
            start_ns: 10,
            end_ns,
            ..Exit::default()
        };
        let mut record = Record::default();
        (record.identity.tgid, record.identity.start_ns) = (1, 10);
        // From 100 to 150 ns after boot.
        let snapshot = |records: &'static [Record], began_ns| {
            let table = Table {
                records,
                ..Table::default()
            };
            let read_for = Duration::from_nanos(50);
            let stats = SnapshotStats::recorded(SourceKind::Bpf, began_ns, read_for);
            Snapshot::recorded(table, stats)
        };
        let records: &'static [Record] = Box::leak(Box::new([record]));
        let mut queue = ExitQueue::default();
        let mut ended = |snapshot: &Snapshot<'_>, come: &[Exit]| {
            let turned = queue.advance::<Infallible>(snapshot, |exits, _| {
                exits.extend_from_slice(come);
                Ok(0)
            });
            assert!(turned.is_ok());
            let (ends, _) = queue.exits();
            ends.exits.iter().map(|exit| exit.pid).collect::<Vec<_>>()
        };
        let come = [
            exit(1, Some(140)),
            exit(2, Some(150)),
            exit(3, Some(151)),
            exit(4, None),
        ];
        assert_eq!(ended(&snapshot(records, 100), &come), [2, 4]);
        assert_eq!(ended(&snapshot(&[], 200), &[]), [1, 3]);
        assert_eq!(ended(&snapshot(&[], 300), &[]), [0; 0]);
    }
}
