//! The requests whose passwords wait to be checked, and the choice of the next one.
//!
//! One password is checked at a time. The next is that of a client chosen by chance, so that each of N clients waits for
//! N checks on average, however often the others ask. Clients that have lately shown a wrong password come after all
//! others.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::oneshot;

use crate::web::connections::Client;

/// The most requests of one client.
pub(super) const OF_ONE: usize = 4;
/// The most requests of all clients together, until a server says how many connections it has.
pub(super) const OF_ALL: usize = 128;
/// The clients with wrong passwords that are remembered, the latest.
const DOUBTED: usize = 4096;

#[derive(Debug)]
struct Waiter {
    id: u64,
    client: Client,
    /// Says that its turn has come; its request is refused when this is dropped. `None`: its password is being checked.
    turn: Option<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct Queue {
    /// The most of them.
    most: usize,
    /// Oldest first.
    waiters: Vec<Waiter>,
    /// With a number that grows from one to the next.
    doubted: HashMap<Client, u64>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            most: OF_ALL,
            waiters: Vec::new(),
            doubted: HashMap::new(),
        }
    }
}

impl Queue {
    fn count(&self, client: Client) -> usize {
        let of = |waiter: &&Waiter| waiter.client == client;
        self.waiters.iter().filter(of).count()
    }

    fn is_doubted(&self, client: Client) -> bool {
        self.doubted.contains_key(&client)
    }

    /// Unless a password is being checked, begins with the oldest request of a client that `random` chooses.
    fn advance(&mut self, random: impl FnOnce() -> u64) {
        if self.waiters.iter().any(|waiter| waiter.turn.is_none()) {
            return;
        }
        let clients = |doubted| {
            let waiters = self.waiters.iter().map(|waiter| waiter.client);
            let mut seen = HashSet::new();
            let clients = waiters.filter(|&client| self.is_doubted(client) == doubted);
            clients
                .filter(|client| seen.insert(*client))
                .collect::<Vec<_>>()
        };
        let mut clients_of_rank = clients(false);
        if clients_of_rank.is_empty() {
            clients_of_rank = clients(true);
        }
        let Some(at) = random().checked_rem(clients_of_rank.len() as u64) else {
            return;
        };
        let client = clients_of_rank[at as usize];
        let mut waiters = self.waiters.iter_mut();
        let turn = waiters.find_map(|waiter| {
            (waiter.client == client)
                .then(|| waiter.turn.take())
                .flatten()
        });
        if let Some(turn) = turn {
            // If its request has just been broken off, its place is given back at once.
            let _ = turn.send(());
        }
    }
}

/// The waiting requests. A reload keeps them, and what is known of clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Queue>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No more requests than this wait from now on.
    pub(super) fn bound(&self, most: usize) {
        self.lock().most = most;
    }

    /// Whether this client has lately shown a wrong password, and no right one since.
    pub(super) fn doubts(&self, client: Client) -> bool {
        self.lock().is_doubted(client)
    }

    /// This client has shown a right or a wrong password.
    pub(super) fn learn(&self, client: Client, is_right: bool) {
        let doubted = &mut self.lock().doubted;
        if is_right {
            doubted.remove(&client);
        } else if !doubted.contains_key(&client) {
            let numbers = || doubted.values().copied();
            let (first, next) = (numbers().min(), numbers().max().map_or(0, |last| last + 1));
            if doubted.len() == DOUBTED {
                doubted.retain(|_, number| Some(*number) != first);
            }
            doubted.insert(client, next);
        }
    }

    /// How many requests wait, of one client or of all.
    #[cfg(test)]
    pub(super) fn count(&self, client: Option<Client>) -> usize {
        let queue = self.lock();
        client.map_or(queue.waiters.len(), |client| queue.count(client))
    }
}

/// A place among them, given back on drop. Then the next password is checked.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    waiting: Waiting,
}

