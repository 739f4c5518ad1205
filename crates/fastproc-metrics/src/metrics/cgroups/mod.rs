//! Metrics of cgroups, under the names of cAdvisor.

mod born;
mod containers;
mod families;
mod files;
mod filesystems;
mod labels;
mod members;
mod opened;
mod scheduled;

use std::{
    collections::HashMap,
    os::unix::ffi::OsStrExt,
    sync::{Arc, Mutex},
    time::UNIX_EPOCH,
};

use fastproc::{
    Snapshot,
    cgroups::{self, Cgroup, Cgroups, Fields, Ids, Source, StatLine, record::Device},
    container::Names,
    frozen,
};

use self::{
    born::Born,
    containers::{Container, Containers, Interface},
    families::{Get, METRICS, Metric},
    files::{Counts, OpenFiles},
    filesystems::{FileSystem, FileSystems},
    labels::Labels,
    members::{First, Members, Own},
    scheduled::{Numbers, Scheduled},
};
use super::node::Machine;
use crate::{
    exposition::{Exposition, Family, Value, escape},
    names, sys_root,
};

super::families! {
    SCRAPE_ERROR = "container_scrape_error" Gauge &[],
        "1 if cgroups could not be read, else 0.";
    SHOWN = "fastproc_cgroups_shown" Gauge &[],
        "Cgroups that have metrics.";
    LEFT_OUT = "fastproc_cgroups_left_out" Gauge &[],
        "Cgroups that have none, because there are more than --max-cgroups, or their paths are too long.";
    INTERFACES_LEFT_OUT = "fastproc_cgroup_interfaces_left_out" Gauge &[],
        "Interfaces that have no metrics, because the network of a container has more than 32, or all together more than 10,000.";
}

/// How cgroups are read, and how many of them have metrics.
#[derive(Clone, Copy, Debug)]
pub struct CgroupSettings {
    /// Only this source; if not set, the first that works.
    pub source: Option<Source>,
    /// The number of cgroups that have metrics; those that come first in the tree.
    pub most: usize,
    /// Whether the networks of containers are read.
    pub networks: bool,
    /// Whether the open files of their processes are counted.
    pub files: bool,
}

/// Reads cgroups, and writes what was read.
#[derive(Debug)]
pub struct CgroupMetrics {
    cgroups: Cgroups,
    most: usize,
    labels: Labels,
    members: Members,
    files: OpenFiles,
    scheduled: Scheduled,
    born: Born,
    containers: Containers,
    /// Containers by the ids of their cgroups, and the machine by that of the root.
    firsts: Ids<Container>,
    /// When the machine was started, in seconds since 1970.
    btime: Option<u64>,
    file_systems: FileSystems,
    /// Devices as they are labelled, by their numbers.
    devices: HashMap<(u32, u32), String>,
    /// When cgroups were read, in seconds since 1970; `None` if they could not be.
    seen: Option<u64>,
}

/// A cgroup, and what is known of it beside its record.
struct Row<'a> {
    cgroup: Cgroup<'a>,
    labels: &'a str,
    /// Those of values of its own processes.
    labels_of_processes: &'a str,
    own: Option<Own>,
    files: Counts,
    scheduled: Numbers,
    /// When it was made, and when the container was started, in seconds since 1970.
    created: Option<u64>,
    started: Option<u64>,
    /// The soft limit of open files of the first process of a container; -1 for none.
    open_files: Option<i64>,
    interfaces: &'a [Interface],
    /// Those of the root.
    file_systems: &'a [FileSystem],
    inactive_file: Option<StatLine>,
    anon_and_file: Option<[StatLine; 2]>,
    seen: u64,
}

/// All families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    let of_cgroups = METRICS.iter().map(|metric| metric.family);
    ALL.iter().copied().chain(of_cgroups).collect()
}

impl CgroupMetrics {
    /// Opens the source.
    pub fn open(
        settings: CgroupSettings,
        names: Arc<Mutex<Names>>,
        machine: Machine,
    ) -> Result<Self, cgroups::Error> {
        let cgroups = Cgroups::builder()
            .fields(Fields::ALL_BUT_AVERAGES)
            .source(settings.source)
            .open_at(None)?;
        Ok(Self::new(cgroups, settings, names, machine))
    }

    fn new(
        cgroups: Cgroups,
        settings: CgroupSettings,
        names: Arc<Mutex<Names>>,
        machine: Machine,
    ) -> Self {
        Self {
            cgroups,
            most: settings.most,
            labels: Labels::new(names),
            members: Members::default(),
            files: OpenFiles::new(settings.files, settings.source),
            scheduled: Scheduled::default(),
            born: Born::default(),
            containers: Containers::new(settings.networks),
            firsts: Ids::default(),
            btime: None,
            file_systems: FileSystems::new(machine),
            devices: HashMap::new(),
            seen: None,
        }
    }

