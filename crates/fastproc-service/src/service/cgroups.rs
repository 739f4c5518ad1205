//! Requests for cgroups. They are charged and take turns as snapshots of processes do.

use std::time::{Duration, Instant};

use fastproc::{
    cgroups::Fields,
    source::service::wire::{Request, Status},
};

use super::{
    Service,
    turn::{Step, Waiting},
};
use crate::{
    blame::Reason, budget::cpu_time, buffers::Contents, cgroups::collector_of, exits::Range,
    memory::Counts, peer::Peer, view::View,
};

/// Why a reader is not shown cgroups, if so.
pub(super) fn refusal(request: &Request, peer: &Peer) -> Option<Status> {
    if Fields::from_bits(request.groups).is_none() {
        return Some(Status::Groups);
    }
    if !peer.shares_cgroup_ns {
        return Some(Status::Namespace);
    }
    // Which files a user may read is not checked here, and users may make as many cgroups as they like.
    (peer.view != View::All).then_some(Status::Credentials)
}

impl Service {
    pub(super) fn step_cgroups(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        let Waiting {
            client,
            view,
            request,
            ..
        } = *waiting;
        let at = collector_of(Fields::from_bits_retain(request.groups));
        let max_age = Duration::from_nanos(request.max_age_ns);
        let since = waiting.came.checked_sub(max_age);
        let contents = |generation| Contents {
            generation,
            groups: request.groups,
            exits: Range::default(),
            is_of_cgroups: true,
            ..Contents::default()
        };
        let known = self.cgroups.read_since(at, since);
        if let Some(generation) = known
            && let Some(buffer) = self.buffers.find(view, contents(generation))
        {
            let id = buffer.id;
            self.send_buffer(client, &request, id);
            return Step::Answered;
        }
        let costs = self.costs.cgroups[at];
        let expected = costs.write + known.map_or(costs.read, |_| Duration::ZERO);
        if !self.budget.allows(waiting.uid(), expected, Instant::now()) {
            self.refuse_for(client, Reason::OverBudget);
            return Step::Answered;
        }
        if comes_later {
            return Step::NextTurn;
        }
        if !self.buffers.has_room(view, costs.bytes) {
            self.refuse_for(client, Reason::OverMemory);
            return Step::Answered;
        }
        let began = cpu_time();
        let mut after = began;
        let read = known.map_or_else(
            || {
                let read = self.cgroups.read(at).map_err(|_| Status::Failed);
                after = cpu_time();
                self.costs.cgroups[at].read = after.saturating_sub(began);
                read
            },
            Ok,
        );
        let filled = read.and_then(|generation| self.fill_cgroups(view, contents(generation), at));
        let end = cpu_time();
        self.costs.cgroups[at].write = end.saturating_sub(after);
        self.charge(waiting.uid(), end.saturating_sub(began));
        match filled {
            Ok(id) => self.send_buffer(client, &request, id),
            Err(Status::Busy) => self.refuse_for(client, Reason::OverMemory),
            Err(status) => self.refuse(client, status),
        }
        Step::Worked
    }

    fn fill_cgroups(&mut self, view: View, contents: Contents, at: usize) -> Result<u64, Status> {
        let answer = self.cgroups.answer(contents)?;
        let words = answer.words();
        self.costs.cgroups[at].bytes = words * 8;
        let buffer = self.buffers.take(view, words * 8)?;
        let counts = Counts {
            pool: words,
            ..Counts::default()
        };
        let parts = buffer.memory.parts(counts).ok_or(Status::Failed)?;
        let mut reply = answer.write(parts.pool, contents);
        reply.buffer = buffer.id;
        reply.buffer_bytes = buffer.memory.bytes() as u64;
        buffer.reply = reply;
        buffer.finish(contents);
        self.counted.fills += 1;
        Ok(buffer.id)
    }
}
