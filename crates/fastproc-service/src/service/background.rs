//! Requests for cgroups and for open files. They are charged and take turns as snapshots of processes do, each in an order of
//! its own, and a thread reads for each kind, one request at a time. Each kind has a budget of its own.

use std::{sync::Arc, time::Duration, time::Instant};

use fastproc::{
    SourceKind, cgroups, files,
    source::service::wire::{Op, Reply, Request, Status},
};

use super::{
    Service,
    schedule::{Step, Waiting},
};
use crate::{
    background::{Answer, Background, Done, Progress, Wish, collector_of, longest},
    budget::{Budget, cpu_time},
    buffers::{Contents, Subject},
    exits::Range,
    memory::Counts,
    peer::Peer,
    user_events::Reason,
    view::View,
};

/// What a thread of its own reads.
#[derive(Debug, Default)]
pub(super) struct Apart {
    pub(super) thread: Background,
    /// The request for which it reads, and those that wait until it is done.
    pub(super) reads_for: Option<Waiting>,
    pub(super) waiting: Vec<Waiting>,
}

/// How old values for users may be: the permission to see them is checked when they are made, and a mode may change.
const BELIEVED: Duration = Duration::from_secs(1);

/// What the last snapshot of the cgroups cost that was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) read: Duration,
    /// To check the permission, and to convert it.
    pub(super) answer: Duration,
    pub(super) bytes: usize,
}

impl Service {
    /// Why a reader is not shown cgroups or open files, if so.
    pub(super) fn refusal_apart(&self, request: &Request, peer: &Peer) -> Option<Status> {
        if request.op == Op::Files {
            let is_known = files::Fields::from_bits(request.groups).is_some();
            // Only by BPF: a file system of a user may never answer.
            let is_read = self.source() == SourceKind::Bpf;
            return (!is_known || !is_read).then_some(Status::Groups);
        }
        if cgroups::Fields::from_bits(request.groups).is_none() {
            return Some(Status::Groups);
        }
        if !peer.shares_cgroup_ns {
            return Some(Status::Namespace);
        }
        // A security module may keep it from reading files.
        matches!(peer.view, View::Of(reader) if reader.confined).then_some(Status::Credentials)
    }

    fn apart(&mut self, subject: Subject) -> &mut Apart {
        match subject {
            Subject::Files => &mut self.files,
            _ => &mut self.cgroups,
        }
    }

    pub(super) fn budget_for(&mut self, subject: Subject) -> &mut Budget {
        match subject {
            Subject::Cgroups => &mut self.cgroup_budget,
            Subject::Files => &mut self.files_budget,
            Subject::Processes => &mut self.budget,
        }
    }

    /// The costs for root, or for users: they are shown fewer, and their permission is checked. Files cost each user what it has
    /// itself, so nothing is known before.
    fn cost(&mut self, waiting: &Waiting) -> Option<&mut Cost> {
        if waiting.request.op == Op::Files {
            return None;
        }
        let of_view = &mut self.costs.cgroups[usize::from(waiting.view != View::All)];
        of_view.get_mut(collector_of(&waiting.request, waiting.view))
    }

    pub(super) fn step_apart(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        let Waiting {
            client,
            view,
            request,
            ..
        } = *waiting;
        let subject = Subject::of(request.op);
        let at = collector_of(&request, view);
        let mut max_age = Duration::from_nanos(request.max_age_ns);
        if view != View::All {
            max_age = max_age.min(BELIEVED);
        }
        let since = waiting.came.checked_sub(max_age);
        let known = self.apart(subject).thread.read_since(at, since);
        if let Some(generation) = known
            && let Some(buffer) = self.buffers.find(view, contents(&request, generation))
        {
            let id = buffer.id;
            self.send_buffer(client, &request, id);
            return Step::Answered;
        }
        let costs = self.cost(waiting).copied().unwrap_or_default();
        let expected = costs.answer + known.map_or(costs.read, |_| Duration::ZERO);
        let (uid, now) = (waiting.uid(), Instant::now());
        if !self.budget_for(subject).allows(uid, expected, now) {
            self.refuse_for(client, Reason::OverBudget);
            return Step::Answered;
        }
        let apart = self.apart(subject);
        if apart.thread.is_reading() {
            // It takes part in the turn after that.
            apart.waiting.push(*waiting);
            return Step::Answered;
        }
        if comes_later {
            return Step::NextTurn;
        }
        if !self.buffers.has_room(view, costs.bytes) {
            self.refuse_for(client, Reason::OverMemory);
            return Step::Answered;
        }
        let wish = Wish {
            view,
            request,
            known,
            next: self.apart(subject).thread.next_generation(),
            most_of_user: self.most_cgroups,
            longest: longest(&request, view),
        };
        let done = Arc::clone(&self.work_done);
        let apart = self.apart(subject);
        match apart.thread.start(wish, done) {
            Ok(()) => apart.reads_for = Some(*waiting),
            Err(_) => self.refuse(client, Status::Failed),
        }
        Step::Worked
    }

