//! The requests whose passwords are being checked, or wait for that. There are few, so that a check is never far away and
//! most connections are for those who need none.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::oneshot;

use crate::web::connections::Client;

/// Those of one client.
pub(super) const OF_ONE: usize = 4;
/// Those of all clients together.
pub(super) const OF_ALL: usize = 32;

#[derive(Debug)]
struct Waiter {
    id: u64,
    client: Client,
    /// Its request is refused when this is dropped. `None`: its password is being checked.
    may_give_way: Option<oneshot::Sender<()>>,
}

/// The waiting requests, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Vec<Waiter>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Vec<Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests wait, of one client or of all.
    #[cfg(test)]
    pub(super) fn count(&self, client: Option<Client>) -> usize {
        let waiting = self.lock();
        let of = |waiter: &&Waiter| client.is_none_or(|client| waiter.client == client);
        waiting.iter().filter(of).count()
    }
}

/// A place among them, given back on drop.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    waiting: Waiting,
}

impl Place {
    /// Takes a place, if need be that of the newest request of the client that has the most. The receiver ends when the
    /// place is lost to another client.
    pub(super) fn take(waiting: &Waiting, client: Client) -> Option<(Self, oneshot::Receiver<()>)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut waiters = waiting.lock();
        let count = |of| waiters.iter().filter(|waiter| waiter.client == of).count();
        let own = count(client) + 1;
        if own > OF_ONE {
            return None;
        }
        if waiters.len() >= OF_ALL {
            let others = waiters.iter().enumerate();
            let others = others.filter(|(_, waiter)| waiter.may_give_way.is_some());
            let others = others.map(|(at, waiter)| (count(waiter.client), at));
            let (_, at) = others.filter(|&(its, _)| its > own).max()?;
            waiters.remove(at);
        }
        let (may_give_way, gives_way) = oneshot::channel();
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        waiters.push(Waiter {
            id,
            client,
            may_give_way: Some(may_give_way),
        });
        let waiting = waiting.clone();
        Some((Self { id, waiting }, gives_way))
    }

    /// From now on no other request takes it: its password is being checked.
    pub(super) fn stays(&self) {
        let mut waiters = self.waiting.lock();
        if let Some(waiter) = waiters.iter_mut().find(|waiter| waiter.id == self.id) {
            waiter.may_give_way = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.lock().retain(|waiter| waiter.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_fewer_requests_takes_a_place_of_the_one_with_the_most() {
        let client = |last| Client::new(std::net::Ipv4Addr::new(127, 0, 0, last).into());
        let waiting = Waiting::default();
        let take = |last| Place::take(&waiting, client(last));
        let mut places: Vec<_> = (0..OF_ALL)
            .map(|at| take((at / OF_ONE) as u8).expect("there is room"))
            .collect();
        let (checked, _) = &places[OF_ALL - 1];
        checked.stays();
        let new = take(100).expect("others have more");
        assert_eq!(waiting.count(None), OF_ALL);
        let lost = |(_, gives_way): &mut (Place, oneshot::Receiver<()>)| {
            gives_way.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        let lost: Vec<usize> = (0..OF_ALL).filter(|&at| lost(&mut places[at])).collect();
        assert_eq!(lost, [OF_ALL - 2, OF_ALL - 1], "the last is being checked");
        assert!(take(0).is_none(), "it has its share");
        drop((places, new));
        assert_eq!(waiting.count(None), 0);
    }
}
