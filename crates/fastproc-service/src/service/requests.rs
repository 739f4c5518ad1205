//! Requests: the sender is identified, and what can be answered at once is answered.

use std::time::{Duration, Instant};

use fastproc::{
    Fields,
    source::service::wire::{Op, Request, Status},
};
use nix::errno::Errno;

use super::{Service, request_costs::WEIGHT_OF_MUCH, schedule::Waiting};
use crate::{
    budget::cpu_time,
    hidepid::Hidepid,
    message::{brings_descriptors, read, unread},
    peer::{Peer, PeerQuery, Sender},
    user_events::Reason,
    view::View,
};

impl Service {
    /// Reads one request, unless requests of others come first.
    pub(super) fn receive(&mut self, token: u64) -> bool {
        let Some(client) = self.clients.get(&token) else {
            return false;
        };
        let (account, is_new) = (client.account, !client.peer.is_decided());
        let comes_later =
            self.is_held(token, account) || self.request_costs.others_come_first(account);
        if !comes_later {
            self.read_from(token, account, is_new);
        }
        !comes_later
    }

    fn read_from(&mut self, token: u64, account: u32, is_new: bool) {
        // Identifying a reader takes as long as reading many requests.
        self.request_costs
            .add(account, if is_new { WEIGHT_OF_MUCH } else { 1 });
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        if client.may_pass && brings_descriptors(&client.socket) {
            let began = cpu_time();
            self.blame(token, Reason::CutOff);
            self.close(token);
            return self.charge(account, cpu_time().saturating_sub(began));
        }
        let (words, sender) = match read(&client.socket) {
            Ok(Some(message)) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            Ok(None) | Err(_) => return self.close(token),
        };
        self.counted.requests += 1;
        if let Some(lent) = client.lent.take() {
            self.buffers.give_back(lent);
        }
        // A reader that has not read the last answer must not make answers pile up.
        if client.waits || unread(&client.socket) {
            self.blame(token, Reason::CutOff);
            return self.close(token);
        }
        let request = match Request::from_words(&words) {
            Ok(request) => request,
            Err(status) => return self.refuse(token, status),
        };
        let is_text = matches!(request.op, Op::Layout | Op::Status);
        if is_text {
            self.request_costs.add(account, WEIGHT_OF_MUCH);
        }
        if (is_new || is_text)
            && !self
                .budget
                .allows(account, self.costs.identify, Instant::now())
        {
            return self.refuse_for(token, Reason::OverBudget);
        }
        // Most requests take little; a first one and one for a text take much.
        let began = (is_new || is_text).then(cpu_time);
        self.charged_apart = Duration::ZERO;
        self.sort(token, request, sender);
        if let Some(began) = began {
            let took = cpu_time().saturating_sub(began);
            let took = took.saturating_sub(self.charged_apart);
            if is_new && !is_text {
                self.costs.identify = took;
            }
            // It may be known to be root by now.
            let account = self.clients.get(&token).map_or(account, |of| of.account);
            self.charge(account, took);
        }
    }

    /// Answers what can be answered at once; other requests wait for their turn.
    fn sort(&mut self, token: u64, request: Request, sender: Option<Sender>) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        // fsconfig(2) sets hidepid without an event.
        if !client.peer.is_decided() || self.hidepid.is_old() {
            self.hidepid = Hidepid::read();
        }
        let hides = self.hidepid.hides;
        let peer = client.peer.identify(PeerQuery {
            socket: &client.socket,
            sender,
            op: request.op,
            home: &self.home,
            hides,
            peer_pidfd: self.peer_pidfd,
        });
        let peer = match peer {
            Ok(peer) if Some(peer.sender) != sender => return self.refuse(token, Status::NotYours),
            Ok(Peer {
                view: View::Of(_), ..
            }) if hides => return self.refuse(token, Status::HidePid),
            Ok(peer) => peer,
            // The layout and the status of the service are public.
            Err(_) if matches!(request.op, Op::Layout | Op::Status) => {
                return self.tell(token, request.op);
            }
            Err(status) => return self.refuse(token, status),
        };
        self.unproven.remove(&token);
        if peer.view == View::All {
            self.is_root(token);
        }
        if matches!(request.op, Op::Layout | Op::Status) {
            return self.tell(token, request.op);
        }
        if matches!(request.op, Op::Cgroups | Op::Files) {
            return match self.refusal_apart(&request, &peer) {
                Some(status) => self.refuse(token, status),
                None => self.wait(token, peer.view, 0, request),
            };
        }
        self.want_exits(token, &request, peer.view);
        let mut groups = Fields::from_bits_truncate(request.groups) | peer.view.needs();
        if !request.texts.is_empty() {
            groups |= self.texts.needs();
        }
        let field_set =
            Fields::from_bits(request.groups).and_then(|_| self.field_sets.find(groups));
        let Some(field_set) = field_set.or_else(|| (request.op == Op::Exits).then_some(0)) else {
            return self.refuse(token, Status::Groups);
        };
        self.wait(token, peer.view, field_set, request);
    }

    /// Lets a request wait for its turn.
    fn wait(&mut self, token: u64, view: View, field_set: usize, request: Request) {
        if let Some(client) = self.clients.get_mut(&token) {
            client.waits = true;
        }
        self.waiting.push(Waiting {
            client: token,
            view,
            field_set,
            request,
            came: Instant::now(),
        });
    }
}
