//! Answers: snapshots, exits, and texts about the service.

use std::time::{Duration, Instant};

use fastproc::{
    Calibration, SourceKind, message,
    source::service::wire::{self, Op, Reply, Request, Status, part},
};

use super::{Service, schedule::Waiting};
use crate::{
    buffers::Contents,
    fill::{self, Earlier, Filling},
    memory::Counts,
    user_events::Reason,
    view::{Mask, View, Visibility},
};

/// Room for each text that is still to be read, and for a few long ones. The reader itself reads texts for which there
/// is no room.
const ROOM_FOR_TEXT: usize = 256;
const ROOM_FOR_LONG_TEXTS: usize = 64 << 10;

impl Service {
    pub(super) fn greet(&mut self, waiting: &Waiting) {
        let reply = match self.hello(waiting.field_set) {
            Ok(reply) => reply,
            Err(_) => Reply::empty(Status::Failed),
        };
        self.send(waiting.client, &reply.to_words(), None);
    }

    fn hello(&mut self, field_set: usize) -> Result<Reply, fastproc::Error> {
        let collector = self.field_sets.collector(field_set)?;
        Ok(Reply {
            groups: collector.fields().bits(),
            source: source_number(collector.source()),
            calibration: collector.calibration(),
            exits_last: self.exits.last().unwrap_or(0),
            ..Reply::empty(Status::Ok)
        })
    }

    /// Sends the exits since the reader's last request.
    pub(super) fn hand_exits(
        &mut self,
        token: u64,
        request: &Request,
        view: View,
    ) -> Result<(), Status> {
        self.read_exits();
        let exits = self.exits.range(request.exits_after, u64::MAX);
        let contents = Contents {
            exits,
            ..Contents::default()
        };
        if self.exits.count(exits).0 == 0 {
            let reply = Reply {
                exits_last: exits.last,
                exits_after: exits.after,
                ..Reply::empty(Status::Ok)
            };
            self.send(token, &reply.to_words(), None);
            return Ok(());
        }
        let id = match self.buffers.find(view, contents) {
            Some(buffer) => buffer.id,
            None => self.fill_exits(view, contents)?,
        };
        self.send_buffer(token, request, id);
        Ok(())
    }

    pub(super) fn send_buffer(&mut self, token: u64, request: &Request, id: u64) {
        // A reader that has gone holds no buffer.
        let (Some(client), Some(buffer)) = (self.clients.get_mut(&token), self.buffers.get(id))
        else {
            return;
        };
        let mut reply = buffer.reply;
        reply.has_descriptor = !request.holds.contains(&id);
        if reply.changed_at != 0
            && let Some(contents) = buffer.contents()
        {
            let before = std::mem::replace(&mut client.last, contents);
            if !contents.follows(before) {
                reply.changed_at = 0;
            }
        }
        self.buffers.lend(id);
        client.lent = Some(id);
        self.send(token, &reply.to_words(), reply.has_descriptor.then_some(id));
    }

