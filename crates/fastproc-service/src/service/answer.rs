//! Answers: snapshots, what ended, and texts about the service.

use std::{
    io::IoSlice,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use fastproc::{
    Calibration, Fields, SourceKind, TextEntry,
    record::{ExitRecord, Record, ThreadRecord},
    source::service::wire::{self, Op, Part, Reply, Request, Status, part},
};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use super::{Service, Waiting};
use crate::{
    budget::cpu_time,
    buffers::Contents,
    exits::Range,
    fill::Filling,
    memory::Counts,
    view::{Mask, View},
};

impl Service {
    /// Answers all who wait: each tier walks at most once for them.
    pub(super) fn answer(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for tier in waiting
            .iter()
            .map(|waiting| waiting.tier)
            .collect::<std::collections::BTreeSet<_>>()
        {
            let here = || waiting.iter().filter(|waiting| waiting.tier == tier);
            let hellos = here().filter(|waiting| waiting.request.op == Op::Hello);
            for waiting in hellos {
                let reply = match self.hello(tier) {
                    Ok(reply) => reply,
                    Err(_) => Reply::empty(Status::Failed),
                };
                self.send(waiting.client, &reply.to_words(), None);
            }
            let snapshots = || here().filter(|waiting| waiting.request.op == Op::Snapshot);
            // One walk serves the most impatient, and with it all others.
            let max_ages = snapshots().map(|waiting| self.max_age(tier, &waiting.request));
            let Some(max_age) = max_ages.min() else {
                continue;
            };
            let walks = !self.tiers.is_young(tier, max_age);
            let began = cpu_time();
            let refreshed = self.tiers.refresh(tier, max_age);
            if walks {
                // After the walk: who has ended since is in one of the two, and never in both.
                self.read_exits();
                self.tiers.set_exits(tier, self.exits.last().unwrap_or(0));
                let mut uids: Vec<u32> = snapshots().map(|waiting| waiting.view.uid()).collect();
                uids.sort_unstable();
                uids.dedup();
                self.budget
                    .spend(&uids, cpu_time().saturating_sub(began), Instant::now());
            }
            for waiting in snapshots() {
                let served = match refreshed {
                    Ok(generation) => self.serve(waiting, generation),
                    Err(_) => Err(Status::Failed),
                };
                if let Err(status) = served {
                    self.refuse(waiting.client, status);
                }
            }
        }
        self.waiting = waiting;
        self.waiting.clear();
    }

    fn hello(&mut self, tier: usize) -> Result<Reply, fastproc::Error> {
        let collector = self.tiers.collector(tier)?;
        Ok(Reply {
            groups: collector.fields().bits(),
            source: source_number(collector.source()),
            calibration: collector.calibration(),
            exits_last: self.exits.last().unwrap_or(0),
            ..Reply::empty(Status::Ok)
        })
    }

    /// Sends a snapshot that has been walked.
    fn serve(&mut self, waiting: &Waiting, generation: u64) -> Result<(), Status> {
        let Waiting { view, request, .. } = *waiting;
        let exits = if request.exits {
            let last = self.tiers.exits(waiting.tier);
            self.exits.range(request.exits_after, last)
        } else {
            Range::default()
        };
        let contents = Contents {
            generation,
            groups: request.groups,
            texts: request.texts,
            texts_max_age_ns: request.texts_max_age_ns,
            exits,
        };
        let id = match self.buffers.find(view, contents) {
            Some(buffer) => buffer.id,
            None => self.fill(waiting, contents)?,
        };
        self.send_buffer(waiting.client, &request, id)
    }

    /// Hands out what has ended since the last time.
    pub(super) fn hand_exits(&mut self, token: u64, request: &Request, view: View) {
        self.read_exits();
        let exits = self.exits.range(request.exits_after, u64::MAX);
        let contents = Contents {
            exits,
            ..Contents::default()
        };
        let sent = match self.exits.count(exits) {
            (0, _) => {
                let reply = Reply {
                    exits_last: exits.last,
                    exits_after: exits.after,
                    ..Reply::empty(Status::Ok)
                };
                self.send(token, &reply.to_words(), None);
                Ok(())
            }
            _ => self
                .fill_exits(view, contents)
                .and_then(|id| self.send_buffer(token, request, id)),
        };
        if let Err(status) = sent {
            self.refuse(token, status);
        }
    }

    fn send_buffer(&mut self, token: u64, request: &Request, id: u64) -> Result<(), Status> {
        let Some(buffer) = self.buffers.get(id) else {
            return Err(Status::Failed);
        };
        let mut reply = buffer.reply;
        reply.has_descriptor = !request.holds.contains(&id);
        self.buffers.lend(id);
        if let Some(client) = self.clients.get_mut(&token) {
            client.lent = Some(id);
        }
        self.send(token, &reply.to_words(), reply.has_descriptor.then_some(id));
        Ok(())
    }

    /// Writes a snapshot into a buffer.
    fn fill(&mut self, waiting: &Waiting, contents: Contents) -> Result<u64, Status> {
        let collector = self
            .tiers
            .collector(waiting.tier)
            .map_err(|_| Status::Failed)?;
        let calibration = collector.calibration();
        let mask = Mask::new(collector.host(), calibration);
        let Some(snapshot) = collector.latest() else {
            return Err(Status::Failed);
        };
        if !contents.texts.is_empty() {
            let max_age = Duration::from_nanos(contents.texts_max_age_ns);
            self.texts.refresh(snapshot, contents.texts, max_age);
        }
        let filling = Filling {
            snapshot,
            view: waiting.view,
            groups: Fields::from_bits_truncate(contents.groups),
            texts: &self.texts,
            kinds: contents.texts,
            mask,
        };
        let (exits, exit_lines) = self.exits.count(contents.exits);
        let counts = Counts {
            exits,
            exit_lines,
            ..filling.plan(&mut self.shown)
        };
        let [.., bytes] = counts.offsets();
        let buffer = self.buffers.take(waiting.view, contents, bytes)?;
        let Some(mut parts) = buffer.memory.parts(counts) else {
            return Err(Status::Failed);
        };
        filling.write(&self.shown, &mut parts);
        self.exits
            .write(contents.exits, waiting.view, &mask, &mut parts);
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
            parts: parts_of(counts),
            ..Reply::empty(Status::Ok)
        };
        self.counted.fills += 1;
        Ok(buffer.id)
    }

    /// Writes what ended into a buffer, without a snapshot.
    fn fill_exits(&mut self, view: View, contents: Contents) -> Result<u64, Status> {
        let (exits, exit_lines) = self.exits.count(contents.exits);
        let counts = Counts {
            exits,
            exit_lines,
            ..Counts::default()
        };
        let [.., bytes] = counts.offsets();
        let mask = Mask::new(&self.host, Calibration::default());
        let buffer = self.buffers.take(view, contents, bytes)?;
        let Some(mut parts) = buffer.memory.parts(counts) else {
            return Err(Status::Failed);
        };
        self.exits.write(contents.exits, view, &mask, &mut parts);
        buffer.reply = Reply {
            buffer: buffer.id,
            buffer_bytes: buffer.memory.bytes() as u64,
            exits_last: contents.exits.last,
            exits_after: contents.exits.after,
            parts: parts_of(counts),
            ..Reply::empty(Status::Ok)
        };
        Ok(buffer.id)
    }

    pub(super) fn refuse(&mut self, token: u64, status: Status) {
        self.counted.refuse(status);
        self.send(token, &Reply::empty(status).to_words(), None);
    }

    /// Sends a text behind an answer.
    pub(super) fn tell(&mut self, token: u64, op: Op) {
        let text = match op {
            Op::Layout => fastproc::source::service::layout::text().to_owned(),
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
        let Some(client) = self.clients.get(&token) else {
            return;
        };
        let file = buffer.and_then(|id| self.buffers.get(id));
        let fd = file.map(|buffer| [buffer.memory.file().as_raw_fd()]);
        let control = fd.as_ref().map(|fd| ControlMessage::ScmRights(fd));
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let sent = sendmsg::<()>(
            client.socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            control.as_slice(),
            flags,
            None,
        );
        if sent.is_err() {
            self.counted.cut_off += 1;
            self.close(token);
        }
    }
}

fn source_number(source: SourceKind) -> u64 {
    let at = SourceKind::ALL.iter().position(|kind| *kind == source);
    at.map_or(0, |at| at as u64 + 1)
}

fn parts_of(counts: Counts) -> [Part; part::COUNT] {
    let offsets = counts.offsets();
    let mut parts = [Part::default(); part::COUNT];
    let sizes = [
        (part::RECORDS, counts.records, size_of::<Record>()),
        (part::THREADS, counts.threads, size_of::<ThreadRecord>()),
        (part::POOL, counts.pool, size_of::<u64>()),
        (part::UNSURE, counts.unsure, size_of::<u32>()),
        (part::TEXTS, counts.texts, size_of::<TextEntry>()),
        (part::TEXT_BYTES, counts.text_bytes, 1),
        (part::EXITS, counts.exits, size_of::<ExitRecord>()),
        (part::EXIT_LINES, counts.exit_lines, 1),
    ];
    for ((at, count, stride), offset) in sizes.into_iter().zip(offsets) {
        parts[at] = Part {
            offset: offset as u64,
            count: count as u64,
            stride: stride as u64,
        };
    }
    parts
}
