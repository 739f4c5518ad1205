//! What the first process of each container shows: the network that it is in, and its limit of open files.

use std::{
    collections::{HashMap, HashSet},
    fs,
    hash::Hash,
    time::Duration,
};

use fastproc::{cgroups::Ids, kept, proc_root};
use rustix::process::{Resource, getrlimit};

use super::{
    members::First,
    opened::{Network, Opened},
};
use crate::{exposition::escape, metrics::node::net_dev, names};

/// Interfaces that cAdvisor leaves out, by how their names begin, in lower case: the loopback, and those that lead into
/// containers.
const IGNORED: [&str; 4] = ["lo", "veth", "docker", "nerdctl"];

/// The most interfaces of the network of a container that have metrics. Who may make a network can make many in it.
const MOST_OF_A_NETWORK: usize = 32;

/// The most interfaces of all networks that have metrics.
const MOST_OF_ALL: usize = 10_000;

/// A container: the cgroups that have its names, and the process in it that started first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    /// The id of its cgroup; that of the root stands for the machine.
    pub id: u64,
    /// The id of the cgroup of its pod; 0: it is in none.
    pub pod: u64,
    /// Whether it is the sandbox of the pod.
    pub is_sandbox: bool,
    /// Whether it is below the manager of a user, who makes such cgroups and networks at will.
    pub is_of_user: bool,
    pub first: First,
}

/// An interface: its label, and bytes, packets, errors and dropped packets, received and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub label: String,
    pub numbers: [u64; 8],
}

/// The containers that were met last.
#[derive(Debug)]
pub(super) struct Containers {
    kept: Ids<Kept>,
    /// The most folders that stay open, an eighth of what this process may open. A container above that is not looked at.
    most: usize,
    /// Whether networks are read.
    networks: bool,
    /// Interfaces by the ids of the cgroups that have them.
    interfaces: Ids<Vec<Interface>>,
    /// How many interfaces that are, and how many are left out, because there are too many.
    found: usize,
    left_out: usize,
    text: Vec<u8>,
    /// Counts updates.
    update: u32,
}

#[derive(Debug)]
struct Kept {
    opened: Opened,
    /// The network in which the process was at the last update.
    network: Option<Network>,
    /// The soft limit of open files; -1 for none.
    limit: Option<i64>,
    /// When the limit was read.
    checked: Duration,
    met: u32,
}

