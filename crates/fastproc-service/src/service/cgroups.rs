//! Requests for cgroups. They are charged and take turns as snapshots of processes do, each in a budget and an order of their
//! own, and a thread reads for them, one request at a time.

use std::{sync::Arc, time::Duration, time::Instant};

use fastproc::{
    cgroups::Fields,
    source::service::wire::{Reply, Request, Status},
};

use super::{
    Service,
    schedule::{Step, Waiting},
};
use crate::{
    budget::cpu_time,
    buffers::Contents,
    cgroups::{Answer, Done, LONGEST, Progress, Wish, collector_of},
    exits::Range,
    memory::Counts,
    peer::Peer,
    user_events::Reason,
    view::View,
};

/// How old values for users may be: the permission to see them is checked when they are made, and a mode may change.
const BELIEVED: Duration = Duration::from_secs(1);

/// Why a reader is not shown cgroups, if so.
pub(super) fn refusal(request: &Request, peer: &Peer) -> Option<Status> {
    if Fields::from_bits(request.groups).is_none() {
        return Some(Status::Groups);
    }
    if !peer.shares_cgroup_ns {
        return Some(Status::Namespace);
    }
    // A security module may keep it from reading files.
    matches!(peer.view, View::Of(reader) if reader.confined).then_some(Status::Credentials)
}

/// What the last snapshot of the cgroups cost that was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CgroupCosts {
    pub(super) read: Duration,
    /// To check the permission, and to convert it.
    pub(super) answer: Duration,
    pub(super) bytes: usize,
}

impl Service {
    /// The costs for root, or for users: they are shown fewer, and their permission is checked.
    fn cgroup_costs(&mut self, view: View, groups: Fields) -> &mut CgroupCosts {
        let of_view = &mut self.costs.cgroups[usize::from(view != View::All)];
        &mut of_view[collector_of(groups)]
    }

    pub(super) fn step_cgroups(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        let Waiting {
            client,
            view,
            request,
            ..
        } = *waiting;
        let groups = asked(&request);
        let at = collector_of(groups);
        let mut max_age = Duration::from_nanos(request.max_age_ns);
        if view != View::All {
            max_age = max_age.min(BELIEVED);
        }
        let since = waiting.came.checked_sub(max_age);
        let known = self.cgroups.read_since(at, since);
        if let Some(generation) = known
            && let Some(buffer) = self.buffers.find(view, contents(&request, generation))
        {
            let id = buffer.id;
            self.send_buffer(client, &request, id);
            return Step::Answered;
        }
        let costs = *self.cgroup_costs(view, groups);
        let expected = costs.answer + known.map_or(costs.read, |_| Duration::ZERO);
        let (uid, now) = (waiting.uid(), Instant::now());
        if !self.cgroup_budget.allows(uid, expected, now) {
            self.refuse_for(client, Reason::OverBudget);
            return Step::Answered;
        }
        if self.cgroups.is_reading() {
            // It takes part in the turn after that.
            self.waiting_for_cgroups.push(*waiting);
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
            groups,
            known,
            next: self.cgroups.next_generation(),
            most_of_user: self.most_cgroups,
            longest_of_user: LONGEST,
        };
        let done = Arc::clone(&self.work_done);
        match self.cgroups.start(wish, done) {
            Ok(()) => self.reads_cgroups_for = Some(*waiting),
            Err(_) => self.refuse(client, Status::Failed),
        }
        Step::Worked
    }

    /// Answers the request for which cgroups were read. Those that have waited take part in the next turn.
    pub(super) fn finish_cgroups(&mut self) {
        let done = match self.cgroups.progress() {
            None | Some(Progress::Reading) => return,
            Some(Progress::Done(done)) => Some(*done),
            Some(Progress::Failed) => None,
        };
        self.waiting.append(&mut self.waiting_for_cgroups);
        let Some(waiting) = self.reads_cgroups_for.take() else {
            return;
        };
        let Waiting {
            client, request, ..
        } = waiting;
        let done = done.map_or(Err(Status::Failed), |done| self.use_cgroups(&waiting, done));
        let answer = match done {
            Ok(answer) => answer,
            Err(status) => {
                // That there are too many may be another user's doing, so nobody is blamed.
                self.counted.cgroups_refused += u64::from(status == Status::Busy);
                self.refuse(client, status);
                return;
            }
        };
        let began = cpu_time();
        let filled = self.fill_cgroups(&waiting, &answer);
        self.charge_for_cgroups(waiting.uid(), cpu_time().saturating_sub(began));
        match filled {
            Ok(id) => self.send_buffer(client, &request, id),
            Err(Status::Busy) => self.refuse_for(client, Reason::OverMemory),
            Err(status) => self.refuse(client, status),
        }
    }

    /// Charges the user for the work of the thread.
    fn use_cgroups(&mut self, waiting: &Waiting, done: Done) -> Result<Answer, Status> {
        let Waiting { view, request, .. } = *waiting;
        if let Some(reason) = done.reason {
            self.user_events.failed(&reason);
        }
        // A refusal costs next to nothing.
        if done.answer.is_ok() {
            let costs = self.cgroup_costs(view, asked(&request));
            costs.answer = done.cpu.saturating_sub(done.read);
            if !done.was_known {
                costs.read = done.read;
            }
        }
        // The thread's time is not that of this one.
        let (uid, now) = (waiting.uid(), Instant::now());
        self.cgroup_budget.spend(uid, done.cpu, now);
        done.answer
    }

    fn fill_cgroups(&mut self, waiting: &Waiting, answer: &Answer) -> Result<u64, Status> {
        let Waiting { view, request, .. } = *waiting;
        let words = answer.words.len();
        let groups = asked(&request);
        self.cgroup_costs(view, groups).bytes = words * 8;
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

/// The groups that a reader is shown. It has the others from elsewhere, or not at all.
fn asked(request: &Request) -> Fields {
    Fields::from_bits_retain(request.groups) - Fields::PRESSURE_AVERAGES
}

fn contents(request: &Request, generation: u64) -> Contents {
    Contents {
        generation,
        groups: request.groups,
        exits: Range::default(),
        is_of_cgroups: true,
        ..Contents::default()
    }
}