    /// Answers the request for which a thread has read. Those that have waited take part in the next turn.
    pub(super) fn finish_apart(&mut self, subject: Subject) {
        let apart = self.apart(subject);
        let done = match apart.thread.progress() {
            None | Some(Progress::Reading) => return,
            Some(Progress::Done(done)) => Some(*done),
            Some(Progress::Failed) => None,
        };
        let (mut rest, reads_for) = (std::mem::take(&mut apart.waiting), apart.reads_for.take());
        self.waiting.append(&mut rest);
        let Some(waiting) = reads_for else {
            return;
        };
        let Waiting {
            client, request, ..
        } = waiting;
        let is_own = done.as_ref().is_some_and(|done| done.is_own);
        let done = done.map_or(Err(Status::Failed), |done| self.use_done(&waiting, done));
        let answer = match done {
            Ok(answer) => answer,
            Err(Status::Busy) if is_own => {
                return self.refuse_for(client, Reason::OverBudget);
            }
            Err(status) => {
                // That there are too many may be another user's doing, so nobody is blamed.
                let refused = match subject {
                    Subject::Files => &mut self.counted.files_refused,
                    _ => &mut self.counted.cgroups_refused,
                };
                *refused += u64::from(status == Status::Busy);
                self.refuse(client, status);
                return;
            }
        };
        let began = cpu_time();
        let filled = self.fill_apart(&waiting, &answer);
        let took = cpu_time().saturating_sub(began);
        self.charge_for(subject, waiting.uid(), took);
        match filled {
            Ok(id) => self.send_buffer(client, &request, id),
            Err(Status::Busy) => self.refuse_for(client, Reason::OverMemory),
            Err(status) => self.refuse(client, status),
        }
    }

    /// Charges the user for the work of the thread.
    fn use_done(&mut self, waiting: &Waiting, done: Done) -> Result<Answer, Status> {
        if let Some(reason) = done.reason {
            self.user_events.failed(&reason);
        }
        // A refusal costs next to nothing.
        if let (Ok(_), Some(costs)) = (&done.answer, self.cost(waiting)) {
            costs.answer = done.cpu.saturating_sub(done.read);
            if !done.was_known {
                costs.read = done.read;
            }
        }
        // The thread's time is not that of this one.
        let (uid, now) = (waiting.uid(), Instant::now());
        let subject = Subject::of(waiting.request.op);
        self.budget_for(subject).spend(uid, done.cpu, now);
        done.answer
    }

    fn fill_apart(&mut self, waiting: &Waiting, answer: &Answer) -> Result<u64, Status> {
        let Waiting { view, request, .. } = *waiting;
        let words = answer.words.len();
        if let Some(costs) = self.cost(waiting) {
            costs.bytes = words * 8;
        }
        let buffer = self.buffers.take(view, words * 8)?;
        let counts = Counts {
            pool: words,
            ..Counts::default()
        };
        let parts = buffer.memory.parts(counts).ok_or(Status::Failed)?;
        parts.pool.copy_from_slice(&answer.words);
        buffer.reply = Reply {
            buffer: buffer.id,
            buffer_bytes: buffer.memory.bytes() as u64,
            ..answer.reply
        };
        buffer.finish(contents(&request, answer.reply.generation));
        self.counted.fills += 1;
        Ok(buffer.id)
    }
}

fn contents(request: &Request, generation: u64) -> Contents {
    Contents {
        generation,
        groups: request.groups,
        exits: Range::default(),
        subject: Subject::of(request.op),
        ..Contents::default()
    }
}
