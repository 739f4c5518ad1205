//! Turns: the order of work, in which no user waits for the repeated requests of another.
//!
//! In each turn every user has at most one walk and one snapshot written for it; what exists already is sent in
//! addition. The user who has waited longest for work comes first. Between turns, which are short, new requests are
//! read. Cgroups and open files have orders of their own, and come before the processes: threads read them, so they take no
//! time of the turn.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fastproc::{
    Fields,
    source::service::wire::{Op, Request, Status},
};

use super::{Service, background::Cost};
use crate::{
    background,
    budget::cpu_time,
    buffers::{Contents, Subject},
    exits::Range,
    field_sets::{COUNT, NoRoom},
    user_events::{Reason, chain},
    view::View,
};

/// After this time new requests are read, even if some waiting ones had no work done.
const LONGEST_TURN: Duration = Duration::from_millis(2);
/// Users for whom the service remembers when it last worked.
const USERS_IN_ORDER: usize = 64;
/// Used where the settings name a time without an end.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// A request that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) client: u64,
    pub(super) view: View,
    pub(super) field_set: usize,
    pub(super) request: Request,
    pub(super) came: Instant,
}

impl Waiting {
    /// The user whose budget it is charged to.
    pub(super) fn uid(&self) -> u32 {
        self.view.uid()
    }
}

/// Users in the order in which work was last done for them: for cgroups, for open files, and for everything else.
pub(super) type Orders = [Vec<u32>; 3];

/// In which of the orders a request takes its turn.
fn order_of(request: &Request) -> usize {
    Subject::of(request.op) as usize
}

/// Requests that wait for texts that are being read for others, by the time until which they wait.
#[derive(Debug, Default)]
pub(super) struct Parked(BTreeMap<(Instant, u64), Waiting>);

impl Parked {
    /// Parks a request until another reading ends, or until then.
    fn add(&mut self, waiting: Waiting, until: Instant) {
        self.0.insert((until, waiting.client), waiting);
    }

    /// When the first has waited long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((until, _), _)| *until)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the requests that have waited long enough.
    fn take_due(&mut self, now: Instant) -> Vec<Waiting> {
        let mut due = Vec::new();
        while let Some(first) = self.0.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        due
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.0).into_values().collect()
    }
}

/// What work took the last time, and is expected to take the next time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) identify: Duration,
    pub(super) start_exits: Duration,
    write_exits: Duration,
    /// By set of fields.
    walk: [Duration; COUNT],
    write: [Duration; COUNT],
    /// Bytes of the last buffer of a set of fields.
    pub(super) bytes: [usize; COUNT],
    /// For one process.
    pub(super) text: Duration,
    /// Of root and of users, by collector.
    pub(super) cgroups: [[Cost; background::COUNT]; 2],
}

/// What became of a request in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was answered or refused, without work.
    Answered,
    /// It was answered after work, or became a job.
    Worked,
    /// It waits for the next turn.
    NextTurn,
    /// It waits until another reading ends.
    Parked,
}

impl Service {
    /// Does one turn.
    pub(super) fn turn(&mut self) {
        // Parked requests can continue only when a reading has begun or ended.
        let mut waiting = if std::mem::take(&mut self.jobs_changed) {
            self.parked.take_all()
        } else {
            self.parked.take_due(Instant::now())
        };
        waiting.append(&mut self.waiting);
        let mut orders = std::mem::take(&mut self.orders);
        // The user who has waited longest for work comes first.
        waiting.sort_by_key(|waiting| {
            let order = order_of(&waiting.request);
            let mut served = orders[order].iter();
            let place = served.position(|&uid| uid == waiting.uid());
            (order, place)
        });
        let (began, mut fresh) = (Instant::now(), Orders::default());
        self.can_go_on = false;
        waiting.retain(|waiting| {
            let Some(client) = self.clients.get(&waiting.client) else {
                return false;
            };
            debug_assert!(client.waits);
            let uid = waiting.uid();
            let fresh = &mut fresh[order_of(&waiting.request)];
            self.request_costs.add(client.account, 1);
            let comes_later =
                fresh.contains(&uid) || (!fresh.is_empty() && began.elapsed() >= LONGEST_TURN);
            match self.step(waiting, comes_later) {
                Step::Answered => false,
                Step::Worked => {
                    fresh.push(uid);
                    false
                }
                Step::NextTurn => {
                    self.can_go_on = true;
                    true
                }
                Step::Parked => {
                    self.parked.add(*waiting, self.texts_late_at(waiting));
                    false
                }
            }
        });
        for (served, mut fresh) in orders.iter_mut().zip(fresh) {
            served.retain(|uid| !fresh.contains(uid));
            served.append(&mut fresh);
            let forgotten = served.len().saturating_sub(USERS_IN_ORDER);
            served.drain(..forgotten);
        }
        self.waiting = waiting;
        self.orders = orders;
    }

    fn step(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        match waiting.request.op {
            Op::Exits => self.step_exits(waiting, comes_later),
            Op::Cgroups | Op::Files => self.step_apart(waiting, comes_later),
            Op::Hello => {
                self.greet(waiting);
                Step::Answered
            }
            _ => self.step_snapshot(waiting, comes_later),
        }
    }

