//! Processes added up by name, user, cgroup, container or pod.

use std::collections::HashMap;

use fastproc::Fields;
use fastproc_columns::{Lookup, Row, Value, equal_to, field};
use serde::{Deserialize, Serialize};

/// The property to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// Names of processes.
    Name,
    /// Effective users.
    User,
    /// Cgroups of the default hierarchy.
    Cgroup,
    /// Containers, by their ids.
    Container,
    /// Names of containers.
    ContainerName,
    /// Names of pods.
    Pod,
    /// Namespaces of Kubernetes.
    Namespace,
    /// Images of containers.
    Image,
    /// Programs that run the containers.
    Runtime,
    /// Machines of systemd-machined.
    Machine,
}

impl GroupBy {
    /// In the order of the list.
    pub const ALL: [Self; 10] = [
        Self::Name,
        Self::User,
        Self::Cgroup,
        Self::Container,
        Self::ContainerName,
        Self::Pod,
        Self::Namespace,
        Self::Image,
        Self::Runtime,
        Self::Machine,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            _ => self.field(),
        }
    }

    /// The field whose values are the groups.
    const fn field(self) -> &'static str {
        match self {
            Self::Name => "comm",
            Self::User => "user",
            Self::Cgroup => "cgroup",
            Self::Container => "container",
            Self::ContainerName => "container_name",
            Self::Pod => "pod",
            Self::Namespace => "namespace",
            Self::Image => "image",
            Self::Runtime => "runtime",
            Self::Machine => "machine",
        }
    }

    /// The groups of fields that its key and its sums need.
    pub fn needs(self) -> Fields {
        let needs = field::find(self.field()).map(|field| field.needs);
        needs.unwrap_or(Fields::empty()) | Fields::TOP | Fields::IO
    }

    /// The filter that shows only the processes of a group. `None`: their value is unknown, so no filter selects them.
    pub fn filter(self, key: &[u8]) -> Option<String> {
        if key == UNKNOWN {
            return None;
        }
        Some(equal_to(self.field(), key))
    }

    /// The form of a key for people.
    pub fn shown(self, key: &[u8]) -> &[u8] {
        match self {
            Self::Container => fastproc_columns::short_container_id(key),
            _ => key,
        }
    }
}

/// The key of processes whose value is unknown.
const UNKNOWN: &[u8] = b"-";

/// The sums of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Processes.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// CPUs that they used: 1.0 is one whole CPU.
    pub cpu_share: f64,
    /// User and system time, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory, in bytes; shared memory is counted for each process.
    pub rss: u64,
    /// Bytes per second fetched from storage, as far as known.
    pub read: Option<f64>,
    /// Bytes per second sent to storage, as far as known.
    pub written: Option<f64>,
}

impl Sums {
    /// Adds a process.
    pub fn add(&mut self, row: &Row<'_>, lookup: &Lookup) {
        self.processes += 1;
        self.threads += u64::from(row.process.identity().num_threads);
        if let Some((user, system)) = row.cpu_times() {
            let used = user.saturating_add(system);
            self.cpu_ns = self.cpu_ns.saturating_add(used);
            let over_life = || lookup.share_since(row.start_ns(), used);
            self.cpu_share += match row.change {
                Some(change) => change.cpu_share.unwrap_or(0.0),
                None => over_life(),
            };
        }
        self.rss += row
            .process
            .memory()
            .map_or(0, fastproc::record::Memory::rss);
        if let Some(change) = row.change {
            let add = |sum: &mut Option<f64>, rate: Option<f64>| {
                if let Some(rate) = rate {
                    *sum = Some(sum.unwrap_or(0.0) + rate);
                }
            };
            add(&mut self.read, change.read_bytes_per_second);
            add(&mut self.written, change.write_bytes_per_second);
        }
    }
}

/// Groups and their sums. Its memory is used again for the next snapshot.
#[derive(Debug, Default)]
pub struct Groups {
    at: HashMap<Vec<u8>, usize>,
    keys: Vec<Vec<u8>>,
    sums: Vec<Sums>,
    order: Vec<usize>,
}

