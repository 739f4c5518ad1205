//! Basic authentication, with passwords hashed by bcrypt.

mod waiting;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::header::HeaderValue;
use ring::{hmac, rand::SystemRandom};

use self::waiting::{Place, Waiting};
use super::connections::Client;

/// The number of valid credentials that are remembered: bcrypt deliberately takes a tenth of a second.
const REMEMBERED: usize = 64;

/// Salt and hash of no known password: checking an unknown user takes as long as checking an existing one.
const NOBODY: &str = "abcdefghijklmnopqrstuuMiGR8dMBTcoKWmRvvF1nhcyPUyi8WOi";
const DEFAULT_COST: u32 = 10;

/// The outcome for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The request is answered.
    Granted,
    /// User or password is wrong.
    Denied,
    /// Too many passwords are being checked: of this client, or of others that have no more than it.
    Busy,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hash of no known password that takes as long to check as the slowest of these.
fn nobody<'a>(hashes: impl Iterator<Item = &'a String>) -> String {
    let costs = hashes.filter_map(|hash| Some(hash.parse::<bcrypt::HashParts>().ok()?.get_cost()));
    format!("$2b${:02}${NOBODY}", costs.max().unwrap_or(DEFAULT_COST))
}

/// Decides which requests are admitted.
pub(super) struct Gate {
    users: HashMap<String, String>,
    /// The hash that is checked for an unknown user.
    nobody: String,
    key: Option<hmac::Key>,
    /// Digests of credentials that were right.
    right: Mutex<Vec<[u8; 32]>>,
    /// One check at a time, so that trying many passwords takes no more than one CPU.
    waiting: Waiting,
}

impl Gate {
    /// For these users. What the gate before has learnt about clients is kept.
    pub(super) fn new(users: HashMap<String, String>, before: Option<&Self>) -> Self {
        Self {
            nobody: nobody(users.values()),
            users,
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok(),
            right: Mutex::new(Vec::new()),
            waiting: before.map_or_else(Waiting::default, |gate| gate.waiting.clone()),
        }
    }

    /// Lets passwords wait on no more than half of the connections. The others are for clients whose passwords are known.
    pub(super) fn share(&self, connections: usize) {
        self.waiting.bound(connections.div_ceil(2));
    }

    /// Whether the gate has exactly these users and passwords.
    pub(super) fn is_for(&self, users: &HashMap<String, String>) -> bool {
        self.users == *users
    }

    /// Whether requests need a password.
    pub(super) fn asks_for_passwords(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether this client has lately shown a wrong password, and no right one since.
    pub(super) fn doubts(&self, client: Client) -> bool {
        self.waiting.doubts(client)
    }

    /// Whether this header admits its request.
    pub(super) async fn admits(
        &self,
        authorization: Option<&HeaderValue>,
        client: Client,
    ) -> Admission {
        if self.users.is_empty() {
            return Admission::Granted;
        }
        let Some(credentials) = authorization.and_then(decode) else {
            return Admission::Denied;
        };
        let digest = self.key.as_ref().and_then(|key| {
            let tag = hmac::sign(key, &credentials);
            tag.as_ref().try_into().ok()
        });
        if let Some(digest) = digest
            && lock(&self.right).contains(&digest)
        {
            return Admission::Granted;
        }
        let Some(colon) = credentials.iter().position(|&byte| byte == b':') else {
            return Admission::Denied;
        };
        let Some((place, turn)) = Place::take(&self.waiting, client) else {
            return Admission::Busy;
        };
        let user = std::str::from_utf8(&credentials[..colon]).unwrap_or_default();
        let is_known = self.users.contains_key(user);
        let hash = self.users.get(user).unwrap_or(&self.nobody).clone();
        let password = credentials[colon + 1..].to_vec();
        if turn.await.is_err() {
            return Admission::Busy;
        }
        // Another request may have checked the same password meanwhile.
        if let Some(digest) = digest
            && lock(&self.right).contains(&digest)
        {
            return Admission::Granted;
        }
        let waiting = self.waiting.clone();
        // The place is held until the check ends, even if its request is cancelled.
        let checked = tokio::task::spawn_blocking(move || {
            let is_right = bcrypt::verify(password, &hash).unwrap_or(false) && is_known;
            waiting.learn(client, is_right);
            drop(place);
            is_right
        });
        if !checked.await.unwrap_or(false) {
            return Admission::Denied;
        }
        if let Some(digest) = digest {
            let mut remembered = lock(&self.right);
            if remembered.len() == REMEMBERED {
                remembered.remove(0);
            }
            remembered.push(digest);
        }
        Admission::Granted
    }
}

fn decode(header: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = header.as_bytes().split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    BASE64_STANDARD.decode(rest.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn header(credentials: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(credentials))).unwrap()
    }

    fn client(number: u16) -> Client {
        let [high, low] = number.to_be_bytes();
        Client::new(std::net::Ipv4Addr::new(127, 0, high, low).into())
    }

    /// While this place is held, nothing else is checked.
    fn hold(gate: &Gate) -> Place {
        let taken = Place::take(&gate.waiting, client(9999)).unwrap();
        taken.0
    }

