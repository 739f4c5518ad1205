//! Accepting, charging and closing connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::socket::{SockFlag, accept4, getsockopt, sockopt::PeerCredentials},
};
use rustix::event::epoll::{self, EventData, EventFlags};

use super::{LISTENER, Service, UNKNOWN, request_costs::WEIGHT_OF_CONNECTION};
use crate::{
    buffers::Contents,
    closing::{self, may_pass_descriptors},
    peer::Known,
    settings::{CONNECTIONS, CONNECTIONS_OF_USER},
    user_events::Reason,
};

/// The account of connections of uid 0 until they are known to have root's rights. A process with that uid but without
/// the rights has the limits of any other user. No user has this number.
const UNPROVEN_ROOT: u32 = u32::MAX;
/// How long no connection is accepted after descriptors ran out.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// A reader.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) socket: OwnedFd,
    pub(super) uid: u32,
    /// The account that is charged for its requests: its user, or [`UNPROVEN_ROOT`].
    pub(super) account: u32,
    /// Its process, which is identified when it asks.
    pub(super) peer: Known,
    /// The buffer that it may read until its next request.
    pub(super) lent: Option<u64>,
    /// What its last snapshot was.
    pub(super) last: Contents,
    /// The last exit that it has received, if it wants them.
    pub(super) exits: Option<u64>,
    /// Whether it waits for an answer.
    pub(super) waits: bool,
    /// Whether it can send descriptors.
    pub(super) may_pass: bool,
}

impl Service {
    pub(super) fn accept(&mut self) {
        // The rest of a flood comes with the next event.
        for _ in 0..UNKNOWN {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = match accept4(self.listener.as_raw_fd(), flags) {
                // SAFETY: the kernel has just made it for this process, and nothing else knows it.
                Ok(socket) => unsafe { OwnedFd::from_raw_fd(socket) },
                Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return,
                // Without descriptors or memory, existing readers are served, and new ones read `/proc` themselves.
                Err(_) => return self.pause(),
            };
            self.counted.connections += 1;
            let uid = getsockopt(&socket, PeerCredentials)
                .map_or(u32::MAX, |credentials| credentials.uid());
            let account = if uid == 0 { UNPROVEN_ROOT } else { uid };
            self.request_costs.add(account, WEIGHT_OF_CONNECTION);
            let of_account = self.connections.get(&account).map_or(0, BTreeSet::len);
            let too_many = of_account >= CONNECTIONS_OF_USER;
            if too_many {
                self.user_events.add(Some(uid), Reason::CutOff);
            }
            if account == UNPROVEN_ROOT && too_many {
                // Root itself can still connect; it is identified when it asks.
                self.close_oldest_of(account);
            } else if too_many {
                closing::close(socket);
                continue;
            }
            let is_full = self.clients.len() >= CONNECTIONS;
            if is_full && !self.make_room(of_account) {
                self.user_events.add(Some(uid), Reason::CutOff);
                closing::close(socket);
                continue;
            }
            let token = self.next_client;
            self.next_client += 1;
            if self.watch(socket.as_fd(), token, EventFlags::IN).is_ok() {
                let client = Client {
                    may_pass: may_pass_descriptors(socket.as_fd()),
                    socket,
                    uid,
                    account,
                    peer: Known::Nothing,
                    lent: None,
                    last: Contents::default(),
                    exits: None,
                    waits: false,
                };
                self.clients.insert(token, client);
                self.unproven.insert(token);
                self.connections.entry(account).or_default().insert(token);
            }
            // The next connection might close this one, which must be able to send a request before.
            if is_full {
                return;
            }
        }
    }

    /// Accepts no connection for a while: otherwise the socket would be reported again at once, endlessly.
    pub(super) fn pause(&mut self) {
        self.counted.pauses += 1;
        let none = EventFlags::empty();
        if epoll::modify(
            &self.epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            none,
        )
        .is_ok()
        {
            self.paused = Some(Instant::now());
        }
    }

    pub(super) fn accept_again(&mut self) {
        if self.paused.is_some_and(|since| since.elapsed() >= PAUSE) {
            self.paused = None;
            let again = EventFlags::IN;
            let data = EventData::new_u64(LISTENER);
            if epoll::modify(&self.epoll, &self.listener, data, again).is_err() {
                self.paused = Some(Instant::now());
            }
        }
    }

    pub(super) fn close(&mut self, token: u64) {
        // Closing takes it out of the epoll set. Its request, if one waits, is dropped: at the latest in the next turn, but
        // a thread that reads cgroups or files may take longer.
        let Some(client) = self.clients.remove(&token) else {
            return;
        };
        for apart in [&mut self.cgroups, &mut self.files] {
            apart.waiting.retain(|waiting| waiting.client != token);
        }
        self.unproven.remove(&token);
        self.forget_connection(client.account, token);
        closing::close(client.socket);
        if let Some(lent) = client.lent {
            self.buffers.give_back(lent);
        }
    }

    /// Moves a reader that has proven to be root to root's account, which has no limit.
    pub(super) fn is_root(&mut self, token: u64) {
        if let Some(client) = self.clients.get_mut(&token)
            && client.account != 0
        {
            let before = std::mem::replace(&mut client.account, 0);
            self.forget_connection(before, token);
            self.connections.entry(0).or_default().insert(token);
        }
    }

    /// Closes a connection, so that a user who has `of_account` connections can have one more. `false`: none may be
    /// closed.
    ///
    /// The oldest connection that was never served goes first, since a user may connect by thousands of ids of its user
    /// namespaces, which are not served. Otherwise the user with the most connections loses one, unless it would then
    /// have fewer than the user who connects.
    fn make_room(&mut self, of_account: usize) -> bool {
        if let Some(token) = self.unproven.first().copied() {
            self.blame(token, Reason::CutOff);
            self.close(token);
            return true;
        }
        let all = self.connections.iter();
        let users = all.filter(|&(&account, tokens)| account != 0 && tokens.len() > of_account + 1);
        let Some((_, tokens)) = users.max_by_key(|(_, tokens)| tokens.len()) else {
            return false;
        };
        let client = |token: &u64| self.clients.get(token);
        let rests = |token: &&u64| client(token).is_some_and(|client| !client.waits);
        let Some(token) = tokens.iter().find(rests).or(tokens.first()).copied() else {
            return false;
        };
        // The reader may still be reading its buffer, so the buffer is not reused.
        let lent = self.clients.get_mut(&token).and_then(|of| of.lent.take());
        lent.inspect(|&lent| self.buffers.give_up(lent));
        self.blame(token, Reason::CutOff);
        self.close(token);
        true
    }

    fn close_oldest_of(&mut self, account: u32) {
        let tokens = self.connections.get(&account);
        if let Some(&token) = tokens.and_then(BTreeSet::first) {
            self.close(token);
        }
    }

    fn forget_connection(&mut self, account: u32, token: u64) {
        if let Some(tokens) = self.connections.get_mut(&account) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.connections.remove(&account);
            }
        }
    }

    /// Current connections by user.
    pub(super) fn connections_by_user(&self) -> BTreeMap<u32, usize> {
        let mut users = BTreeMap::new();
        for (&account, tokens) in &self.connections {
            let uid = if account == UNPROVEN_ROOT { 0 } else { account };
            *users.entry(uid).or_default() += tokens.len();
        }
        users
    }
}