impl Containers {
    pub(super) fn new(networks: bool) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self {
            kept: Ids::default(),
            most: usize::try_from(limit / 8).unwrap_or(usize::MAX),
            networks,
            interfaces: Ids::default(),
            found: 0,
            left_out: 0,
            text: Vec::new(),
            update: 0,
        }
    }

    /// Looks at these containers, by the ids of their cgroups, and forgets others. `root`: the id of the root cgroup, which has
    /// the interfaces of the machine.
    pub(super) fn update(&mut self, containers: &Ids<Container>, root: Option<u64>) {
        self.update = self.update.wrapping_add(1);
        self.clear();
        let (now, update) = (kept::now(), self.update);
        for container in containers.values() {
            self.keep(container, now);
        }
        self.kept.retain(|_, kept| kept.met == update);
        if !self.networks {
            return;
        }
        if let (Ok(text), Some(root)) = (fs::read(proc_root::path("/proc/1/net/dev")), root) {
            self.add(root, &text, MOST_OF_ALL);
        }
        let Ok(machine) = Network::of_machine() else {
            // What is not known to be another network than that of the machine belongs to no container.
            return;
        };
        let network = |container: &Container| {
            let network = self.kept.get(&container.id).and_then(|kept| kept.network);
            network.filter(|&other| other != machine && !container.is_of_user)
        };
        let each = containers.values();
        let chosen = choose(each.map(|container| (container, network(container))));
        let mut read = Ids::default();
        let mut text = std::mem::take(&mut self.text);
        for container in chosen {
            if let Some(kept) = self.kept.get(&container.id)
                && kept.opened.read("net/dev", &mut text).is_ok()
            {
                self.add(container.teller(), &text, MOST_OF_A_NETWORK);
                read.insert(container.id, container.teller());
            }
        }
        self.text = text;
        // If a process has entered another network since the last update, what was read may be of that one.
        for (id, kept) in &mut self.kept {
            let now = kept.opened.network().ok();
            if std::mem::replace(&mut kept.network, now) != now
                && let Some(teller) = read.get(id)
            {
                self.interfaces.remove(teller);
            }
        }
    }

    /// Forgets interfaces until the next update.
    pub(super) fn clear(&mut self) {
        self.interfaces.clear();
        (self.found, self.left_out) = (0, 0);
    }

    /// Gives a cgroup the interfaces in the text of net/dev, at most this many.
    fn add(&mut self, teller: u64, text: &[u8], most: usize) {
        let mut all = interfaces(text);
        let room = most.min(MOST_OF_ALL.saturating_sub(self.found));
        let some: Vec<_> = all.by_ref().take(room).collect();
        self.found += some.len();
        self.left_out += all.count();
        self.interfaces.insert(teller, some);
    }

    /// How many interfaces have no metrics, because there are too many.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Opens the first process of a container, unless that is done.
    fn keep(&mut self, container: &Container, now: Duration) {
        let update = self.update;
        let known = self.kept.get_mut(&container.id);
        if known.is_none_or(|kept| !kept.opened.is_of(container.first)) {
            self.kept.remove(&container.id);
            // Those of users leave room for others.
            if self.kept.len() >= self.most >> u32::from(container.is_of_user) {
                return;
            }
            // It may have exited since the snapshot.
            let Ok(opened) = Opened::new(container.first) else {
                return;
            };
            let new = Kept {
                network: opened.network().ok(),
                opened,
                limit: None,
                checked: Duration::ZERO,
                met: update,
            };
            self.kept.insert(container.id, new);
        }
        let Some(kept) = self.kept.get_mut(&container.id) else {
            return;
        };
        kept.met = update;
        if kept.checked.is_zero() || now >= kept.checked + kept::CHECK_EVERY {
            let read = kept.opened.read("limits", &mut self.text);
            kept.limit = read.ok().and_then(|()| soft_limit(&self.text));
            kept.checked = now;
        }
    }

    /// The interfaces that a cgroup has.
    pub(super) fn interfaces(&self, id: u64) -> &[Interface] {
        self.interfaces.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The soft limit of open files of the first process of a container; -1: it has none.
    pub(super) fn limit(&self, id: u64) -> Option<i64> {
        self.kept.get(&id)?.limit
    }
}

impl Container {
    /// Of the containers in one network, the one of the least rank has it: the sandbox of a pod, or the container that was
    /// there first.
    fn rank(&self) -> (bool, First) {
        (!self.is_sandbox, self.first)
    }

    /// The id of the cgroup that has the network: without a sandbox, no container of a pod has it alone.
    fn teller(&self) -> u64 {
        if self.is_sandbox || self.pod == 0 {
            self.id
        } else {
            self.pod
        }
    }
}

/// Which containers report their networks, each of its own, in a fixed order. `None`: one that is unknown, or of the machine.
fn choose<'a, N: Eq + Hash>(
    containers: impl Iterator<Item = (&'a Container, Option<N>)>,
) -> Vec<&'a Container> {
    let mut pods = HashSet::new();
    let mut of_networks = HashMap::<N, &Container>::new();
    for (container, network) in containers {
        if container.is_sandbox && container.pod != 0 {
            pods.insert(container.pod);
        }
        if let Some(network) = network {
            let first = of_networks.entry(network).or_insert(container);
            if container.rank() < first.rank() {
                *first = container;
            }
        }
    }
    let mut chosen: Vec<_> = of_networks.into_values().collect();
    chosen.sort_unstable_by_key(|container| container.rank());
    // A container of a pod may be in another network than the pod, which has one.
    let mut tellers = HashSet::new();
    chosen.retain(|container| {
        (container.is_sandbox || !pods.contains(&container.pod))
            && tellers.insert(container.teller())
    });
    chosen
}