    /// Writes a snapshot into a buffer. `None`: its texts are being read, and it is sent after that. Without `reads_texts`
    /// it has only the texts that are kept.
    pub(super) fn fill(
        &mut self,
        waiting: &Waiting,
        contents: Contents,
        reads_texts: bool,
    ) -> Result<Option<u64>, Status> {
        let view = waiting.view;
        let collector = self
            .field_sets
            .collector(waiting.field_set)
            .map_err(|_| Status::Failed)?;
        let calibration = collector.calibration();
        let mask = Mask::new(collector.host(), calibration);
        let Some((snapshot, changes)) = self.field_sets.latest(waiting.field_set) else {
            return Err(Status::Failed);
        };
        let shown = self.visibilities.update(view, waiting.field_set, &snapshot);
        let mut missing = Vec::new();
        if !contents.texts.is_empty() {
            let max_age = Duration::from_nanos(contents.texts_max_age_ns);
            missing = self.texts.find_missing(&snapshot, max_age, view, |place| {
                let &shown = shown.get(place)?;
                (shown != Visibility::Unsure).then(|| fill::kinds_for(contents.texts, shown))
            });
            let expected = self.costs.text * missing.len() as u32;
            if !reads_texts {
                missing.clear();
            } else if !self.budget.allows(view.uid(), expected, Instant::now()) {
                self.counted.texts_refused += 1;
                missing.clear();
            }
        }
        let filling = Filling {
            snapshot,
            view,
            groups: Self::groups(contents),
            texts: &self.texts,
            kinds: contents.texts,
            mask,
            changes,
            generation: contents.generation,
        };
        let (exits, exit_lines) = self.exits.count(contents.exits);
        let mut counts = Counts {
            exits,
            exit_lines,
            ..filling.plan(shown)
        };
        if !missing.is_empty() {
            counts.text_bytes += missing.len() * ROOM_FOR_TEXT + ROOM_FOR_LONG_TEXTS;
        }
        let bytes = counts.offsets().end;
        self.costs.bytes[waiting.field_set] = bytes;
        let (buffer, latest) = match view {
            View::All => (self.buffers.take(view, bytes)?, None),
            View::Of(_) => self.buffers.take_after(contents, view, bytes)?,
        };
        // A record is at its place in the snapshot, unless the view does not show one before it.
        let is_whole = |reply: &Reply| counts.unsure == 0 && reply.parts[part::UNSURE].count == 0;
        let left = buffer.left.take();
        let left = left.filter(|&left| contents.follows(left) && is_whole(&buffer.reply));
        let is_written = changes.since(left.map(|left| left.generation));
        let earlier = latest.and_then(|latest| {
            let is_whole = is_whole(&latest.reply);
            let (of, counts) = latest.latest.take()?;
            Earlier::new(of.generation, is_whole, latest.memory.parts(counts)?)
        });
        let Some(mut parts) = buffer.memory.parts(counts) else {
            return Err(Status::Failed);
        };
        let written = filling.write(shown, is_written, earlier, &mut parts);
        buffer.latest = Some((contents, counts));
        self.exits.write(contents.exits, view, &mask, &mut parts);
        let stats = snapshot.stats();
        buffer.reply = Reply {
            generation: contents.generation,
            groups: contents.groups,
            buffer: buffer.id,
            buffer_bytes: buffer.memory.bytes() as u64,
            kernel_boottime_ns: stats.kernel_boottime_ns(),
            read_for_ns: u64::try_from(stats.read_for.as_nanos()).unwrap_or(u64::MAX),
            torn: stats.torn,
            missed: stats.missed,
            source: source_number(stats.source),
            calibration,
            exits_last: contents.exits.last,
            exits_after: contents.exits.after,
            changed_at: counts.changed_at(),
            parts: counts.in_reply(),
            ..Reply::empty(Status::Ok)
        };
        self.counted.fills += 1;
        let id = buffer.id;
        if missing.is_empty() {
            buffer.finish(contents);
            return Ok(Some(id));
        }
        self.start_job(waiting, contents, id, (counts, written), missing)?;
        Ok(None)
    }

    /// Writes exits into a buffer, without a snapshot.
    fn fill_exits(&mut self, view: View, contents: Contents) -> Result<u64, Status> {
        let (exits, exit_lines) = self.exits.count(contents.exits);
        let counts = Counts {
            exits,
            exit_lines,
            ..Counts::default()
        };
        let bytes = counts.offsets().end;
        let mask = Mask::new(&self.host, Calibration::default());
        let buffer = self.buffers.take(view, bytes)?;
        let Some(mut parts) = buffer.memory.parts(counts) else {
            return Err(Status::Failed);
        };
        self.exits.write(contents.exits, view, &mask, &mut parts);
        buffer.finish(contents);
        buffer.reply = Reply {
            buffer: buffer.id,
            buffer_bytes: buffer.memory.bytes() as u64,
            exits_last: contents.exits.last,
            exits_after: contents.exits.after,
            parts: counts.in_reply(),
            ..Reply::empty(Status::Ok)
        };
        Ok(buffer.id)
    }

    pub(super) fn refuse(&mut self, token: u64, status: Status) {
        self.counted.refuse(status);
        self.send(token, &Reply::empty(status).to_words(), None);
    }

    /// Refuses a request that exceeds the user's limits.
    pub(super) fn refuse_for(&mut self, token: u64, why: Reason) {
        self.blame(token, why);
        self.refuse(token, Status::Busy);
    }

    pub(super) fn blame(&mut self, token: u64, why: Reason) {
        if let Some(client) = self.clients.get(&token) {
            self.user_events.add(Some(client.uid), why);
        }
    }

    /// Sends a text after the words of an answer.
    pub(super) fn tell(&mut self, token: u64, op: Op) {
        let text = match op {
            Op::Layout => fastproc::layout::text().to_owned(),
            _ => self.report(),
        };
        let mut bytes = wire::to_bytes(&Reply::empty(Status::Ok).to_words());
        bytes.extend_from_slice(text.as_bytes());
        self.send_bytes(token, &bytes, None);
    }

    fn send(&mut self, token: u64, words: &[u64], buffer: Option<u64>) {
        self.send_bytes(token, &wire::to_bytes(words), buffer);
    }

    fn send_bytes(&mut self, token: u64, bytes: &[u8], buffer: Option<u64>) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        client.waits = false;
        let file = buffer.and_then(|id| self.buffers.get(id));
        let descriptor = file.map(|buffer| buffer.memory.file());
        let sent = message::send(&client.socket, bytes, descriptor);
        if sent.is_err() {
            self.blame(token, Reason::CutOff);
            self.close(token);
        }
    }
}

fn source_number(source: SourceKind) -> u64 {
    let at = SourceKind::LOCAL.iter().position(|kind| *kind == source);
    at.map_or(0, |at| at as u64 + 1)
}
