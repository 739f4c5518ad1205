//! The names of containers and pods, from files that the runtimes keep on the host's disk.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use super::{
    origin::{Origin, Runtime, is_id},
    runtime_files::RuntimeFiles,
};
use crate::base::{
    frozen,
    kept::{self, Stamp},
    proc_root,
};

/// The number of containers whose names are kept.
const MOST_KEPT: usize = 10_000;

/// Names of a container in files of its runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels {
    /// The name of the container; in a pod, the one in the pod's manifest.
    pub name: Option<Box<str>>,
    /// The name of the pod.
    pub pod: Option<Box<str>>,
    /// The namespace of the pod.
    pub namespace: Option<Box<str>>,
    /// The image, under the name that the user gave.
    pub image: Option<Box<str>>,
}

/// Reads names of containers and pods, and keeps them by the ids of the containers.
///
/// It reads files of containerd, CRI-O, Docker and Podman, also below folders that the configurations of these runtimes
/// name, and contacts no daemon. After some seconds it looks whether the file has changed, or a container without names
/// has some. Only root can read most of them; other readers get no names. Containers that other users run with rootless
/// Docker or Podman have no names.
#[derive(Debug)]
pub struct Names {
    /// Folders that may be the root of the host's file system; empty for recordings.
    roots: Vec<RuntimeFiles>,
    kept: HashMap<Box<[u8]>, Kept>,
    check_every: Duration,
}

/// The names of a container.
#[derive(Debug, Default)]
struct Kept {
    labels: Labels,
    /// The file that has them, as it was; without one they are unknown, or need none.
    file: Option<(PathBuf, Stamp)>,
    checked: Duration,
}

impl Default for Names {
    /// Reads files below `/`. If they are missing there, as in a container, it reads them below the root of process 1,
    /// which needs `CAP_SYS_PTRACE`, and in a container also the pid namespace of the host.
    fn default() -> Self {
        if let Some(folder) = frozen::folder() {
            return Self::from_root(folder);
        }
        let first = proc_root::path("/proc/1/root").into();
        Self::of(vec!["/".into(), first])
    }
}

impl Names {
    /// Reads files below this folder, the root of the host's file system.
    pub fn from_root(root: impl Into<PathBuf>) -> Self {
        Self::of(vec![root.into()])
    }

    fn of(roots: Vec<PathBuf>) -> Self {
        Self {
            roots: roots.into_iter().map(RuntimeFiles::new).collect(),
            kept: HashMap::new(),
            check_every: kept::CHECK_EVERY,
        }
    }

    /// Two runtimes may use the same id, and a path may contain the id of another runtime's container.
    fn key(runtime: &str, id: &[u8]) -> Box<[u8]> {
        [runtime.as_bytes(), b" ", id].concat().into()
    }

    /// The names of the container of a cgroup. `None` if the cgroup belongs to none.
    pub fn get(&mut self, origin: &Origin<'_>) -> Option<&Labels> {
        let id = origin.container?;
        // A user can create cgroups with any name below its own, so these are not the containers of root.
        if origin.unit.is_some_and(|unit| unit.starts_with(b"user@")) {
            return None;
        }
        let is_recorded = self.roots.is_empty();
        let runtime = origin.runtime.filter(|_| !is_recorded);
        let key = Self::key(runtime.map_or("", Runtime::name), id);
        let now = kept::now();
        let (check_every, is_new) = (self.check_every, !self.kept.contains_key(&key));
        let is_good = |kept: &mut Kept| is_recorded || kept.is_good(now, check_every);
        if !self.kept.get_mut(&key).is_some_and(is_good) {
            if is_new && self.kept.len() >= MOST_KEPT {
                self.kept.clear();
            }
            let found = self.read(id, origin);
            let kept = self.kept.entry(key.clone()).or_default();
            kept.checked = now;
            // A container that is being removed keeps its names.
            if found.file.is_some() || kept.file.is_none() {
                (kept.labels, kept.file) = (found.labels, found.file);
            }
        }
        self.kept.get(&key).map(|kept| &kept.labels)
    }

    fn read(&mut self, id: &[u8], origin: &Origin<'_>) -> Kept {
        if self.roots.is_empty() {
            return Kept::default();
        }
        // LXC and systemd-nspawn use names as ids.
        if matches!(origin.runtime, Some(Runtime::Lxc | Runtime::Nspawn)) {
            let machine = origin.machine.as_deref();
            let name = machine.filter(|_| origin.runtime == Some(Runtime::Nspawn));
            let name = name.unwrap_or(id);
            let mut kept = Kept::default();
            kept.labels.name = std::str::from_utf8(name).ok().map(Into::into);
            return kept;
        }
        // Use an id in a path only if it has the form of an id.
        let id = std::str::from_utf8(id)
            .ok()
            .filter(|id| is_id(id.as_bytes()));
        let Some(id) = id else {
            return Kept::default();
        };
        let roots = self.roots.iter_mut();
        let mut found = roots.filter_map(|root| root.labels(id, origin));
        found.next().map_or_else(Kept::default, |found| Kept {
            labels: found.labels,
            file: Some((found.file, found.stamp)),
            checked: Duration::ZERO,
        })
    }
}

impl Kept {
    /// Whether these are still the names. The file is looked at only after some time.
    fn is_good(&mut self, now: Duration, check_every: Duration) -> bool {
        if now < self.checked + check_every {
            return true;
        }
        let file = self.file.as_ref();
        let same = file.is_some_and(|(path, stamp)| Stamp::at(path) == Some(*stamp));
        if same {
            self.checked = now;
        }
        same
    }
}

#[doc(hidden)]
impl Names {
    /// Checks this often whether names have changed. The default is five seconds.
    pub fn check_every(&mut self, time: Duration) {
        self.check_every = time;
    }

    /// Knows only the names that [`keep`](Self::keep) adds.
    pub fn recorded() -> Self {
        Self::of(Vec::new())
    }

    /// Adds the names of a recorded container, by its id.
    pub fn keep(&mut self, id: &[u8], labels: Labels) {
        let kept = Kept {
            labels,
            ..Kept::default()
        };
        self.kept.insert(Self::key("", id), kept);
    }
}

#[cfg(test)]
mod tests;