    fn step_snapshot(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        let Waiting {
            field_set,
            request,
            client,
            ..
        } = *waiting;
        let uid = waiting.uid();
        let since = self.walked_since(waiting);
        if let Some(generation) = self.field_sets.walked_since(field_set, since) {
            let contents = self.contents(waiting, generation);
            if let Some(buffer) = self.buffers.find(waiting.view, contents) {
                let id = buffer.id;
                self.send_buffer(client, &request, id);
                return Step::Answered;
            }
            if self.join_job(waiting, contents) {
                return Step::Answered;
            }
        }
        let reads_texts = !request.texts.is_empty() && Instant::now() < self.texts_late_at(waiting);
        if reads_texts && !self.may_start_job(uid) {
            return Step::Parked;
        }
        let walks = self.field_sets.walked_since(field_set, since).is_none();
        let mut expected = self.costs.write[field_set];
        if walks {
            expected += self.costs.walk[field_set];
        }
        if !self.budget.allows(uid, expected, Instant::now()) {
            self.refuse_for(client, Reason::OverBudget);
            return Step::Answered;
        }
        if comes_later {
            return Step::NextTurn;
        }
        // Refuse before any work, if the size is known.
        if !self
            .buffers
            .has_room(waiting.view, self.costs.bytes[field_set])
        {
            self.refuse_for(client, Reason::OverMemory);
            return Step::Answered;
        }
        // Nobody is charged for this: it happens rarely, and serves the readers of all users.
        let room = self.field_sets.make_room(field_set);
        if let Err(error @ NoRoom::Now(_)) = &room {
            self.user_events.failed(&chain(error));
        }
        let began = cpu_time();
        let mut after = began;
        let walked = if room.is_err() {
            Err(())
        } else if let Some(generation) = self.field_sets.walked_since(field_set, since) {
            Ok(generation)
        } else {
            let walked = self.field_sets.walk(field_set).map_err(|error| {
                self.user_events.failed(&chain(&error));
            });
            // After the walk: a process that exited meanwhile is in the records, among the exits, or in both, and never
            // missing.
            self.read_exits();
            self.field_sets
                .set_exits(field_set, self.exits.last().unwrap_or(0));
            after = cpu_time();
            self.costs.walk[field_set] = after.saturating_sub(began);
            walked
        };
        let filled = match walked {
            Ok(generation) => self.serve(waiting, generation, reads_texts),
            Err(()) => Err(Status::Failed),
        };
        let end = cpu_time();
        if walked.is_ok() {
            self.costs.write[field_set] = end.saturating_sub(after);
        }
        self.charge(uid, end.saturating_sub(began));
        match filled {
            Ok(()) => (),
            Err(Status::Busy) => self.refuse_for(client, Reason::OverMemory),
            Err(status) => self.refuse(client, status),
        }
        Step::Worked
    }

    /// When a request is answered without the texts that are missing.
    fn texts_late_at(&self, waiting: &Waiting) -> Instant {
        let late = waiting.came.checked_add(self.texts_timeout);
        late.unwrap_or_else(|| waiting.came + LONGEST_WAIT)
    }

    /// The earliest start of a walk that can serve this request. A walk from before exits were recorded does not say
    /// where they begin. `None`: any time.
    fn walked_since(&self, waiting: &Waiting) -> Option<Instant> {
        let Waiting {
            request, field_set, ..
        } = waiting;
        let before = request.exits && Some(self.field_sets.exits(*field_set)) < self.exits.since();
        let max_age = Duration::from_nanos(request.max_age_ns);
        let max_age = if before { Duration::ZERO } else { max_age };
        waiting.came.checked_sub(max_age)
    }

    fn contents(&self, waiting: &Waiting, generation: u64) -> Contents {
        let Waiting {
            request, field_set, ..
        } = waiting;
        let exits = if request.exits {
            let last = self.field_sets.exits(*field_set);
            self.exits.range(request.exits_after, last)
        } else {
            Range::default()
        };
        Contents {
            generation,
            field_set: *field_set,
            groups: request.groups,
            texts: request.texts,
            texts_max_age_ns: request.texts_max_age_ns,
            exits,
            subject: Subject::Processes,
        }
    }

    /// Sends a snapshot of a walk, or starts a job that reads its texts.
    fn serve(
        &mut self,
        waiting: &Waiting,
        generation: u64,
        reads_texts: bool,
    ) -> Result<(), Status> {
        let contents = self.contents(waiting, generation);
        if let Some(id) = self.fill(waiting, contents, reads_texts)? {
            self.send_buffer(waiting.client, &waiting.request, id);
        }
        Ok(())
    }

    /// Sends the exits since the reader's last request.
    fn step_exits(&mut self, waiting: &Waiting, comes_later: bool) -> Step {
        let Waiting {
            client,
            view,
            request,
            ..
        } = *waiting;
        let uid = waiting.uid();
        let expected = self.costs.write_exits;
        if !self.budget.allows(uid, expected, Instant::now()) {
            self.refuse_for(client, Reason::OverBudget);
            return Step::Answered;
        }
        if comes_later {
            return Step::NextTurn;
        }
        let began = cpu_time();
        match self.hand_exits(client, &request, view) {
            Ok(()) => (),
            Err(Status::Busy) => self.refuse_for(client, Reason::OverMemory),
            Err(status) => self.refuse(client, status),
        }
        self.costs.write_exits = cpu_time().saturating_sub(began);
        self.charge(uid, self.costs.write_exits);
        Step::Worked
    }

    /// The groups that are requested.
    pub(super) fn groups(contents: Contents) -> Fields {
        Fields::from_bits_truncate(contents.groups)
    }
}
