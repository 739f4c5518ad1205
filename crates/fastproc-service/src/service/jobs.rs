//! Snapshots whose texts a separate thread reads. They are sent when it is done, or without the missing texts when it
//! is late.

use std::{sync::Arc, time::Instant};

use fastproc::source::service::wire::{Request, Status, part};

use super::{Service, schedule::Waiting};
use crate::{
    buffers::Contents,
    memory::Counts,
    reading::{Item, Limits, Reading},
    texts::Writer,
    user_events::Reason,
    view::View,
};

/// Concurrent readings of all users; each user has at most one.
const AT_ONCE: usize = 4;

/// A snapshot whose texts are being read.
#[derive(Debug)]
pub(super) struct Job {
    view: View,
    contents: Contents,
    /// The readers that wait for it.
    clients: Vec<(u64, Request)>,
    /// Its buffer, and the layout of that.
    buffer: u64,
    counts: Counts,
    /// Bytes of texts that are written already.
    written: usize,
    items: usize,
    reading: Reading,
}

#[cfg(test)]
impl Job {
    pub(super) fn without_clients(view: View, reading: Reading) -> Self {
        Self {
            view,
            contents: Contents::default(),
            clients: Vec::new(),
            buffer: 0,
            counts: Counts::default(),
            written: 0,
            items: 0,
            reading,
        }
    }
}

impl Service {
    /// Whether texts may be read for this user now.
    pub(super) fn may_start_job(&self, uid: u32) -> bool {
        self.jobs.len() < AT_ONCE && self.jobs.iter().all(|job| job.view.uid() != uid)
    }

    /// Joins the readers of a job for the same snapshot, if there is one.
    pub(super) fn join_job(&mut self, waiting: &Waiting, contents: Contents) -> bool {
        let mut jobs = self.jobs.iter_mut();
        let same = jobs.find(|job| job.view == waiting.view && job.contents == contents);
        same.is_some_and(|job| {
            job.clients.push((waiting.client, waiting.request));
            true
        })
    }

    /// Starts reading the texts of a snapshot that is otherwise complete.
    pub(super) fn start_job(
        &mut self,
        waiting: &Waiting,
        contents: Contents,
        buffer: u64,
        (counts, written): (Counts, usize),
        items: Vec<Item>,
    ) -> Result<(), Status> {
        let count = items.len();
        let done = Arc::clone(&self.work_done);
        let reading = self
            .texts
            .read(items, waiting.view, waiting.came, done)
            .map_err(|_| Status::Failed)?;
        self.jobs_changed = true;
        // Keep the buffer from being reused meanwhile.
        self.buffers.hold(buffer);
        self.jobs.push(Job {
            view: waiting.view,
            contents,
            clients: vec![(waiting.client, waiting.request)],
            buffer,
            counts,
            written,
            items: count,
            reading,
        });
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits {
            all: self.texts_timeout,
            one: self.texts_timeout / 2,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let (limits, now) = (self.limits(), Instant::now());
        let jobs = self.jobs.iter();
        let jobs = jobs.filter_map(|job| job.reading.deadline(limits, now));
        jobs.chain(self.parked.deadline()).min()
    }

    /// Sends snapshots whose readings are over, and late ones without the missing texts.
    pub(super) fn finish_jobs(&mut self) {
        let (limits, now) = (self.limits(), Instant::now());
        let mut at = 0;
        while at < self.jobs.len() {
            let Some(outcome) = self.jobs[at].reading.outcome(limits, now) else {
                at += 1;
                continue;
            };
            let job = self.jobs.swap_remove(at);
            let uid = job.view.uid();
            self.jobs_changed = true;
            self.budget.spend(uid, outcome.cpu, now);
            if outcome.blamed.is_none() && job.items > 0 {
                self.costs.text = outcome.cpu / job.items as u32;
            }
            if let Some(buffer) = self.buffers.get_mut(job.buffer) {
                if let Some(parts) = buffer.memory.parts(job.counts) {
                    let mut writer = Writer::at(parts.text_bytes, job.written);
                    for text in &outcome.texts {
                        if let Some(entry) = parts.texts.get_mut(text.item.place) {
                            writer.add(text, job.view, entry);
                        }
                    }
                    buffer.reply.parts[part::TEXT_BYTES].count = writer.len() as u64;
                }
                buffer.finish(job.contents);
            }
            self.texts.keep(outcome.texts);
            let left_out = &mut self.texts.left_out;
            left_out.watch(job.reading.thread, limits.blamed_from());
            if let Some((owner, took)) = outcome.blamed {
                // A thread was blocked by it for this long.
                left_out.add(owner, now);
                self.user_events.add(owner.uid(), Reason::Blocked);
                if let Some(uid) = owner.uid() {
                    self.budget.spend(uid, took, now);
                }
            }
            for (client, request) in &job.clients {
                self.send_buffer(*client, request, job.buffer);
            }
            self.buffers.give_back(job.buffer);
        }
    }
}