    fn gate(cost: u32) -> Gate {
        Gate::new(
            [("a".to_owned(), bcrypt::hash("p:w", cost).unwrap())].into(),
            None,
        )
    }

    #[tokio::test]
    async fn only_the_right_password_opens() {
        let gate = gate(4);
        let ask = async |header: Option<&HeaderValue>| gate.admits(header, client(1)).await;
        assert_eq!(ask(None).await, Admission::Denied);
        assert_eq!(ask(Some(&header("a:wrong"))).await, Admission::Denied);
        assert_eq!(ask(Some(&header("b:p:w"))).await, Admission::Denied);
        assert_eq!(ask(Some(&header("a"))).await, Admission::Denied);
        let bearer = HeaderValue::from_static("Bearer x");
        assert_eq!(ask(Some(&bearer)).await, Admission::Denied);
        assert_eq!(ask(Some(&header("a:p:w"))).await, Admission::Granted);
        // Once more: remembered. No other user is admitted.
        assert_eq!(lock(&gate.right).len(), 1);
        assert_eq!(ask(Some(&header("a:p:w"))).await, Admission::Granted);
        assert_eq!(ask(Some(&header("a:p:w "))).await, Admission::Denied);
        assert_eq!(gate.waiting.count(None), 0);
    }

    #[tokio::test]
    async fn without_users_everybody_may_ask() {
        let gate = Gate::new(HashMap::new(), None);
        assert_eq!(gate.admits(None, client(1)).await, Admission::Granted);
    }

    /// A cancelled request keeps its place until its hash ends, so that no queue of hashes grows.
    #[tokio::test]
    async fn a_broken_off_request_is_counted_until_its_hash_ends() {
        let gate = Arc::new(gate(4));
        let held = hold(&gate);
        let ask = |last| {
            let gate = Arc::clone(&gate);
            let wrong = header("a:wrong");
            tokio::spawn(async move { gate.admits(Some(&wrong), client(last)).await })
        };
        let waiting: Vec<_> = (0..waiting::OF_ONE).map(|_| ask(1)).collect();
        while gate.waiting.count(Some(client(1))) != waiting::OF_ONE {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask(1).await.unwrap(), Admission::Busy);
        // Another client waits for its turn.
        let other = ask(2);
        for request in &waiting {
            request.abort();
        }
        drop(held);
        assert_eq!(other.await.unwrap(), Admission::Denied);
        for request in waiting {
            let _ = request.await;
        }
        assert_eq!(gate.waiting.count(None), 0);
    }

    /// Wrong passwords from more addresses than there are places. No place gets free before the good client has asked.
    #[tokio::test]
    async fn a_client_that_has_shown_no_password_is_let_in_beside_wrong_passwords_from_280_addresses()
     {
        let gate = Arc::new(gate(4));
        let ask = |number, credentials| {
            let (gate, header) = (Arc::clone(&gate), header(credentials));
            tokio::spawn(async move { gate.admits(Some(&header), client(number)).await })
        };
        for attacker in 0..280 {
            assert_eq!(ask(attacker, "a:wrong").await.unwrap(), Admission::Denied);
        }
        let gate_after = Gate::new(gate.users.clone(), Some(&gate));
        assert!(gate_after.doubts(client(0)), "a reload forgets nothing");
        let held = hold(&gate);
        let attack: Vec<_> = (0..280).map(|attacker| ask(attacker, "a:wrong")).collect();
        while gate.waiting.count(None) < waiting::OF_ALL
            || attack.iter().filter(|asked| asked.is_finished()).count() < 280 - waiting::OF_ALL
        {
            tokio::task::yield_now().await;
        }
        let good = ask(1000, "a:p:w");
        while gate.waiting.count(Some(client(1000))) == 0 && !good.is_finished() {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(good.await.unwrap(), Admission::Granted);
        // Its password is known now.
        assert_eq!(ask(1000, "a:p:w").await.unwrap(), Admission::Granted);
        for asked in attack {
            assert_ne!(asked.await.unwrap(), Admission::Granted);
        }
    }

    #[tokio::test]
    async fn no_other_password_is_checked_while_a_hash_is_checked_for_nobody() {
        let gate = Arc::new(gate(12));
        let ask = |number| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.admits(Some(&header("b:x")), client(number)).await })
        };
        let gone = ask(1);
        while gate.waiting.count(None) == 0 {
            tokio::task::yield_now().await;
        }
        // The thread that checks has begun, or will see to a request that is gone.
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        assert_eq!(ask(2).await.unwrap(), Admission::Denied);
        assert_eq!(gate.waiting.count(None), 0);
    }

    #[test]
    fn an_unknown_user_takes_as_long_as_the_slowest_known_one() {
        let hash = |cost| format!("$2b${cost:02}${NOBODY}");
        let of = |costs: &[u32]| {
            let hashes: Vec<String> = costs.iter().map(|&cost| hash(cost)).collect();
            nobody(hashes.iter())
        };
        assert_eq!(of(&[]), hash(DEFAULT_COST));
        assert_eq!(of(&[4, 12, 8]), hash(12));
        assert!(!bcrypt::verify("", &of(&[4])).unwrap());
    }
}
