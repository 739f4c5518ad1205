//! The metrics of `node_exporter` that come from text files of the kernel. The files stay open, and only the reported
//! numbers are parsed.

mod aside;
mod ask;
mod filesystems;
mod machine;
mod netclass;
mod network;
mod sensors;
mod storage;
mod sysfs;
mod system;
mod text;
mod textfile;
mod timex;

use std::path::PathBuf;

use regex::Regex;

use self::{
    aside::{Aside, PATIENCE},
    filesystems::{Filesystems, MountFilter},
    network::Netstat,
    sysfs::Attributes,
    text::TextFile,
    textfile::Textfiles,
};
pub use self::{machine::Machine, textfile::LeftOut};
use super::{WrongFilter, scrapes::Scrapes};
use crate::{
    exposition::{Exposition, Family},
    sys_root,
};

/// All families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    [
        system::ALL,
        timex::ALL,
        network::ALL,
        netclass::ALL,
        storage::ALL,
        filesystems::ALL,
        sensors::ALL,
        textfile::ALL,
    ]
    .concat()
}

/// The enabled collectors. The patterns match devices and mounts to leave out.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is a collector of node_exporter")]
pub struct NodeSwitches {
    pub arp: Option<Option<Pattern>>,
    pub conntrack: bool,
    pub cpufreq: bool,
    pub diskstats: Option<Pattern>,
    pub entropy: bool,
    pub filefd: bool,
    pub filesystem: Option<(Pattern, Pattern)>,
    pub loadavg: bool,
    pub meminfo: bool,
    pub netclass: Option<Pattern>,
    pub netdev: Option<Option<Pattern>>,
    pub netstat: Option<Pattern>,
    pub pressure: bool,
    pub schedstat: bool,
    pub sockstat: bool,
    pub softnet: bool,
    /// The folders.
    pub textfile: Option<Vec<PathBuf>>,
    pub thermal_zone: bool,
    pub time: bool,
    pub timex: bool,
    pub uname: bool,
}

/// A regular expression given by a flag.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// It matches what the expression does not.
    is_inverted: bool,
}

impl Pattern {
    /// Disks that `node_exporter` leaves out.
    pub const DISKS: &str = "^(ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$";
    /// Mount points that `node_exporter` leaves out.
    pub const MOUNT_POINTS: &str = MountFilter::MOUNT_POINTS;
    /// Types of filesystems that `node_exporter` leaves out.
    pub const FILESYSTEMS: &str = MountFilter::TYPES;
    /// Devices whose properties `node_exporter` leaves out: none.
    pub const NETCLASS: &str = "^$";
    /// Numbers of protocols that `node_exporter` reports.
    pub const NETSTAT: &str = Netstat::DEFAULT;

    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, WrongFilter> {
        Ok(Self {
            regex: Regex::new(pattern)?,
            is_inverted: false,
        })
    }

    /// A pattern that matches everything else, to leave out all but these.
    pub fn inverted(pattern: &str) -> Result<Self, WrongFilter> {
        Ok(Self {
            is_inverted: true,
            ..Self::new(pattern)?
        })
    }

    fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text) != self.is_inverted
    }
}

/// Reads these metrics, and writes them.
#[derive(Debug)]
pub(super) struct NodeMetrics {
    switches: NodeSwitches,
    machine: Machine,
    filesystems: Option<Filesystems>,
    netstat: Option<Netstat>,
    nohandler: Attributes,
    /// The labels of disks.
    disk_infos: Vec<String>,
    devices: Vec<netclass::Device>,
    textfiles: Option<Aside<Textfiles>>,
    /// Names that textfiles must not define again.
    own: Vec<Family>,
    files: Files,
}