    /// Where they are read.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// All families, in the order of the text.
    pub fn families(&self) -> Vec<Family> {
        families()
    }

    /// Reads all cgroups.
    pub fn collect(&mut self) -> Result<(), cgroups::Error> {
        self.seen = None;
        self.members.clear();
        self.files.clear();
        self.scheduled.clear();
        self.containers.clear();
        self.firsts.clear();
        self.cgroups.snapshot()?;
        let snapshot = self.cgroups.last();
        let shown = || snapshot.iter().take(self.most);
        self.labels.update(shown());
        self.born.update(self.cgroups.mount(), shown());
        self.devices.clear();
        for device in shown().flat_map(Cgroup::devices) {
            let numbers = (device.major, device.minor);
            let label = || device_label(device);
            self.devices.entry(numbers).or_insert_with(label);
        }
        self.file_systems.collect();
        let now = frozen::system_time().duration_since(UNIX_EPOCH);
        self.seen = Some(now.unwrap_or_default().as_secs());
        Ok(())
    }

    /// Counts the processes of a snapshot, and looks at the first one of each container. `btime`: when the machine was started,
    /// in seconds since 1970; 0 if that is unknown. Does nothing if cgroups could not be read: without their list, what was
    /// counted before would be lost.
    pub fn count(&mut self, snapshot: &Snapshot<'_>, btime: u64) {
        if self.seen.is_none() {
            return;
        }
        self.members.update(snapshot);
        self.files.update(&self.members);
        self.scheduled.update(
            self.members.tasks(),
            snapshot.exits().unwrap_or_default(),
            self.cgroups.last(),
            snapshot.stats().boottime_ns,
        );
        self.btime = (btime != 0).then_some(btime);
        self.firsts.clear();
        let mut root = None;
        for cgroup in self.cgroups.last().iter().take(self.most) {
            let within = self.labels.within(cgroup);
            let (id, first) = if is_root(cgroup) {
                root = Some(cgroup.id());
                (cgroup.id(), snapshot.get(1).map(First::of))
            } else {
                let own = self.members.of(cgroup.id());
                (within.container, own.and_then(|own| own.first))
            };
            let Some(first) = first.filter(|_| id != 0) else {
                continue;
            };
            let container = Container {
                id,
                pod: within.pod,
                is_sandbox: within.is_sandbox,
                is_of_user: within.is_of_user,
                first,
            };
            let known = self.firsts.entry(id).or_insert(container);
            known.first = known.first.min(first);
        }
        self.containers.update(&self.firsts, root);
    }

    /// Writes what was read last.
    pub fn write(&self, text: &mut Exposition) {
        text.one(&SCRAPE_ERROR, Value::Whole(self.seen.is_none().into()));
        let Some(seen) = self.seen else {
            return;
        };
        let snapshot = self.cgroups.last();
        let line = |name: &str| snapshot.memory_stat_line(name);
        let anon_and_file = line("anon").zip(line("file"));
        let inactive_file = line("inactive_file");
        let shown = snapshot.iter().take(self.most);
        let rows = shown.map(|cgroup| {
            let created = self.born.of(cgroup);
            let first = self.firsts.get(&cgroup.id());
            let container = first.filter(|_| !is_root(cgroup));
            let started = container
                .and_then(|container| Some(self.btime? + container.first.start_ns / 1_000_000_000));
            Row {
                cgroup,
                labels: self.labels.get(cgroup),
                labels_of_processes: self.labels.of_processes(cgroup),
                own: self.members.of(cgroup.id()),
                files: self.files.of(cgroup.id()),
                scheduled: self.scheduled.of(cgroup.id()),
                created,
                started: started.or(created),
                open_files: first.and_then(|_| self.containers.limit(cgroup.id())),
                interfaces: self.containers.interfaces(cgroup.id()),
                file_systems: if is_root(cgroup) {
                    &self.file_systems.found
                } else {
                    &[]
                },
                inactive_file,
                anon_and_file: anon_and_file.map(<[_; 2]>::from),
                seen,
            }
        });
        let rows: Vec<_> = rows.collect();
        let left_out = snapshot.len() - rows.len() + snapshot.left_out();
        text.one(&SHOWN, Value::Whole(rows.len() as u64));
        text.one(&LEFT_OUT, Value::Whole(left_out as u64));
        let interfaces = self.containers.left_out() as u64;
        text.one(&INTERFACES_LEFT_OUT, Value::Whole(interfaces));
        for metric in METRICS {
            self.write_metric(text, metric, &rows, line);
        }
    }

