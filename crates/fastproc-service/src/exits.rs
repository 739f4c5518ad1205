//! Exited processes: recorded while a reader wants them, and kept until all these readers have received them.
//!
//! Exits are numbered, including lost ones. A reader names the last one that it has received, and sees by the numbers
//! which are missing.

use std::{
    collections::VecDeque,
    os::fd::{AsRawFd, BorrowedFd},
    sync::Arc,
};

use fastproc::{
    access::Viewer,
    exits::{self, Event, ExecLine, Exit, Programs},
    record::ExitRecord,
};

use crate::{
    memory::Parts,
    view::{Mask, View},
};

/// Bytes of command lines that are kept. Above this the oldest exits lose theirs, but stay.
const MOST_BYTES: usize = 12 << 20;

/// The kernel may have been short of memory, or of room for another program.
const TRY_AGAIN_AFTER_NS: u64 = 10_000_000_000;

#[derive(Debug)]
struct Kept {
    number: u64,
    exit: Exit,
    line: Option<Arc<ExecLine>>,
}

impl Kept {
    fn line_bytes(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.len())
    }
}

/// The exits that are kept, in their order.
#[derive(Debug, Default)]
struct Queue {
    /// If there are more, the oldest is dropped; the slowest reader loses it.
    most: usize,
    kept: VecDeque<Kept>,
    /// Bytes of all command lines.
    bytes: usize,
    /// So many of the oldest exits have lost their command lines.
    without_line: usize,
}

impl Queue {
    fn push(&mut self, one: Kept) {
        self.bytes += one.line_bytes();
        self.kept.push_back(one);
        if self.kept.len() > self.most {
            self.drop_first();
        }
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.kept.get_mut(self.without_line)
        {
            self.bytes -= oldest.line_bytes();
            oldest.line = None;
            self.without_line += 1;
        }
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.kept.pop_front() {
            self.bytes -= first.line_bytes();
            self.without_line = self.without_line.saturating_sub(1);
        }
    }
}

#[derive(Debug)]
struct Recording {
    exits: exits::Exits,
    programs: Programs,
    /// Events that the kernel had no room for, in total.
    lost: u64,
}

/// The exits that a reader receives: those after one number, up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) after: u64,
    pub(crate) last: u64,
}

/// The exits that are kept, and their recording.
#[derive(Debug)]
pub(crate) struct Exits {
    recording: Option<Recording>,
    /// How often recording has begun.
    pub(crate) starts: u64,
    /// When the kernel refused recording, in nanoseconds since boot.
    refused_ns: Option<u64>,
    queue: Queue,
    /// The number after which recording began.
    since: u64,
    last: u64,
}