macro_rules! files {
    ($($name:ident: $path:literal, $switch:ident;)*) => {
        /// The files, each belonging to one collector. The network is that of the first process.
        #[derive(Debug)]
        struct Files { $($name: TextFile),* }

        impl Files {
            const fn new() -> Self {
                Self { $($name: TextFile::new($path)),* }
            }

            fn read(&mut self, switches: &NodeSwitches, scrapes: &mut Scrapes) {
                $(if switches.$switch.is_on() {
                    scrapes.collect(stringify!($switch), || self.$name.read());
                })*
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
    net_dev: "/proc/1/net/dev", netdev;
    sockstat: "/proc/1/net/sockstat", sockstat;
    sockstat6: "/proc/1/net/sockstat6", sockstat;
    net_netstat: "/proc/1/net/netstat", netstat;
    net_snmp: "/proc/1/net/snmp", netstat;
    net_snmp6: "/proc/1/net/snmp6", netstat;
    conntrack_count: "/proc/sys/net/netfilter/nf_conntrack_count", conntrack;
    conntrack_max: "/proc/sys/net/netfilter/nf_conntrack_max", conntrack;
    conntrack_stat: "/proc/1/net/stat/nf_conntrack", conntrack;
    diskstats: "/proc/diskstats", diskstats;
    arp: "/proc/1/net/arp", arp;
    softnet: "/proc/1/net/softnet_stat", softnet;
    entropy_available: "/proc/sys/kernel/random/entropy_avail", entropy;
    entropy_pool: "/proc/sys/kernel/random/poolsize", entropy;
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
    /// `own`: the names that textfiles must not define again.
    pub(super) fn new(switches: NodeSwitches, machine: Machine, own: &[Family]) -> Self {
        let netstat = switches.netstat.clone();
        let filesystems = switches.filesystem.as_ref().map(|(mount_points, types)| {
            let filter = MountFilter {
                mount_points: mount_points.clone(),
                types: types.clone(),
            };
            Filesystems::new(filter, machine.clone())
        });
        Self {
            filesystems,
            machine,
            netstat: netstat.map(|fields| Netstat::new(fields.regex)),
            nohandler: Attributes::default(),
            disk_infos: Vec::new(),
            devices: Vec::new(),
            textfiles: None,
            own: own.to_vec(),
            files: Files::new(),
            switches,
        }
    }

    /// Reads everything. What cannot be read is omitted.
    pub(super) fn collect(&mut self, scrapes: &mut Scrapes) {
        self.files.read(&self.switches, scrapes);
        if let Some(exclude) = &self.switches.diskstats {
            self.disk_infos = scrapes.collect("diskstats", || {
                storage::disk_infos(&self.files.diskstats, exclude)
            });
        }
        let folder = self.machine.devices();
        if let (Some(_), Some(folder)) = (&self.switches.netdev, &folder) {
            scrapes.collect("netdev", || {
                network::read_nohandler(&self.files.net_dev, folder, &mut self.nohandler);
            });
        }
        if let (Some(exclude), Some(folder)) = (&self.switches.netclass, &folder) {
            self.devices = scrapes.collect("netclass", || netclass::read(folder, exclude));
        }
        // This thread is started only after privileges were dropped, which belong to threads.
        if let Some(folders) = &self.switches.textfile {
            if self.textfiles.is_none() {
                let textfiles = Textfiles::new(folders.clone(), &self.own);
                self.textfiles = Aside::new(
                    "textfiles",
                    textfiles,
                    Textfiles::read_unprivileged,
                    PATIENCE,
                )
                .ok();
            }
            if let Some(textfiles) = &mut self.textfiles {
                scrapes.collect("textfile", || textfiles.collect());
            }
        }
        if let Some(filesystems) = &mut self.filesystems {
            scrapes.collect("filesystem", || filesystems.collect());
        }
    }

    /// Metrics that are left out because this process has another network or another name than the machine, or may not
    /// see whether it has.
    pub(super) fn unseen(&self) -> Vec<&'static str> {
        let machine = &self.machine;
        let unseen = [
            ("node_uname_info", self.switches.uname && !machine.has_name),
            (
                "node_nf_conntrack_entries and its limit",
                self.switches.conntrack && !machine.has_network,
            ),
            (
                "the devices of the netclass collector",
                self.switches.netclass.is_some() && machine.devices().is_none(),
            ),
        ];
        let unseen = unseen.into_iter().filter(|(_, is_left_out)| *is_left_out);
        unseen.map(|(name, _)| name).collect()
    }

    /// Parts of textfiles that are left out now, and were not at the last call.
    pub(super) fn left_out(&mut self) -> Vec<LeftOut> {
        let textfiles = self.textfiles.as_mut().and_then(Aside::get_mut);
        textfiles.map_or_else(Vec::new, Textfiles::news)
    }

    /// Writes what was read last.
    pub(super) fn write(&mut self, text: &mut Exposition, scrapes: &mut Scrapes) {
        self.write_system(text, scrapes);
        self.write_network(text, scrapes);
        if let Some(exclude) = &self.switches.diskstats {
            scrapes.write(text, "diskstats", |text| {
                storage::diskstats(text, &self.files.diskstats, &self.disk_infos, exclude);
            });
        }
        if let Some(filesystems) = &self.filesystems {
            scrapes.write(text, "filesystem", |text| filesystems.write(text));
        }
        // Virtual machines have none of these.
        if self.switches.cpufreq {
            scrapes.write_if(text, "cpufreq", |text| {
                sensors::cpufreq(text, &sys_root::path("/sys/devices/system/cpu"));
                true
            });
        }
        if self.switches.thermal_zone {
            scrapes.write_if(text, "thermal_zone", |text| {
                sensors::thermal(text, &sys_root::path("/sys/class/thermal"));
                true
            });
        }
        if let Some(textfiles) = &self.textfiles {
            scrapes.write(text, "textfile", |text| {
                if let Some(textfiles) = textfiles.get() {
                    textfiles.write(text);
                }
            });
        }
    }

    fn write_system(&self, text: &mut Exposition, scrapes: &mut Scrapes) {
        let (on, files) = (&self.switches, &self.files);
        if on.loadavg {
            scrapes.write(text, "loadavg", |text| {
                system::loadavg(text, &files.loadavg);
            });
        }
        if on.meminfo {
            scrapes.write(text, "meminfo", |text| {
                system::meminfo(text, &files.meminfo);
            });
        }
        if on.pressure {
            let pressure = [
                &files.pressure_cpu,
                &files.pressure_io,
                &files.pressure_memory,
                &files.pressure_irq,
            ];
            scrapes.write(text, "pressure", |text| system::pressure(text, pressure));
        }
        if on.filefd {
            scrapes.write(text, "filefd", |text| {
                system::filefd(text, &files.file_nr);
            });
        }
        if on.entropy {
            scrapes.write(text, "entropy", |text| {
                system::entropy(text, &files.entropy_available, &files.entropy_pool);
            });
        }
        // Only a process of the same UTS namespace can ask for the machine's name.
        if on.uname && self.machine.has_name {
            scrapes.write(text, "uname", system::uname);
        }
        if on.time {
            scrapes.write(text, "time", |text| {
                system::time(text, &files.clock_available, &files.clock_current);
            });
        }
        if on.timex {
            scrapes.write(text, "timex", timex::write);
        }
        if on.schedstat {
            scrapes.write(text, "schedstat", |text| {
                system::schedstat(text, &files.schedstat);
            });
        }
    }

    fn write_network(&mut self, text: &mut Exposition, scrapes: &mut Scrapes) {
        let (on, files) = (&self.switches, &self.files);
        if let Some(exclude) = &on.netdev {
            let exclude = exclude.as_ref();
            scrapes.write(text, "netdev", |text| {
                network::netdev(text, &files.net_dev, &self.nohandler, exclude);
            });
        }
        if on.netclass.is_some() {
            scrapes.write(text, "netclass", |text| {
                netclass::write(text, &self.devices);
            });
        }
        if let Some(exclude) = &on.arp {
            let exclude = exclude.as_ref();
            scrapes.write_if(text, "arp", |text| {
                network::arp(text, &files.arp, exclude);
                // A machine may have no neighbours.
                !files.arp.bytes().is_empty()
            });
        }
        if on.softnet {
            scrapes.write(text, "softnet", |text| {
                network::softnet(text, &files.softnet);
            });
        }
        if on.sockstat {
            scrapes.write(text, "sockstat", |text| {
                network::sockstat(text, [&files.sockstat, &files.sockstat6]);
            });
        }
        if let Some(netstat) = &mut self.netstat {
            let protocols = [&files.net_netstat, &files.net_snmp];
            scrapes.write(text, "netstat", |text| {
                netstat.write(text, protocols, &files.net_snmp6);
            });
        }
        if on.conntrack {
            scrapes.write(text, "conntrack", |text| {
                let entries = [&files.conntrack_count, &files.conntrack_max];
                let entries = self.machine.has_network.then_some(entries);
                network::conntrack(text, entries, &files.conntrack_stat);
            });
        }
    }
}