/// The interfaces in the text of net/dev that cAdvisor counts.
fn interfaces(text: &[u8]) -> impl Iterator<Item = Interface> {
    net_dev(text).filter_map(|(device, numbers)| {
        let name = names::text(device);
        let lower = name.to_lowercase();
        if IGNORED.iter().any(|start| lower.starts_with(start)) {
            return None;
        }
        let [received, sent] = [&numbers[..4], &numbers[8..12]];
        let numbers = [received, sent].concat().try_into().ok()?;
        let label = format!(",interface=\"{}\"", escape(&name));
        Some(Interface { label, numbers })
    })
}

/// The soft limit of open files in the text of limits; -1: there is none.
fn soft_limit(text: &[u8]) -> Option<i64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"Max open files"))?;
    match std::str::from_utf8(line).ok()?.split_whitespace().next()? {
        "unlimited" => Some(-1),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_cadvisor_leaves_out_are_left_out() {
        let text = b"Inter-|   Receive  |  Transmit\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
            eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n Docker0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
            vethab: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n broken: 1 2\n";
        let found: Vec<_> = interfaces(text).collect();
        let eth0 = Interface {
            label: ",interface=\"eth0\"".into(),
            numbers: [1, 2, 3, 4, 5, 6, 7, 8],
        };
        assert_eq!(found, [eth0]);
    }

    #[test]
    fn a_limit_is_the_first_of_two_and_may_be_none() {
        let text = "Limit Soft Limit Hard Limit Units\nMax open files            % 4096 files\n";
        for (soft, limit) in [("1024", Some(1024)), ("unlimited", Some(-1)), ("x", None)] {
            let text = text.replace('%', soft);
            assert_eq!(soft_limit(text.as_bytes()), limit);
        }
    }

    fn container(pod: u64, is_sandbox: bool, start_ns: u64) -> Container {
        Container {
            id: 7,
            pod,
            is_sandbox,
            is_of_user: false,
            first: First { start_ns, pid: 1 },
        }
    }

    #[test]
    fn a_sandbox_or_the_first_container_or_the_pod_has_a_network() {
        let sandbox = container(3, true, 9);
        assert!(sandbox.rank() < container(3, false, 1).rank());
        assert!(container(0, false, 1).rank() < container(0, false, 2).rank());
        assert_eq!(sandbox.teller(), 7);
        assert_eq!(container(0, false, 1).teller(), 7);
        assert_eq!(container(3, false, 1).teller(), 3);
    }

    /// Each list has containers, those of a pod in networks of their own, and the starts of those that tell.
    #[test]
    fn one_container_tells_of_the_networks_of_a_pod() {
        let (sandbox, two, three) = (
            container(3, true, 9),
            container(3, false, 2),
            container(3, false, 3),
        );
        let (other, four) = (container(4, false, 1), container(0, false, 4));
        for (list, expected) in [
            (vec![(three, 30), (two, 20)], vec![2]),
            (vec![(three, 30), (two, 20), (sandbox, 90)], vec![9]),
            (vec![(two, 20), (sandbox, 0), (three, 30)], vec![]),
            (
                vec![(two, 20), (other, 10), (three, 20), (four, 40)],
                vec![1, 2, 4],
            ),
            // Both are in one network, and the sandbox of a pod has it.
            (vec![(four, 90), (sandbox, 90)], vec![9]),
        ] {
            for list in [list.clone(), list.into_iter().rev().collect()] {
                let each = list.iter();
                let each = each.map(|(one, network)| (one, (*network != 0).then_some(network)));
                let starts = choose(each).into_iter().map(|one| one.first.start_ns);
                assert_eq!(starts.collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn interfaces_are_bounded_and_those_left_out_are_counted() {
        let mut containers = Containers::new(true);
        let text = |count: usize| {
            let line = |at| format!("eth{at}: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
            "\n\n".to_owned() + &(0..count).map(line).collect::<String>()
        };
        containers.add(1, text(MOST_OF_ALL - 40).as_bytes(), MOST_OF_ALL);
        for (id, has, left_out) in [(2, 32, 3), (3, 8, 30), (4, 0, 65)] {
            containers.add(id, text(35).as_bytes(), MOST_OF_A_NETWORK);
            assert_eq!(containers.interfaces(id).len(), has);
            assert_eq!(containers.left_out(), left_out);
        }
        containers.clear();
        assert_eq!(containers.left_out(), 0);
    }
}
