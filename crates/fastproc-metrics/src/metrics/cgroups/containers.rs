//! What the first process of each container shows: the network that it is in, and its limit of open files.

use std::{collections::HashMap, fs, time::Duration};

use fastproc::{kept, proc_root};
use rustix::process::{Resource, getrlimit};

use super::{
    members::First,
    opened::{Network, Opened},
};
use crate::{exposition::escape, metrics::node::net_dev, names};

/// Interfaces that cAdvisor leaves out, by how their names begin, in lower case: the loopback, and those that lead into
/// containers.
const IGNORED: [&str; 4] = ["lo", "veth", "docker", "nerdctl"];

/// A container: the cgroups that have its names, and the process in it that started first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    /// The id of its cgroup; that of the root stands for the machine.
    pub id: u64,
    /// The id of the cgroup of its pod; 0: it is in none.
    pub pod: u64,
    /// Whether it is the sandbox of the pod.
    pub is_sandbox: bool,
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
    kept: HashMap<u64, Kept>,
    /// The most folders that stay open, an eighth of what this process may open. A container above that is not looked at.
    most: usize,
    /// Whether networks are read.
    networks: bool,
    /// Interfaces by the ids of the cgroups that have them.
    interfaces: HashMap<u64, Vec<Interface>>,
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
            kept: HashMap::new(),
            most: usize::try_from(limit / 8).unwrap_or(usize::MAX),
            networks,
            interfaces: HashMap::new(),
            text: Vec::new(),
            update: 0,
        }
    }

    /// Looks at these containers, by the ids of their cgroups, and forgets others. `root`: the id of the root cgroup, which has
    /// the interfaces of the machine.
    pub(super) fn update(&mut self, containers: &HashMap<u64, Container>, root: Option<u64>) {
        self.update = self.update.wrapping_add(1);
        self.interfaces.clear();
        let (now, update) = (kept::now(), self.update);
        for container in containers.values() {
            self.keep(container, now);
        }
        self.kept.retain(|_, kept| kept.met == update);
        if !self.networks {
            return;
        }
        if let (Ok(text), Some(root)) = (fs::read(proc_root::path("/proc/1/net/dev")), root) {
            self.interfaces.insert(root, interfaces(&text).collect());
        }
        let Ok(machine) = Network::of_machine() else {
            // What is not known to be another network than that of the machine belongs to no container.
            return;
        };
        let mut seen = HashMap::<Network, &Container>::new();
        for container in containers.values() {
            let network = self.kept.get(&container.id).and_then(|kept| kept.network);
            let Some(network) = network.filter(|&other| other != machine) else {
                continue;
            };
            let first = seen.entry(network).or_insert(container);
            if container.rank() < first.rank() {
                *first = container;
            }
        }
        let mut seen: Vec<_> = seen.into_values().collect();
        seen.sort_unstable_by_key(|container| container.rank());
        let mut read = HashMap::new();
        for container in seen {
            // A container of a pod may be in another network than the pod.
            if !self.interfaces.contains_key(&container.teller())
                && let Some(kept) = self.kept.get(&container.id)
                && kept.opened.read("net/dev", &mut self.text).is_ok()
            {
                let found = interfaces(&self.text).collect();
                self.interfaces.insert(container.teller(), found);
                read.insert(container.id, container.teller());
            }
        }
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
    }

    /// Opens the first process of a container, unless that is done.
    fn keep(&mut self, container: &Container, now: Duration) {
        let update = self.update;
        let known = self.kept.get_mut(&container.id);
        if known.is_none_or(|kept| !kept.opened.is_of(container.first)) {
            self.kept.remove(&container.id);
            if self.kept.len() >= self.most {
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

    #[test]
    fn a_sandbox_or_the_first_container_or_the_pod_has_a_network() {
        let container = |pod, is_sandbox, start_ns| Container {
            id: 7,
            pod,
            is_sandbox,
            first: First { start_ns, pid: 1 },
        };
        let sandbox = container(3, true, 9);
        assert!(sandbox.rank() < container(3, false, 1).rank());
        assert!(container(0, false, 1).rank() < container(0, false, 2).rank());
        assert_eq!(sandbox.teller(), 7);
        assert_eq!(container(0, false, 1).teller(), 7);
        assert_eq!(container(3, false, 1).teller(), 3);
    }
}