impl Place {
    /// Takes a place, if need be that of the newest request of a client that has more, or that is doubted while this one is
    /// not. The receiver gets a message when the password may be checked, and ends when the place is lost to another client.
    pub(super) fn take(waiting: &Waiting, client: Client) -> Option<(Self, oneshot::Receiver<()>)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut queue = waiting.lock();
        let own = queue.count(client) + 1;
        if own > OF_ONE {
            return None;
        }
        if queue.waiters.len() >= queue.most {
            let rank = (queue.is_doubted(client), own);
            let mut counts = HashMap::<Client, usize>::new();
            for waiter in &queue.waiters {
                *counts.entry(waiter.client).or_default() += 1;
            }
            let others = queue.waiters.iter().enumerate();
            let others = others.filter(|(_, waiter)| waiter.turn.is_some());
            let others = others.map(|(at, Waiter { client, .. })| {
                ((queue.is_doubted(*client), counts[client]), at)
            });
            let (_, at) = others.filter(|&(its, _)| its > rank).max()?;
            queue.waiters.remove(at);
        }
        let (turn, comes) = oneshot::channel();
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        queue.waiters.push(Waiter {
            id,
            client,
            turn: Some(turn),
        });
        queue.advance(random);
        let waiting = waiting.clone();
        Some((Self { id, waiting }, comes))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = self.waiting.lock();
        queue.waiters.retain(|waiter| waiter.id != self.id);
        queue.advance(random);
    }
}

/// A number that no client can foresee.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without it, the oldest is next.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError;

    use super::*;

    type Taken = (Place, oneshot::Receiver<()>);

    fn client(number: u16) -> Client {
        let [high, low] = number.to_be_bytes();
        Client::new(std::net::Ipv4Addr::new(127, 0, high, low).into())
    }

    #[test]
    fn a_client_with_fewer_requests_takes_a_place_of_the_one_with_the_most() {
        let waiting = Waiting::default();
        let take = |number| Place::take(&waiting, client(number));
        let mut places: Vec<_> = (0..OF_ALL)
            .map(|at| take((at / OF_ONE) as u16).expect("there is room"))
            .collect();
        let new = take(1000).expect("others have more");
        assert_eq!(waiting.count(None), OF_ALL);
        let lost = |(_, turn): &mut Taken| turn.try_recv() == Err(TryRecvError::Closed);
        let lost: Vec<usize> = (0..OF_ALL).filter(|&at| lost(&mut places[at])).collect();
        assert_eq!(lost, [OF_ALL - 1]);
        assert!(take(0).is_none(), "it has its share");
        while let Some(place) = places.pop() {
            drop(place);
        }
        drop(new);
        assert_eq!(waiting.count(None), 0);
    }

    /// The first place is taken by a check that has begun, so all others wait.
    fn full_of_attackers(waiting: &Waiting, attackers: u16) -> Vec<Taken> {
        (0..OF_ALL as u16)
            .map(|at| Place::take(waiting, client(at % attackers)).expect("there is room"))
            .collect()
    }

    #[test]
    fn each_waiting_client_is_next_equally_often_however_many_requests_it_has() {
        let waiting = Waiting::default();
        let take = |number| Place::take(&waiting, client(number)).expect("there is room");
        let (checked, _) = take(1000);
        let _places = [take(1), take(1), take(1), take(2)];
        let mut turns = [0; 2];
        for chance in 0..10 {
            let mut queue = waiting.lock();
            queue.waiters.retain(|waiter| waiter.id != checked.id);
            queue.advance(|| chance);
            for waiter in &mut queue.waiters {
                if waiter.turn.is_none() {
                    turns[usize::from(waiter.client == client(2))] += 1;
                    waiter.turn = Some(oneshot::channel().0);
                }
            }
        }
        assert_eq!(turns, [5, 5]);
    }

    #[test]
    fn a_client_without_a_wrong_password_takes_the_place_of_one_with_and_is_next() {
        let waiting = Waiting::default();
        let mut places = full_of_attackers(&waiting, OF_ALL as u16);
        assert!(Place::take(&waiting, client(1000)).is_none(), "all are new");
        for attacker in 0..OF_ALL as u16 {
            waiting.learn(client(attacker), false);
        }
        let (_good, mut turn) = Place::take(&waiting, client(1000)).expect("all others were wrong");
        assert_eq!(turn.try_recv(), Err(TryRecvError::Empty));
        assert!(Place::take(&waiting, client(0)).is_none());
        drop(places.remove(0));
        assert_eq!(turn.try_recv(), Ok(()));
    }

    #[test]
    fn a_bounded_number_of_wrong_clients_is_remembered_until_a_right_password() {
        let waiting = Waiting::default();
        for number in 0..=DOUBTED as u16 {
            waiting.learn(client(number), false);
            waiting.learn(client(number), false);
        }
        assert!(!waiting.doubts(client(0)) && waiting.doubts(client(1)));
        waiting.learn(client(1), true);
        assert!(!waiting.doubts(client(1)));
        assert_eq!(waiting.lock().doubted.len(), DOUBTED - 1);
    }
}
