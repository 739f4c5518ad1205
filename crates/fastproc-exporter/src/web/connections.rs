//! The table of connections, and the choice of the one to close when there are too many.

use std::{
    cmp::Reverse,
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use tokio::task::{AbortHandle, Id};

use super::{
    Limits,
    timed::{Activity, Phase, State},
};

/// A connection that takes longer than this to read its answer may be closed for another client.
const SLOW: Duration = Duration::from_secs(1);

/// Clients that share their places: one IPv4 address, or one IPv6 network, which has one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(IpAddr);

impl Client {
    pub(super) fn new(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[derive(Debug)]
struct Connection {
    client: Client,
    activity: Activity,
    task: AbortHandle,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: HashMap<Id, Connection>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            open: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, client: Client, activity: Activity, task: AbortHandle) {
        let connection = Connection {
            client,
            activity,
            task,
        };
        self.open.insert(connection.task.id(), connection);
    }

    pub(super) fn remove(&mut self, id: Id) {
        self.open.remove(&id);
    }

    /// Closes the connections whose clients have had their time.
    pub(super) fn close_overdue(&self, limits: &Limits) {
        let open = self.open.values();
        open.filter(|connection| connection.activity.get().is_over(limits))
            .for_each(|connection| connection.task.abort());
    }

    /// Whether there is a place for this client; if there is none, closes the connection that is needed least.
    pub(super) fn make_room(&mut self, client: Client) -> bool {
        self.open.len() < self.most || self.close_one(client)
    }

    /// Closes a connection whose client has shown a wrong password and waits for another check. If there is none, closes one
    /// of the client that has the most: one without a request, the longest idle first, one that reads its answer, or one
    /// that waits for this server or for the first check of its password. Those who read since a moment or wait do so in
    /// peace if their client has no more than the new one: those with many addresses cannot end that by opening connections.
    /// A client that has half of the places takes no more from others. A connection that has shown a password stays: the
    /// new one did not yet.
    fn close_one(&mut self, newcomer: Client) -> bool {
        let open = self.open.iter();
        let open = open.filter(|(_, connection)| !connection.activity.get().is_admitted);
        let mut counts = HashMap::<Client, usize>::new();
        for (_, connection) in open.clone() {
            *counts.entry(connection.client).or_default() += 1;
        }
        let count = |client: &Client| counts.get(client).copied().unwrap_or(0);
        let own = count(&newcomer) + 1;
        let spared = open
            .filter_map(|(id, connection)| {
                let its = count(&connection.client);
                let State { phase, since, .. } = connection.activity.get();
                let can_go = match phase {
                    Phase::Idle | Phase::Asking | Phase::Checking { is_doubted: true } => true,
                    Phase::Checking { is_doubted: false } | Phase::Waiting => its > own,
                    Phase::Answering => its > own || since.elapsed() > SLOW,
                };
                let fair = connection.client == newcomer || own <= self.most / 2 || its > own;
                let is_doubted = phase == Phase::Checking { is_doubted: true };
                let order = (
                    !is_doubted,
                    Reverse(its),
                    matches!(phase, Phase::Checking { .. } | Phase::Waiting),
                    phase == Phase::Answering,
                );
                (can_go && fair).then_some((order, since, *id))
            })
            .min_by_key(|&(order, since, _)| (order, since));
        let Some((.., id)) = spared else {
            return false;
        };
        if let Some(connection) = self.open.remove(&id) {
            connection.task.abort();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::{task::JoinSet, time::sleep};

    use super::*;

    struct Table {
        connections: Connections,
        tasks: JoinSet<()>,
    }

    impl Table {
        fn new(most: usize) -> Self {
            Self {
                connections: Connections::new(most),
                tasks: JoinSet::new(),
            }
        }

        /// Opens a connection if there is a place for it. Returns its activity and the id of its task.
        async fn open(&mut self, client: &str) -> Option<(Activity, Id)> {
            let client = Client::new(client.parse().unwrap());
            if !self.connections.make_room(client) {
                return None;
            }
            let activity = Activity::new();
            let task = self.tasks.spawn(std::future::pending());
            let id = task.id();
            self.connections.add(client, activity.clone(), task);
            sleep(Duration::from_millis(1)).await;
            Some((activity, id))
        }

        fn has(&self, id: Id) -> bool {
            self.connections.open.contains_key(&id)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_is_dropped() {
        let mut table = Table::new(2);
        let (_, first) = table.open("10.0.0.1").await.unwrap();
        let (_, second) = table.open("10.0.0.1").await.unwrap();
        table.open("10.0.0.1").await.unwrap();
        assert!(!table.has(first) && table.has(second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_pending_answer_stays() {
        let mut table = Table::new(2);
        let (asks, first) = table.open("10.0.0.1").await.unwrap();
        asks.enter(Phase::Waiting);
        let (_, second) = table.open("10.0.0.1").await.unwrap();
        let (asks, _) = table.open("10.0.0.1").await.unwrap();
        asks.enter(Phase::Waiting);
        assert!(table.has(first) && !table.has(second));
        assert!(table.open("10.0.0.1").await.is_none(), "all wait");
    }

    /// Wrong passwords from many addresses, each with one connection, must not end the check of a right one.
    #[tokio::test(start_paused = true)]
    async fn a_first_check_of_a_password_is_ended_for_nobody_but_clients_with_fewer_connections() {
        let mut table = Table::new(3);
        let mut open = Vec::new();
        for address in ["10.0.0.1", "10.0.0.2", "10.0.0.2"] {
            let (activity, id) = table.open(address).await.unwrap();
            activity.enter(Phase::Checking { is_doubted: false });
            open.push(id);
        }
        let (idle, newcomer) = table.open("10.0.0.3").await.unwrap();
        assert_eq!(
            open.iter().map(|&id| table.has(id)).collect::<Vec<_>>(),
            [true, false, true]
        );
        table.open("10.0.0.4").await.unwrap();
        assert!(!table.has(newcomer), "it waits for nothing: {idle:?}");
    }

    /// Although the client with wrong passwords has fewer.
    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_client_has_shown_a_wrong_password_is_closed_before_others() {
        let mut table = Table::new(3);
        let mut open = Vec::new();
        for (address, is_doubted) in [("10.0.0.1", false), ("10.0.0.1", false), ("10.0.0.2", true)]
        {
            let (activity, id) = table.open(address).await.unwrap();
            activity.enter(Phase::Checking { is_doubted });
            open.push(id);
        }
        table.open("10.0.0.3").await.unwrap();
        assert_eq!(
            open.iter().map(|&id| table.has(id)).collect::<Vec<_>>(),
            [true, true, false]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_shown_a_right_password_is_never_closed_for_another() {
        let mut table = Table::new(2);
        for _ in 0..2 {
            let (activity, _) = table.open("10.0.0.1").await.unwrap();
            activity.admit();
            activity.enter(Phase::Idle);
        }
        assert!(table.open("10.0.0.2").await.is_none());
        assert!(table.open("10.0.0.1").await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_cannot_take_the_places_of_others() {
        let mut table = Table::new(8);
        let (_, other) = table.open("10.0.0.2").await.unwrap();
        for _ in 0..50 {
            table.open("10.0.0.1").await.unwrap();
        }
        assert!(table.has(other));
        // Not even with requests that wait.
        let mut table = Table::new(8);
        let (_, other) = table.open("10.0.0.2").await.unwrap();
        for _ in 0..7 {
            let (activity, _) = table.open("10.0.0.1").await.unwrap();
            activity.enter(Phase::Waiting);
        }
        assert!(table.open("10.0.0.1").await.is_none());
        assert!(table.has(other));
        assert!(table.open("10.0.0.2").await.is_some());
        // Nor can two, whose requests always wait or are answered just now.
        let mut table = Table::new(4);
        for (client, phase) in [
            ("10.0.0.1", Phase::Waiting),
            ("10.0.0.1", Phase::Answering),
            ("10.0.0.2", Phase::Waiting),
            ("10.0.0.2", Phase::Waiting),
        ] {
            let (activity, _) = table.open(client).await.unwrap();
            activity.enter(phase);
        }
        for client in ["10.0.0.3", "10.0.0.4"] {
            let (activity, _) = table.open(client).await.unwrap();
            activity.enter(Phase::Waiting);
        }
        assert!(table.open("10.0.0.5").await.is_none(), "each has one");
    }

    #[test]
    fn addresses_of_one_owner_are_one_client() {
        let client = |text: &str| Client::new(text.parse().unwrap());
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
