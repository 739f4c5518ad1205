//! Reads what is needed to name new processes.

use std::{
    collections::HashMap,
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fastproc::{
    DetailError, Details, Directories, Host, Process,
    container::{Names, Origin},
    exits::Exit,
    frozen, kept, proc_root,
};

use crate::{
    command_lines::CommandLines,
    groups::{Describe, Description},
    naming::{Container, Wants},
};

/// The number of cgroups whose containers are kept.
const MOST_KEPT: usize = 10_000;

/// Reads processes. It keeps the containers of cgroups.
#[derive(Debug)]
pub struct Describer {
    details: Details,
    command_lines: CommandLines,
    /// Shared with the metrics of cgroups.
    names: Arc<Mutex<Names>>,
    /// By the ids of cgroups, which the kernel does not reuse, and until when their names are good. A process that exits
    /// between two snapshots mostly has the cgroup of a process that was read.
    containers: HashMap<u64, (Arc<Container>, Duration)>,
}

impl Describer {
    /// Opens `/proc`.
    pub fn new(host: &Host, names: Arc<Mutex<Names>>) -> Result<Self, fastproc::Error> {
        let details = Details::open(host)?;
        details.find_cgroups();
        Ok(Self {
            details,
            command_lines: CommandLines::new(Directories::open(host)?),
            names,
            containers: HashMap::new(),
        })
    }

    /// Begins another snapshot.
    pub fn renew(&mut self) {
        self.details.renew();
    }

    /// Forgets the containers: other rules may need more about them.
    pub fn forget(&mut self) {
        self.containers.clear();
    }

    fn container(
        &mut self,
        process: Process<'_>,
        wants: Wants,
    ) -> Result<Arc<Container>, DetailError> {
        let id = process.cgroup_id();
        let kept = id.and_then(|id| self.containers.get(&id).cloned());
        if let Some((kept, good_until)) = &kept
            && (!wants.container_names || kept::now() < *good_until)
        {
            return Ok(kept.clone());
        }
        let path = match (self.details.whole_cgroup(process), kept) {
            (Ok(path), _) => path,
            // The process has exited.
            (Err(_), Some((kept, _))) => return Ok(kept),
            (Err(error), None) => return Err(error),
        };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let names = wants.container_names.then_some(&mut *names);
        let container = Arc::new(Container::from_cgroup(path, names));
        if let Some(id) = id.filter(|id| self.details.knows_cgroup(*id)) {
            if self.containers.len() >= MOST_KEPT {
                self.containers.clear();
            }
            let good_until = kept::now() + kept::CHECK_EVERY;
            self.containers.insert(id, (container.clone(), good_until));
        }
        Ok(container)
    }
}

impl Describe for Describer {
    fn prepare(&mut self, processes: Vec<Process<'_>>) {
        let processes = processes.into_iter().map(Process::identity);
        let users = processes.filter(|identity| !identity.is_kernel_thread());
        let ids = users.map(|identity| (identity.tgid, identity.start_ns));
        self.command_lines.prepare(ids.collect());
    }

    fn describe(&mut self, process: Process<'_>, wants: Wants, into: &mut Description) -> bool {
        let identity = process.identity();
        if wants.cmdline && !identity.is_kernel_thread() {
            match self.command_lines.next((identity.tgid, identity.start_ns)) {
                Some(Ok(line)) => into.cmdline = line,
                Some(Err(DetailError::Hidden { .. } | DetailError::Absent { .. })) => {}
                Some(Err(_)) | None => return false,
            }
        }
        if wants.username
            && let Some(users) = process.users()
        {
            into.username = username(users.euid);
        }
        if wants.cgroups {
            match self.details.file(process, c"cgroup") {
                Ok(text) => into.cgroups = paths(text),
                Err(DetailError::Gone { .. }) => return false,
                Err(_) => {}
            }
        }
        if wants.container {
            match self.container(process, wants) {
                Ok(container) => into.container = container,
                Err(DetailError::Gone { .. }) => return false,
                Err(_) => {}
            }
        }
        true
    }

    fn username(&mut self, uid: u32) -> String {
        username(uid)
    }

    fn cgroups(&mut self, pid: u32) -> Vec<String> {
        let mut text = Vec::new();
        let read = std::fs::File::open(proc_root::path(&format!("/proc/{pid}/cgroup")))
            .and_then(|file| file.take(64 * 1024).read_to_end(&mut text));
        read.map_or_else(|_| Vec::new(), |_| paths(&text))
    }

    fn container_of_exited(&mut self, exit: &Exit, wants: Wants) -> Arc<Container> {
        let record = exit.to_record();
        if let Ok(container) = self.container(Process::new(&record, &[]), wants) {
            return container;
        }
        // The cgroup is gone as well, or the kernel does not report its path. It was mostly the cgroup of the parent.
        let paths = exit.ppid.map(|ppid| self.cgroups(ppid)).unwrap_or_default();
        let mut paths = paths.iter().map(String::as_bytes);
        let path = paths.find(|path| Origin::from_cgroup(path).container.is_some());
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let names = wants.container_names.then_some(&mut *names);
        path.map(|path| Arc::new(Container::from_cgroup(path, names)))
            .unwrap_or_default()
    }
}

/// The name of a user, or the number if it has none.
fn username(uid: u32) -> String {
    if let Some(found) = frozen::account("/etc/passwd", &uid.to_string()) {
        return found.map_or_else(|| uid.to_string(), |(name, _)| name);
    }
    let user = nix::unistd::User::from_uid(uid.into());
    let user = user.ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

/// The paths in the text of `/proc/PID/cgroup`, one for each hierarchy.
fn paths(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .map(str::to_owned)
        .collect()
}