impl Groups {
    /// Adds up these rows, and orders the groups by `sort`, largest first: the name of a field that groups have.
    pub fn add_up(
        &mut self,
        by: GroupBy,
        sort: &str,
        descending: bool,
        rows: &[Row<'_>],
        lookup: &mut Lookup,
    ) {
        self.at.clear();
        self.keys.clear();
        self.sums.clear();
        let Ok(field) = field::find(by.field()) else {
            return;
        };
        for row in rows {
            let value = match by {
                GroupBy::Name => Value::Unknown,
                _ => field.value(row, lookup),
            };
            let name;
            let key: &[u8] = match value {
                Value::Text(text) => text,
                _ if by == GroupBy::Name => {
                    name = row.process.name();
                    &name
                }
                _ => UNKNOWN,
            };
            let at = if let Some(&at) = self.at.get(key) {
                at
            } else {
                self.at.insert(key.to_vec(), self.keys.len());
                self.keys.push(key.to_vec());
                self.sums.push(Sums::default());
                self.keys.len() - 1
            };
            self.sums[at].add(row, lookup);
        }
        let (keys, sums) = (&self.keys, &self.sums);
        self.order.clear();
        self.order.extend(0..keys.len());
        self.order.sort_by(|&a, &b| {
            let (one, other) = (&sums[a], &sums[b]);
            let rate = |sums: &Sums| sums.read.unwrap_or(-1.0) + sums.written.unwrap_or(-1.0);
            let ordering = match sort {
                "rss" | "pmem" | "vsize" => one.rss.cmp(&other.rss),
                "time" | "utime" | "stime" => one.cpu_ns.cmp(&other.cpu_ns),
                "num_threads" => one.threads.cmp(&other.threads),
                "pid" => one.processes.cmp(&other.processes),
                sort if by.field() == sort || matches!(sort, "comm" | "cmdline") => {
                    keys[a].cmp(&keys[b])
                }
                "read_bytes_per_second" | "write_bytes_per_second" => {
                    rate(one).total_cmp(&rate(other))
                }
                _ => one.cpu_share.total_cmp(&other.cpu_share),
            };
            let ordering = if descending {
                ordering.reverse()
            } else {
                ordering
            };
            ordering.then_with(|| keys[a].cmp(&keys[b]))
        });
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The number of groups whose key is known.
    pub fn known(&self) -> usize {
        self.keys.iter().filter(|key| *key != UNKNOWN).count()
    }

    /// The group at this place: its key and sums.
    pub fn get(&self, place: usize) -> Option<(&[u8], &Sums)> {
        let &at = self.order.get(place)?;
        Some((&self.keys[at], &self.sums[at]))
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Host, difference::Ended, exits::Exit};

    use super::*;

    #[test]
    fn collects_what_the_sums_of_groups_add_up() {
        for by in GroupBy::ALL {
            assert!(field::find(by.field()).is_ok(), "{by:?}");
            assert!(by.needs().contains(Fields::TOP | Fields::IO), "{by:?}");
        }
    }

    #[test]
    fn an_id_is_shown_short() {
        let id = b"0123456789abcdef".repeat(4);
        assert_eq!(GroupBy::Container.shown(&id), b"0123456789ab");
        assert_eq!(GroupBy::Container.shown(b"web"), b"web");
        assert_eq!(GroupBy::Pod.shown(&id), id);
    }

    #[test]
    fn counts_every_thread_and_no_rate_that_is_not_known() {
        let mut exit = Exit::default();
        exit.end_ns = Some(2_000_000_000);
        let mut record = exit.to_record();
        record.identity.num_threads = 3;
        let row = Row::ended(Ended::whole(&exit).change(&record), None);
        let lookup = Lookup::recorded(Host::read().expect("there is a /proc"), 0);
        let mut sums = Sums::default();
        sums.add(&row, &lookup);
        assert_eq!((sums.processes, sums.threads, sums.read), (1, 3, None));
    }

    #[test]
    fn a_group_can_be_filtered_for() {
        let parses = |by: GroupBy, key: &[u8]| {
            let text = by.filter(key).expect("a filter");
            let filter: Result<fastproc_columns::Filter, _> = text.parse();
            assert!(filter.is_ok(), "{text}: {filter:?}");
        };
        parses(GroupBy::Name, b"*x*");
        parses(GroupBy::Name, b"a \"b\" \\ c'\n\xff");
        parses(GroupBy::User, b"root");
        parses(GroupBy::Cgroup, b"/system.slice/a\\x2db.service");
        parses(GroupBy::Container, b"0123456789ab");
        parses(GroupBy::ContainerName, b"web");
        assert_eq!(GroupBy::Container.filter(b"-"), None);
    }
}
