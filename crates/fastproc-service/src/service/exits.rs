//! When exits are recorded: while a reader wants them, and a moment longer.

use std::time::Instant;

use fastproc::source::service::wire::{Op, Request};
use rustix::event::epoll::EventFlags;

use fastproc::host::boottime_ns;

use super::{RING, Service};
use crate::{budget::cpu_time, view::View};

impl Service {
    /// Notes whether this reader wants exits, and begins recording if it is the first.
    pub(super) fn want_exits(&mut self, token: u64, request: &Request, view: View) {
        let wants = request.exits || request.op == Op::Exits;
        let (uid, now_ns) = (view.uid(), boottime_ns());
        if wants
            && self.exits.may_start(now_ns)
            && self
                .budget
                .allows(uid, self.costs.start_exits, Instant::now())
        {
            let began = cpu_time();
            self.exits.start(now_ns);
            self.watch_ring();
            self.costs.start_exits = cpu_time().saturating_sub(began);
            self.charged_apart = self.costs.start_exits;
            self.charge(uid, self.costs.start_exits);
        }
        if let Some(client) = self.clients.get_mut(&token) {
            let last = self.exits.last().unwrap_or(0);
            let had = Some(request.exits_after).filter(|&had| had != 0);
            client.exits = wants.then(|| had.unwrap_or(last));
        }
    }

    pub(super) fn read_exits(&mut self) {
        if self.exits.read() {
            self.watch_ring();
        }
    }

    fn watch_ring(&mut self) {
        let Some(ring) = self.exits.fd() else { return };
        // Edge-triggered: once for each quarter that fills. Requests for exits read the ring as well.
        if self
            .watch(ring, RING, EventFlags::IN | EventFlags::ET)
            .is_err()
        {
            self.exits.stop();
        }
    }

    /// Forgets exits that all readers have received. Stops recording when no reader has wanted exits for a while;
    /// stopping at once would restart recording for every reader that comes and goes.
    pub(super) fn settle_exits(&mut self) {
        if !self.exits.is_recording() {
            self.exits_unwanted = None;
            return;
        }
        let wanted = self.clients.values().filter_map(|client| client.exits);
        if let Some(had) = wanted.min() {
            self.exits_unwanted = None;
            return self.exits.forget(had);
        }
        let since = *self.exits_unwanted.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.exits_linger {
            self.exits_unwanted = None;
            self.exits.stop();
        }
    }
}
