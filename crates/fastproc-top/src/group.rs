//! Processes added up by name, user, cgroup or container.

use std::collections::HashMap;

use fastproc::Fields;
use fastproc_columns::{Lookup, Row};
use serde::{Deserialize, Serialize};

/// What to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    /// Names of processes.
    Name,
    /// Effective users.
    User,
    /// Cgroups of the default hierarchy.
    Cgroup,
    /// Containers, found by the path of the cgroup.
    Container,
}

impl GroupBy {
    /// The next grouping; `None` after the last.
    pub const fn next(now: Option<Self>) -> Option<Self> {
        match now {
            None => Some(Self::Name),
            Some(Self::Name) => Some(Self::User),
            Some(Self::User) => Some(Self::Cgroup),
            Some(Self::Cgroup) => Some(Self::Container),
            Some(Self::Container) => None,
        }
    }

    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::User => "user",
            Self::Cgroup => "cgroup",
            Self::Container => "container",
        }
    }

    /// The groups of fields that it needs.
    pub fn needs(self) -> Fields {
        let key = match self {
            Self::Name => Fields::empty(),
            Self::User => Fields::USERS,
            Self::Cgroup | Self::Container => Fields::CGROUP,
        };
        key | Fields::TOP
    }

    /// What shows only the processes of a group. `None`: no filter can say so.
    pub fn filter(self, key: &[u8]) -> Option<String> {
        let mut text = Vec::new();
        fastproc_columns::escape::escape(key, &mut text);
        let text = String::from_utf8(text).ok()?.replace('"', "\\\"");
        Some(match self {
            Self::Name => format!("comm == \"{text}\""),
            Self::User => format!("user == \"{text}\""),
            Self::Cgroup => format!("cgroup == \"{text}\""),
            // An id stands in the path as it is.
            Self::Container if key.iter().all(u8::is_ascii_hexdigit) && !key.is_empty() => {
                format!("cgroup =~ '{text}'")
            }
            Self::Container => return None,
        })
    }
}

/// What the processes of a group come to.
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
    /// Resident memory, in bytes; what several share is counted for each.
    pub rss: u64,
    /// Bytes fetched from storage a second, as far as that is known.
    pub read: Option<f64>,
    /// Bytes sent to storage a second, likewise.
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

/// Groups, and what they come to. Its memory is used again for the next snapshot.
#[derive(Debug, Default)]
pub struct Groups {
    at: HashMap<Vec<u8>, usize>,
    keys: Vec<Vec<u8>>,
    sums: Vec<Sums>,
    order: Vec<usize>,
}

impl Groups {
    /// Adds up these rows, the largest by `sort` first: a field's name, of which those are known that a group has.
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
        for row in rows {
            let name;
            let key: &[u8] = match by {
                GroupBy::Name => {
                    name = row.process.name();
                    &name
                }
                GroupBy::User => row
                    .users()
                    .map_or(b"?", |(_, effective)| lookup.users.name(effective)),
                GroupBy::Cgroup => lookup.details.cgroup(row.process).unwrap_or(b"?"),
                GroupBy::Container => {
                    let path = lookup.details.cgroup(row.process).unwrap_or_default();
                    container(path).unwrap_or(b"-")
                }
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
                "comm" | "cmdline" | "user" | "cgroup" => keys[a].cmp(&keys[b]),
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The group at this place of the order: its key and sums.
    pub fn get(&self, place: usize) -> Option<(&[u8], &Sums)> {
        let &at = self.order.get(place)?;
        Some((&self.keys[at], &self.sums[at]))
    }
}

/// The id of the container that the path of a cgroup names, as Docker, Podman, containerd, CRI-O, LXC and
/// systemd-nspawn make them.
pub fn container(path: &[u8]) -> Option<&[u8]> {
    let folders = || path.split(|&byte| byte == b'/');
    let is_id = |id: &[u8]| id.len() == 64 && id.iter().all(u8::is_ascii_hexdigit);
    // docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope; docker/ID, kubepods/…/ID
    let by_id = folders().rev().find_map(|folder| {
        let name = folder.strip_suffix(b".scope").unwrap_or(folder);
        let id = name.rsplit(|&byte| byte == b'-').next()?;
        is_id(id).then(|| &id[..12])
    });
    by_id.or_else(|| {
        let mut last: &[u8] = b"";
        for folder in folders() {
            // lxc/NAME, lxc.payload.NAME, machine.slice/machine-NAME.scope
            if last == b"lxc" {
                return Some(folder);
            }
            if let Some(name) = folder.strip_prefix(b"lxc.payload.") {
                return Some(name);
            }
            let machine = folder.strip_prefix(b"machine-");
            let machine = machine.and_then(|name| name.strip_suffix(b".scope"));
            if let Some(name) = machine.filter(|_| last == b"machine.slice") {
                return Some(name);
            }
            last = folder;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_in_paths() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/besteffort/pod1/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(
                container(path.as_bytes()),
                Some(b"0123456789ab".as_slice()),
                "{path}"
            );
        }
        for (path, name) in [
            ("/lxc/web/init.scope", Some("web")),
            ("/lxc.payload.web/init.scope", Some("web")),
            ("/machine.slice/machine-deb.scope", Some("deb")),
            ("/system.slice/sshd.service", None),
            ("/user.slice/user-0.slice/session-1.scope", None),
            ("/", None),
        ] {
            assert_eq!(
                container(path.as_bytes()),
                name.map(str::as_bytes),
                "{path}"
            );
        }
    }

    #[test]
    fn a_group_can_be_filtered_for() {
        let parses = |by: GroupBy, key: &[u8]| {
            let text = by.filter(key).expect("a filter");
            let filter: Result<fastproc_columns::Filter, _> = text.parse();
            assert!(filter.is_ok(), "{text}: {filter:?}");
        };
        parses(GroupBy::Name, b"a \"b\" \\ c'\n\xff");
        parses(GroupBy::User, b"root");
        parses(GroupBy::Cgroup, b"/system.slice/a\\x2db.service");
        parses(GroupBy::Container, b"0123456789ab");
        assert_eq!(GroupBy::Container.filter(b"-"), None);
    }
}
