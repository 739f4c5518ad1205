//! The exits that belong to one snapshot.

use std::mem;

use super::Exit;
use crate::{Cmdline, Snapshot, record::is_same_start, snapshot::Ends};

/// Exits that belong to the last snapshot, and those that are for a later one.
#[derive(Debug, Default)]
pub(crate) struct Handout {
    exits: Vec<Exit>,
    /// The bytes of their command lines.
    lines: Vec<u8>,
    /// Of processes that the last snapshot had nevertheless: they ended after it met them.
    held: Vec<Held>,
    /// Before the last snapshot.
    lost: u64,
}

/// An exit with its own command line.
#[derive(Debug)]
struct Held {
    exit: Exit,
    line: Box<[u8]>,
    cut: bool,
}

impl Handout {
    /// Turns to the next snapshot. `take` puts what has ended since the last one into the two, which are empty, and
    /// returns how many were lost.
    pub(super) fn turn<E>(
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
            let is_there = snapshot
                .get(exit.pid)
                .is_some_and(|process| is_same_start(process.identity().start_ns, exit.start_ns));
            if is_there {
                let line = exit.line(lines);
                held.push(Held {
                    exit: *exit,
                    line: line.map_or(&[][..], |line| line.bytes).into(),
                    cut: line.is_some_and(|line| line.cut),
                });
            }
            !is_there
        });
        Ok(())
    }

    /// What belongs to the last snapshot, and how much was lost before it.
    pub(crate) fn ends(&self) -> (Ends<'_>, u64) {
        let ends = Ends {
            exits: &self.exits,
            lines: &self.lines,
        };
        (ends, self.lost)
    }
}
