//! What readers ask: who asks is found out, and what can be answered at once is.

use std::time::{Duration, Instant};

use fastproc::{
    Fields,
    source::service::wire::{Op, Request, Status},
};
use nix::errno::Errno;

use super::{Service, turn::Waiting};
use crate::{
    blame::Reason,
    budget::cpu_time,
    hidepid::Hidepid,
    message::{brings_descriptors, read, unread},
    peer::{Peer, PeerQuery, Sender},
    view::View,
};

/// What one user may ask before others are answered; to find out who somebody is counts as sixteen requests.
pub(super) const ASKED_AT_ONCE: usize = 256;

impl Service {
    /// Whether this user has asked so much that others come first. What is not read now is reported again, behind them.
    fn others_come_first(&mut self, account: u32, weight: usize) -> bool {
        let asked = self.asked.iter_mut().find(|(of, _)| *of == account);
        match asked {
            Some((_, asked)) if *asked >= ASKED_AT_ONCE => true,
            Some((_, asked)) => {
                *asked += weight;
                false
            }
            None => {
                self.asked.push((account, weight));
                false
            }
        }
    }

    /// Reads one request.
    pub(super) fn receive(&mut self, token: u64) {
        let Some(client) = self.clients.get(&token) else {
            return;
        };
        let (account, is_new) = (client.account, !client.peer.is_decided());
        // Finding out who it is takes as long as reading many requests.
        if self.others_come_first(account, if is_new { 16 } else { 1 }) {
            self.can_go_on = true;
            return;
        }
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        if client.may_pass && brings_descriptors(&client.socket) {
            let began = cpu_time();
            self.blame(token, Reason::CutOff);
            self.close(token);
            let took = cpu_time().saturating_sub(began);
            return self.budget.spend(account, took, Instant::now());
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
        // Who has not had the last answer, or has not read it, shall not have the next one pile up.
        if client.waits || unread(&client.socket) {
            self.blame(token, Reason::CutOff);
            return self.close(token);
        }
        let request = match Request::from_words(&words) {
            Ok(request) => request,
            Err(status) => return self.refuse(token, status),
        };
        let is_text = matches!(request.op, Op::Layout | Op::Status);
        if (is_new || is_text)
            && !self
                .budget
                .allows(account, self.costs.identify, Instant::now())
        {
            return self.refuse_for(token, Reason::OverBudget);
        }
        // Little is done for most requests, and much for a first one and for a text.
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
            self.budget.spend(account, took, Instant::now());
        }
    }

    /// Answers what can be answered at once; the rest waits for its turn.
    fn sort(&mut self, token: u64, request: Request, sender: Option<Sender>) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        // fsconfig(2) sets hidepid without an event of the mounts.
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
            // The description and the status of the service are no secret.
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
        self.want_exits(token, &request, peer.view);
        let mut groups = Fields::from_bits_truncate(request.groups) | peer.view.needs();
        if !request.texts.is_empty() {
            groups |= self.texts.needs();
        }
        let tier = Fields::from_bits(request.groups).and_then(|_| self.tiers.find(groups));
        let Some(tier) = tier.or_else(|| (request.op == Op::Exits).then_some(0)) else {
            return self.refuse(token, Status::Groups);
        };
        if let Some(client) = self.clients.get_mut(&token) {
            client.waits = true;
        }
        self.waiting.push(Waiting {
            client: token,
            view: peer.view,
            tier,
            request,
            came: Instant::now(),
        });
    }
}