    fn write_metric(
        &self,
        text: &mut Exposition,
        metric: &Metric,
        rows: &[Row<'_>],
        line: impl Fn(&str) -> Option<StatLine>,
    ) {
        let family = &metric.family;
        let mut begun = false;
        let mut write = |labels: &str, more: &str, value| {
            // None of a kernel or a hierarchy that lacks them.
            if !std::mem::replace(&mut begun, true) {
                text.family(family);
            }
            text.series(family.name, labels, more, value);
        };
        let parts = metric.series.iter().map(|&(more, get)| match get {
            Get::Stat(name) => (more, get, line(name)),
            _ => (more, get, None),
        });
        let parts: Vec<_> = parts.collect();
        for row in rows {
            for &(more, from, line) in &parts {
                match from {
                    Get::Row(get) => {
                        if let Some(value) = get(row) {
                            write(row.labels, more, value);
                        }
                    }
                    Get::Own(get) => {
                        if let Some(value) = get(row) {
                            write(row.labels_of_processes, more, Value::Whole(value));
                        }
                    }
                    Get::Stat(_) => {
                        if let Some(value) = line.and_then(|line| row.stat(line)) {
                            write(row.labels, more, Value::Whole(value));
                        }
                    }
                    Get::Device(get) | Get::NumberedDevice(get) => {
                        for device in row.cgroup.devices().iter().filter(|device| is_used(device)) {
                            let (major, minor) = (device.major, device.minor);
                            let label = self.devices.get(&(major, minor));
                            let label = label.map_or("", String::as_str);
                            let value = Value::Whole(get(device));
                            if let Get::NumberedDevice(_) = from {
                                let numbers = format!(",major=\"{major}\",minor=\"{minor}\"");
                                write(row.labels, &[label, &numbers, more].concat(), value);
                            } else {
                                write(row.labels, label, value);
                            }
                        }
                    }
                    Get::Interface(at) => {
                        for interface in row.interfaces {
                            let value = Value::Whole(interface.numbers[at]);
                            write(row.labels, &interface.label, value);
                        }
                    }
                    Get::FileSystem(get) => {
                        for file_system in row.file_systems {
                            let value = Value::Whole(get(file_system));
                            write(row.labels, &file_system.label, value);
                        }
                    }
                }
            }
        }
    }
}

impl Row<'_> {
    /// A line of memory.stat.
    fn stat(&self, line: StatLine) -> Option<u64> {
        self.cgroup.memory_stat_value(line)
    }

    fn memory(&self) -> Option<&cgroups::record::Memory> {
        self.cgroup.memory()
    }

    /// Memory in use. The root has no memory.current; cAdvisor takes this sum.
    fn usage(&self) -> Option<u64> {
        if !is_root(self.cgroup) {
            return self.memory()?.current();
        }
        let [anon, file] = self.anon_and_file?;
        Some(self.stat(anon)? + self.stat(file)?)
    }

    /// Memory in use that is not easily reclaimed.
    fn working_set(&self) -> Option<u64> {
        let inactive_file = self.stat(self.inactive_file?)?;
        Some(self.usage()?.saturating_sub(inactive_file))
    }

    /// The quota of CPU time, in microseconds.
    fn quota(&self) -> Option<u64> {
        let quota = self.cgroup.cpu()?.quota_ns()?;
        (quota != cgroups::record::UNLIMITED).then_some(quota / 1000)
    }

    /// CPU time and throttling of a cgroup that has a quota.
    fn limited(&self) -> Option<&cgroups::record::Cpu> {
        self.cgroup.cpu().filter(|_| self.quota().is_some())
    }
}

fn is_root(cgroup: Cgroup<'_>) -> bool {
    cgroup.record().identity.parent == 0
}

/// As in io.stat, a device that was neither read nor written has no values.
fn is_used(device: &Device) -> bool {
    [device.rbytes, device.wbytes, device.rios, device.wios] != [0; 4]
}

/// The label of a device: where its node usually is, or its numbers if the kernel does not know it any more.
fn device_label(device: &Device) -> String {
    let numbers = format!("{}:{}", device.major, device.minor);
    let link = std::fs::read_link(sys_root::path(&format!("/sys/dev/block/{numbers}"))).ok();
    let name = link.as_deref().and_then(|link| link.file_name());
    let name = name.map_or(numbers, |name| {
        // The kernel cannot have a slash in the name of a folder.
        format!("/dev/{}", names::text(name.as_bytes()).replace('!', "/"))
    });
    format!(",device=\"{}\"", escape(&name))
}

#[cfg(test)]
mod tests;
