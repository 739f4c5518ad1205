//! The metrics of `node_exporter` that come from the kernel's text: through kept descriptors, by parsers that look for
//! what is told and no more.

mod network;
mod storage;
mod sysfs;
mod system;
mod text;

use regex::Regex;

use self::{
    network::Netstat,
    storage::{Filesystems, MountFilter},
    sysfs::Attributes,
    text::TextFile,
};
use super::WrongFilter;
use crate::exposition::{Exposition, Family};

/// All families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    [system::ALL, network::ALL, storage::ALL].concat()
}

/// Which of them are written. The patterns are those of devices and of mounts that are left out.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is a collector of node_exporter")]
pub struct NodeSwitches {
    pub conntrack: bool,
    pub diskstats: Option<Pattern>,
    pub filefd: bool,
    pub filesystem: Option<(Pattern, Pattern)>,
    pub loadavg: bool,
    pub meminfo: bool,
    pub netdev: Option<Option<Pattern>>,
    pub netstat: Option<Pattern>,
    pub pressure: bool,
    pub schedstat: bool,
    pub sockstat: bool,
    pub time: bool,
    pub uname: bool,
}

/// A regular expression of a flag.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Disks that `node_exporter` leaves out.
    pub const DISKS: &str = "^(ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$";
    /// Mount points that it leaves out.
    pub const MOUNT_POINTS: &str = MountFilter::MOUNT_POINTS;
    /// Types of filesystems that it leaves out.
    pub const FILESYSTEMS: &str = MountFilter::TYPES;
    /// Numbers of protocols that it tells.
    pub const NETSTAT: &str = Netstat::DEFAULT;

    /// Compiles it.
    pub fn new(pattern: &str) -> Result<Self, WrongFilter> {
        Ok(Self(Regex::new(pattern)?))
    }
}

/// Reads them, and writes what was read.
#[derive(Debug)]
pub(super) struct NodeMetrics {
    switches: NodeSwitches,
    filesystems: Option<Filesystems>,
    netstat: Option<Netstat>,
    nohandler: Attributes,
    /// The labels of disks.
    disk_infos: Vec<String>,
    files: Files,
}

macro_rules! files {
    ($($name:ident: $path:literal, $switch:ident;)*) => {
        /// The files, each of one collector.
        #[derive(Debug)]
        struct Files { $($name: TextFile),* }

        impl Files {
            const fn new() -> Self {
                Self { $($name: TextFile::new($path)),* }
            }

            fn read(&mut self, switches: &NodeSwitches) {
                $(if switches.$switch.is_on() { self.$name.read(); })*
            }
        }
    };
}

files! {
    loadavg: "/proc/loadavg", loadavg;
    meminfo: "/proc/meminfo", meminfo;
    pressure_cpu: "/proc/pressure/cpu", pressure;
    pressure_io: "/proc/pressure/io", pressure;
    pressure_memory: "/proc/pressure/memory", pressure;
    pressure_irq: "/proc/pressure/irq", pressure;
    file_nr: "/proc/sys/fs/file-nr", filefd;
    clock_available: "/sys/devices/system/clocksource/clocksource0/available_clocksource", time;
    clock_current: "/sys/devices/system/clocksource/clocksource0/current_clocksource", time;
    schedstat: "/proc/schedstat", schedstat;
    net_dev: "/proc/net/dev", netdev;
    sockstat: "/proc/net/sockstat", sockstat;
    sockstat6: "/proc/net/sockstat6", sockstat;
    net_netstat: "/proc/net/netstat", netstat;
    net_snmp: "/proc/net/snmp", netstat;
    net_snmp6: "/proc/net/snmp6", netstat;
    conntrack_count: "/proc/sys/net/netfilter/nf_conntrack_count", conntrack;
    conntrack_max: "/proc/sys/net/netfilter/nf_conntrack_max", conntrack;
    conntrack_stat: "/proc/net/stat/nf_conntrack", conntrack;
    diskstats: "/proc/diskstats", diskstats;
}

/// A switch, with or without a pattern.
trait Switch {
    fn is_on(&self) -> bool;
}

impl Switch for bool {
    fn is_on(&self) -> bool {
        *self
    }
}

impl<T> Switch for Option<T> {
    fn is_on(&self) -> bool {
        self.is_some()
    }
}

impl NodeMetrics {
    pub(super) fn new(switches: NodeSwitches) -> Self {
        let netstat = switches.netstat.clone();
        Self {
            filesystems: None,
            netstat: netstat.map(|fields| Netstat::new(fields.0)),
            nohandler: Attributes::default(),
            disk_infos: Vec::new(),
            files: Files::new(),
            switches,
        }
    }

    /// Reads all. What cannot be read is not told.
    pub(super) fn collect(&mut self) {
        self.files.read(&self.switches);
        if let Some(exclude) = &self.switches.diskstats {
            self.disk_infos = storage::disk_infos(&self.files.diskstats, &exclude.0);
        }
        if self.switches.netdev.is_some() {
            network::read_nohandler(&self.files.net_dev, &mut self.nohandler);
        }
        if let Some((mount_points, types)) = &self.switches.filesystem {
            // Its thread is started when privileges have been given up: they belong to threads.
            if self.filesystems.is_none() {
                self.filesystems = Filesystems::new(MountFilter {
                    mount_points: mount_points.0.clone(),
                    types: types.0.clone(),
                });
            }
            if let Some(filesystems) = &mut self.filesystems {
                filesystems.collect();
            }
        }
    }

    /// Writes what was read last.
    pub(super) fn write(&mut self, text: &mut Exposition) {
        let (on, files) = (&self.switches, &self.files);
        if on.loadavg {
            system::loadavg(text, &files.loadavg);
        }
        if on.meminfo {
            system::meminfo(text, &files.meminfo);
        }
        if on.pressure {
            let pressure = [
                &files.pressure_cpu,
                &files.pressure_io,
                &files.pressure_memory,
                &files.pressure_irq,
            ];
            system::pressure(text, pressure);
        }
        if on.filefd {
            system::filefd(text, &files.file_nr);
        }
        if on.uname {
            system::uname(text);
        }
        if on.time {
            system::time(text, &files.clock_available, &files.clock_current);
        }
        if on.schedstat {
            system::schedstat(text, &files.schedstat);
        }
        if let Some(exclude) = &on.netdev {
            let exclude = exclude.as_ref().map(|exclude| &exclude.0);
            network::netdev(text, &files.net_dev, &self.nohandler, exclude);
        }
        if on.sockstat {
            network::sockstat(text, [&files.sockstat, &files.sockstat6]);
        }
        if let Some(netstat) = &mut self.netstat {
            netstat.write(
                text,
                [&files.net_netstat, &files.net_snmp],
                &files.net_snmp6,
            );
        }
        if on.conntrack {
            network::conntrack(
                text,
                &files.conntrack_count,
                &files.conntrack_max,
                &files.conntrack_stat,
            );
        }
        if let Some(exclude) = &on.diskstats {
            storage::diskstats(text, &files.diskstats, &self.disk_infos, &exclude.0);
        }
        if let Some(filesystems) = &self.filesystems {
            filesystems.write(text);
        }
    }
}
