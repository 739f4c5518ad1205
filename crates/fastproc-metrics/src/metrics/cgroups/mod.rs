//! Metrics of cgroups, under the names of cAdvisor.

mod families;
mod labels;

use std::{
    collections::HashMap,
    os::unix::ffi::OsStrExt,
    sync::{Arc, Mutex},
    time::UNIX_EPOCH,
};

use fastproc::{
    Process, Snapshot,
    cgroups::{self, Cgroup, Cgroups, Fields, Source, StatLine, record::Device},
    container::Names,
    difference::PerProcess,
    frozen,
    record::State,
};

use self::{
    families::{Get, METRICS, Metric},
    labels::Labels,
};
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
}

/// How cgroups are read, and how many of them have metrics.
#[derive(Clone, Copy, Debug)]
pub struct CgroupSettings {
    /// Only this source; if not set, the first that works.
    pub source: Option<Source>,
    /// The number of cgroups that have metrics; those that come first in the tree.
    pub most: usize,
}

/// Reads cgroups, and writes what was read.
#[derive(Debug)]
pub struct CgroupMetrics {
    cgroups: Cgroups,
    most: usize,
    labels: Labels,
    /// Processes by the ids of their cgroups, if all of them are known.
    processes: Option<HashMap<u64, u64>>,
    /// Where each process counts.
    members: PerProcess<Member>,
    /// Devices as they are labelled, by their numbers.
    devices: HashMap<(u32, u32), String>,
    /// When cgroups were read, in seconds since 1970; `None` if they could not be.
    seen: Option<u64>,
}

/// Where a process counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// Nowhere: it has exited.
    Exited,
    /// In the cgroup of this id.
    Of(u64),
    /// The source does not tell.
    Unknown,
}

impl Member {
    /// As in cgroup.procs, what has exited is not counted, unless it has other threads.
    fn new(process: Process<'_>) -> Self {
        let has_exited = matches!(process.state(), State::Zombie | State::Dead);
        if has_exited && process.identity().num_threads <= 1 {
            return Self::Exited;
        }
        process.cgroup_id().map_or(Self::Unknown, Self::Of)
    }
}

/// A cgroup, and what is known of it beside its record.
struct Row<'a> {
    cgroup: Cgroup<'a>,
    labels: &'a str,
    processes: Option<u64>,
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
    ) -> Result<Self, cgroups::Error> {
        let cgroups = Cgroups::builder()
            .fields(Fields::ALL_BUT_AVERAGES)
            .source(settings.source)
            .open_at(None)?;
        Ok(Self::new(cgroups, settings.most, names))
    }

    fn new(cgroups: Cgroups, most: usize, names: Arc<Mutex<Names>>) -> Self {
        Self {
            cgroups,
            most,
            labels: Labels::new(names),
            processes: None,
            members: PerProcess::new(),
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
        (self.seen, self.processes) = (None, None);
        let snapshot = self.cgroups.snapshot()?;
        let shown = || snapshot.iter().take(self.most);
        self.labels.update(shown());
        self.devices.clear();
        for device in shown().flat_map(Cgroup::devices) {
            let numbers = (device.major, device.minor);
            let label = || device_label(device);
            self.devices.entry(numbers).or_insert_with(label);
        }
        let now = frozen::system_time().duration_since(UNIX_EPOCH);
        self.seen = Some(now.unwrap_or_default().as_secs());
        Ok(())
    }

    /// Counts the processes of a snapshot.
    pub fn count(&mut self, snapshot: &Snapshot<'_>) {
        let mut counts = HashMap::new();
        for member in self.members.update(snapshot, Member::new) {
            match *member {
                Member::Exited => {}
                Member::Of(id) => *counts.entry(id).or_insert(0) += 1,
                Member::Unknown => return,
            }
        }
        self.processes = Some(counts);
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
            let count = |counts: &HashMap<_, _>| counts.get(&cgroup.id()).copied().unwrap_or(0);
            Row {
                cgroup,
                labels: self.labels.get(cgroup),
                processes: self.processes.as_ref().map(count),
                inactive_file,
                anon_and_file: anon_and_file.map(<[_; 2]>::from),
                seen,
            }
        });
        let rows: Vec<_> = rows.collect();
        let left_out = snapshot.len() - rows.len() + snapshot.left_out();
        text.one(&SHOWN, Value::Whole(rows.len() as u64));
        text.one(&LEFT_OUT, Value::Whole(left_out as u64));
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
        let mut write = |row: &Row<'_>, more: &str, value| {
            // None of a kernel or a hierarchy that lacks them.
            if !std::mem::replace(&mut begun, true) {
                text.family(family);
            }
            text.series(family.name, row.labels, more, value);
        };
        let parts = metric.series.iter().map(|&(more, get)| match get {
            Get::Stat(name) => (more, get, line(name)),
            _ => (more, get, None),
        });
        let parts: Vec<_> = parts.collect();
        for row in rows {
            for &(more, get, line) in &parts {
                match get {
                    Get::Row(get) => {
                        if let Some(value) = get(row) {
                            write(row, more, value);
                        }
                    }
                    Get::Stat(_) => {
                        if let Some(value) = line.and_then(|line| row.stat(line)) {
                            write(row, more, Value::Whole(value));
                        }
                    }
                    Get::Device(get) => {
                        for device in row.cgroup.devices().iter().filter(|device| is_used(device)) {
                            let label = self.devices.get(&(device.major, device.minor));
                            let label = label.map_or("", String::as_str);
                            write(row, label, Value::Whole(get(device)));
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
        if self.cgroup.record().identity.parent != 0 {
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