impl Exits {
    /// Records nothing yet. Numbers are greater than `first`, and than the time since boot in nanoseconds when
    /// recording begins, so that no other service has used them.
    pub(crate) fn new(first: u64, most: usize) -> Self {
        Self {
            recording: None,
            starts: 0,
            refused_ns: None,
            queue: Queue {
                most,
                ..Queue::default()
            },
            since: first,
            last: first,
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Whether to try to record now. After a refusal it waits a while.
    pub(crate) fn may_start(&self, now_ns: u64) -> bool {
        let is_soon = |at| now_ns.saturating_sub(at) < TRY_AGAIN_AFTER_NS;
        !self.is_recording() && !self.refused_ns.is_some_and(is_soon)
    }

    /// Begins recording, if the kernel allows it.
    pub(crate) fn start(&mut self, now_ns: u64) {
        // Each reader is shown its own part.
        let exits = exits::Exits::builder().viewer(Viewer::All);
        let exits = exits.execs(true).open();
        self.begin(exits.ok(), now_ns);
    }

    /// Begins with the recorder that the kernel gave, or notes its refusal.
    fn begin(&mut self, exits: Option<exits::Exits>, now_ns: u64) {
        self.refused_ns = exits.is_none().then_some(now_ns);
        let Some(exits) = exits else { return };
        self.starts += 1;
        self.recording = Some(Recording {
            exits,
            programs: Programs::default(),
            lost: 0,
        });
        self.last = now_ns.max(self.last + 1);
        self.since = self.last;
    }

    /// Stops recording, since no reader wants exits any more.
    pub(crate) fn stop(&mut self) {
        self.recording = None;
        self.queue = Queue {
            most: self.queue.most,
            ..Queue::default()
        };
    }

    /// Becomes readable when much is to be read.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.recording
            .as_ref()
            .map(|recording| recording.exits.fd())
    }

    /// Reads new exits. Returns whether the ring was replaced, so that the caller must wait for another one.
    pub(crate) fn read(&mut self) -> bool {
        let Some(recording) = &mut self.recording else {
            return false;
        };
        let ring = recording.exits.fd().as_raw_fd();
        let Recording {
            exits,
            programs,
            lost,
        } = recording;
        let (queue, last) = (&mut self.queue, &mut self.last);
        let read = exits.read(|event| match event {
            Event::Exit(exit) => {
                *last += 1;
                queue.push(Kept {
                    number: *last,
                    exit,
                    line: programs.line(&exit),
                });
            }
            Event::Exec(exec) => programs.begins(&exec),
            _ => {}
        });
        let all = exits.lost();
        *last += all - std::mem::replace(lost, all);
        if read.is_err() {
            self.stop();
            return false;
        }
        self.fd().is_some_and(|fd| fd.as_raw_fd() != ring)
    }

    /// Forgets exits up to this number, which all readers have received.
    pub(crate) fn forget(&mut self, number: u64) {
        let queue = &mut self.queue;
        while queue.kept.front().is_some_and(|one| one.number <= number) {
            queue.drop_first();
        }
        // Gives memory back after a burst.
        if queue.kept.capacity() > 4096.max(4 * queue.kept.len()) {
            queue.kept.shrink_to(2 * queue.kept.len());
        }
    }

    /// The last number, if exits are recorded.
    pub(crate) fn last(&self) -> Option<u64> {
        self.is_recording().then_some(self.last)
    }

    /// The number after which recording began, if exits are recorded.
    pub(crate) fn since(&self) -> Option<u64> {
        self.is_recording().then_some(self.since)
    }

    /// The exits up to `last` for a reader that has received all up to `after`; none if recording began later.
    pub(crate) fn range(&self, after: u64, last: u64) -> Range {
        if !self.is_recording() {
            return Range::default();
        }
        let is_known = (self.since..=self.last).contains(&after);
        let last = last.clamp(if is_known { after } else { self.since }, self.last);
        Range {
            after: if is_known { after } else { last },
            last,
        }
    }

    fn within(&self, range: Range) -> impl Iterator<Item = &Kept> {
        let kept = &self.queue.kept;
        let from = kept.partition_point(|one| one.number <= range.after);
        let rest = kept.range(from..);
        rest.take_while(move |one| one.number <= range.last)
    }

    /// The number of these exits, and the bytes of their command lines.
    pub(crate) fn count(&self, range: Range) -> (usize, usize) {
        let each = self.within(range).map(Kept::line_bytes);
        each.fold((0, 0), |(count, bytes), line| (count + 1, bytes + line))
    }

    /// Writes the exits that [`count`](Self::count) counted, as far as the view shows them.
    pub(crate) fn write(&self, range: Range, view: View, mask: &Mask, parts: &mut Parts<'_>) {
        let lines = &mut *parts.exit_lines;
        let mut at = 0;
        let viewer = view.into();
        for (one, to) in self.within(range).zip(&mut *parts.exits) {
            let end = at + one.line_bytes();
            let line = one.line.as_ref().filter(|_| end <= lines.len());
            let line = line.and_then(|line| line.shown_to(&viewer, &one.exit));
            if let Some(line) = line {
                lines[at..end].copy_from_slice(line.bytes);
            }
            let exit = viewer.redact_exit(&one.exit);
            *to = ExitRecord::new(&exit, one.number, line, at as u32);
            if exit.status.is_none() {
                mask.exit(to);
            } else {
                Mask::exit_for_tracers(to);
            }
            at = end;
        }
    }

    /// The number of exits that are kept, and the bytes of their command lines.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.queue.kept.len(), self.queue.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_exit_has_its_command_line_however_many_are_kept() {
        const LINE: usize = 1024;
        const MOST: usize = 1 << 14;
        let mut queue = Queue {
            most: MOST,
            ..Queue::default()
        };
        let all = (MOST + 2 * MOST_BYTES / LINE) as u64;
        for number in 1..=all {
            queue.push(Kept {
                number,
                exit: Exit::default(),
                line: Some(ExecLine::of_nobody(&[b'x'; LINE]).into()),
            });
            let newest = queue.kept.back().expect("it was pushed");
            assert_eq!((newest.number, newest.line_bytes()), (number, LINE));
        }
        assert_eq!(queue.kept.len(), MOST, "no exit is dropped for its line");
        let lines = queue.kept.iter().filter(|one| one.line.is_some());
        assert_eq!(
            (lines.count(), queue.bytes),
            (MOST_BYTES / LINE, MOST_BYTES)
        );
        while !queue.kept.is_empty() {
            queue.drop_first();
        }
        assert_eq!((queue.bytes, queue.without_line), (0, 0));
    }

    #[test]
    fn a_kernel_that_has_refused_to_record_is_asked_again_after_a_while() {
        let mut exits = Exits::new(7, 1);
        assert!(exits.may_start(0));
        for refused_ns in [5, 5 + TRY_AGAIN_AFTER_NS] {
            exits.begin(None, refused_ns);
            assert!(!exits.is_recording());
            assert!(!exits.may_start(refused_ns + TRY_AGAIN_AFTER_NS - 1));
            assert!(exits.may_start(refused_ns + TRY_AGAIN_AFTER_NS));
        }
    }

    #[test]
    fn nothing_is_handed_out_while_nothing_is_recorded() {
        let exits = Exits::new(7, 1);
        assert_eq!((exits.last(), exits.since()), (None, None));
        assert_eq!(exits.range(7, 9), Range::default());
        assert_eq!(exits.count(Range { after: 0, last: 99 }), (0, 0));
    }
}
