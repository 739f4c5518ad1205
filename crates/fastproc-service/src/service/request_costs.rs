//! What requests cost apart from the work that is done for them: reading and refusing a request takes time as well.
//!
//! The service reads a limited number of requests of one user, and then those of others. The CPU time that the thread did not
//! spend on work is charged to the users, in proportion to their requests. A user who sends too many is not read for 0.1 s:
//! otherwise a user who is refused could ask again at once, and keep a CPU busy with refusals.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::Service;
use crate::{
    budget::{Budget, cpu_time},
    buffers::Subject,
};

/// Requests of one user that are read before those of others.
pub(super) const ASKED_AT_ONCE: u32 = 64;
/// Requests of all users that are charged together.
const SETTLED_TOGETHER: u32 = ASKED_AT_ONCE / 2;
/// The weight, in requests, of identifying a reader or writing a text about the service.
pub(super) const WEIGHT_OF_MUCH: u32 = 16;
/// The weight, in requests, of accepting a connection.
pub(super) const WEIGHT_OF_CONNECTION: u32 = 4;
/// What a user's requests may take, apart from work: a part of what work may take, but at least this share of one CPU.
const PART_OF_WORK: f64 = 0.2;
const LEAST_SHARE: f64 = 0.02;
/// How long the service does not read from a user who has sent too many requests.
const HOLD: Duration = Duration::from_millis(100);

/// The requests of each user, and what they cost.
#[derive(Debug)]
pub(super) struct RequestCosts {
    /// By account, since the last charge.
    counts: Vec<(u32, u32)>,
    budget: Budget,
    held: HashMap<u32, Held>,
    /// CPU time of the thread at the last charge.
    last: Duration,
    /// CPU time of the thread since then that was charged as work.
    worked: Duration,
}

/// A user whose requests are not read now.
#[derive(Debug)]
struct Held {
    until: Instant,
    /// Connections whose requests are not read.
    clients: Vec<u64>,
}

impl RequestCosts {
    /// `cpu_of_user`: the share of one CPU that work for a user may take.
    pub(super) fn new(cpu_of_user: f64) -> Self {
        Self {
            counts: Vec::new(),
            budget: Budget::new((cpu_of_user * PART_OF_WORK).max(LEAST_SHARE)),
            held: HashMap::new(),
            last: cpu_time(),
            worked: Duration::ZERO,
        }
    }

    fn count(&mut self, account: u32) -> &mut u32 {
        let at = self.counts.iter().position(|(of, _)| *of == account);
        let at = at.unwrap_or_else(|| {
            self.counts.push((account, 0));
            self.counts.len() - 1
        });
        &mut self.counts[at].1
    }

    /// Adds a request of this user.
    pub(super) fn add(&mut self, account: u32, weight: u32) {
        *self.count(account) += weight;
    }

    /// Whether this user has sent so many requests that others come first. Its unread requests are reported again,
    /// after theirs.
    pub(super) fn others_come_first(&mut self, account: u32) -> bool {
        *self.count(account) >= ASKED_AT_ONCE
    }

    /// When the first user that is held may send again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.values().map(|held| held.until).min()
    }

    /// Whether there were enough requests to make it worth reading the clock.
    fn is_due(&self) -> bool {
        let all = self.counts.iter().map(|(_, asked)| asked);
        all.sum::<u32>() >= SETTLED_TOGETHER
    }

    /// Charges the CPU time of these requests to the users who sent them.
    fn settle(&mut self, cpu: Duration, now: Instant) {
        let used = cpu.saturating_sub(self.last).saturating_sub(self.worked);
        (self.last, self.worked) = (cpu, Duration::ZERO);
        let all: u32 = self
            .counts
            .iter()
            .map(|(_, asked)| asked)
            .sum::<u32>()
            .max(1);
        for (account, asked) in std::mem::take(&mut self.counts) {
            let share = f64::from(asked) / f64::from(all);
            self.budget.spend(account, used.mul_f64(share), now);
            if !self.budget.allows(account, Duration::ZERO, now) {
                self.hold(account, now + HOLD);
            }
        }
    }

    /// Stops reading from this user until then.
    pub(super) fn hold(&mut self, account: u32, until: Instant) {
        let clients = Vec::new();
        let held = self.held.entry(account);
        held.or_insert(Held { until, clients }).until = until;
    }
}

impl Service {
    /// Charges this user for work of the thread.
    pub(super) fn charge(&mut self, account: u32, took: Duration) {
        self.request_costs.worked += took;
        self.budget.spend(account, took, Instant::now());
    }

    /// Charges this user for work of this thread, in the budget for it.
    pub(super) fn charge_for(&mut self, subject: Subject, account: u32, took: Duration) {
        self.request_costs.worked += took;
        self.budget_for(subject)
            .spend(account, took, Instant::now());
    }

    /// Whether requests of this connection's user are not read now. In that case the kernel does not report the
    /// connection again, unless its other end is closed.
    pub(super) fn is_held(&mut self, token: u64, account: u32) -> bool {
        let Some(held) = self.request_costs.held.get_mut(&account) else {
            return false;
        };
        if let Some(client) = self.clients.get(&token) {
            let none = EventFlags::empty();
            let data = EventData::new_u64(token);
            if epoll::modify(&self.epoll, &client.socket, data, none).is_ok() {
                held.clients.push(token);
            }
        }
        true
    }

    /// Reads again from users that have been held long enough.
    pub(super) fn release_held(&mut self) {
        if self.request_costs.held.is_empty() {
            return;
        }
        let now = Instant::now();
        for (_, held) in self
            .request_costs
            .held
            .extract_if(|_, held| held.until <= now)
        {
            for token in held.clients {
                let Some(client) = self.clients.get(&token) else {
                    continue;
                };
                let data = EventData::new_u64(token);
                // It is watched already, and modifying a watch needs no memory.
                let _ = epoll::modify(&self.epoll, &client.socket, data, EventFlags::IN);
            }
        }
    }

    pub(super) fn settle_request_costs(&mut self) {
        if self.request_costs.is_due() {
            self.request_costs.settle(cpu_time(), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_asks_too_much_is_held_and_others_are_not() {
        let mut costs = RequestCosts::new(0.5);
        let (mut cpu, now) = (costs.last, Instant::now());
        // All of it at one time, so that no budget accrues.
        for _ in 0..1000 {
            costs.add(7, 999);
            costs.add(8, 1);
            cpu += Duration::from_millis(1);
            costs.settle(cpu, now);
        }
        assert!(costs.held.contains_key(&7) && !costs.held.contains_key(&8));
        assert_eq!(costs.deadline(), Some(now + HOLD));
    }

    #[test]
    fn work_is_charged_once_and_root_is_never_held() {
        let mut costs = RequestCosts::new(0.5);
        let (mut cpu, now) = (costs.last, Instant::now());
        for _ in 0..10 {
            costs.add(7, 1);
            cpu += Duration::from_secs(1);
            costs.worked = Duration::from_secs(1);
            costs.settle(cpu, now);
        }
        costs.add(0, 1);
        costs.settle(cpu + Duration::from_secs(10), now);
        assert!(costs.held.is_empty());
    }

    #[test]
    fn others_come_first_when_a_user_has_asked_so_much() {
        let mut costs = RequestCosts::new(0.5);
        let asked = (0..1000).take_while(|_| {
            costs.add(7, 1);
            !costs.others_come_first(7)
        });
        assert_eq!(asked.count() as u32 + 1, ASKED_AT_ONCE);
        assert!(!costs.others_come_first(8));
        costs.settle(costs.last, Instant::now());
        assert!(!costs.others_come_first(7));
    }
}
