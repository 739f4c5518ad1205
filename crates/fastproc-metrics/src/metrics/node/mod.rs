//! The metrics of `node_exporter` that come from text files of the kernel. The files stay open, and only the reported
//! numbers are parsed.

mod ask;
mod filesystems;
mod machine;
mod mounted;
mod netclass;
mod network;
mod sensors;
mod storage;
mod sysfs;
mod system;
mod text;
mod textfile;
mod timex;

use std::{collections::HashSet, path::PathBuf};

use regex::Regex;

use self::{
    filesystems::{Filesystems, MountFilter},
    network::Netstat,
    sysfs::Attributes,
    text::TextFile,
    textfile::Collector,
};
pub use self::{machine::Machine, textfile::LeftOut};
pub(super) use self::{
    mounted::{Mounted, list as mounts},
    network::net_dev,
};
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

/// The enabled collectors, and their options.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Their names in `node_exporter`.
    pub on: HashSet<&'static str>,
    /// Devices whose neighbours are left out.
    pub arp: Option<Pattern>,
    /// Disks that are left out.
    pub disks: Pattern,
    /// Mount points that are left out.
    pub mount_points: Pattern,
    /// Types of filesystems that are left out.
    pub filesystems: Pattern,
    /// Devices whose properties are left out.
    pub netclass: Pattern,
    /// Devices that are left out.
    pub netdev: Option<Pattern>,
    /// Numbers of protocols that are exported.
    pub netstat: Pattern,
    /// The folders of textfiles.
    pub textfiles: Vec<PathBuf>,
    /// Fields of `/proc/vmstat` that are exported.
    pub vmstat: Pattern,
}

impl Switches {
    pub(super) fn has(&self, collector: &str) -> bool {
        self.on.contains(collector)
    }
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

    /// Fields of `/proc/vmstat` that `node_exporter` reports.
    pub const VMSTAT: &str = "^(oom_kill|pgpg|pswp|pg.*fault).*";

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

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text) != self.is_inverted
    }
}

/// Reads these metrics, and writes them.
#[derive(Debug)]
pub(super) struct NodeMetrics {
    switches: Switches,
    machine: Machine,
    filesystems: Filesystems,
    netstat: Netstat,
    nohandler: Attributes,
    /// The labels of disks.
    disk_infos: Vec<String>,
    devices: Vec<netclass::Device>,
    textfiles: Collector,
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

            fn read(&mut self, switches: &Switches, scrapes: &mut Scrapes) {
                $(if switches.has(stringify!($switch)) {
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

impl NodeMetrics {
    /// `own`: the names that textfiles must not define again.
    pub(super) fn new(switches: Switches, machine: Machine, own: &[Family]) -> Self {
        let filter = MountFilter {
            mount_points: switches.mount_points.clone(),
            types: switches.filesystems.clone(),
        };
        Self {
            filesystems: Filesystems::new(filter, machine.clone()),
            machine,
            netstat: Netstat::new(switches.netstat.clone()),
            nohandler: Attributes::default(),
            disk_infos: Vec::new(),
            devices: Vec::new(),
            textfiles: Collector::new(switches.textfiles.clone(), own),
            files: Files::new(),
            switches,
        }
    }

    /// Reads everything. What cannot be read is omitted.
    pub(super) fn collect(&mut self, scrapes: &mut Scrapes) {
        let switches = &self.switches;
        self.files.read(switches, scrapes);
        if switches.has("diskstats") {
            self.disk_infos = scrapes.collect("diskstats", || {
                storage::disk_infos(&self.files.diskstats, &switches.disks)
            });
        }
        let folder = self.machine.devices();
        if let Some(folder) = folder.as_ref().filter(|_| switches.has("netdev")) {
            scrapes.collect("netdev", || {
                network::read_nohandler(&self.files.net_dev, folder, &mut self.nohandler);
            });
        }
        if let Some(folder) = folder.as_ref().filter(|_| switches.has("netclass")) {
            let read = || netclass::read(folder, &switches.netclass);
            self.devices = scrapes.collect("netclass", read);
        }
        if switches.has("textfile") {
            scrapes.collect("textfile", || self.textfiles.collect());
        }
        if switches.has("filesystem") {
            scrapes.collect("filesystem", || self.filesystems.collect());
        }
    }

    /// Metrics that are left out because this process has another network or another name than the machine, or may not
    /// see whether it has.
    pub(super) fn unseen(&self) -> Vec<&'static str> {
        let (machine, has) = (&self.machine, |collector| self.switches.has(collector));
        let unseen = [
            ("node_uname_info", has("uname") && !machine.has_name),
            (
                "node_nf_conntrack_entries and its limit",
                has("conntrack") && !machine.has_network,
            ),
            (
                "the devices of the netclass collector",
                has("netclass") && machine.devices().is_none(),
            ),
        ];
        let unseen = unseen.into_iter().filter(|(_, is_left_out)| *is_left_out);
        unseen.map(|(name, _)| name).collect()
    }

    /// Parts of textfiles that are left out now, and were not at the last call.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let read = self.textfiles.read();
        read.map_or_else(Vec::new, |mut textfiles| textfiles.news())
    }

    /// Writes what was read last.
    pub(super) fn write(&mut self, text: &mut Exposition, scrapes: &mut Scrapes) {
        let Self {
            switches,
            machine,
            files,
            netstat,
            ..
        } = self;
        // Each with whether it may have no values.
        macro_rules! write {
            ($($collector:literal $may_be_none:expr => $write:expr;)*) => {$(
                if switches.has($collector) {
                    let write: &mut dyn FnMut(&mut Exposition) = &mut $write;
                    scrapes.write(text, $collector, $may_be_none, write);
                }
            )*};
        }
        let pressure = [
            &files.pressure_cpu,
            &files.pressure_io,
            &files.pressure_memory,
            &files.pressure_irq,
        ];
        let entries = [&files.conntrack_count, &files.conntrack_max];
        let entries = machine.has_network.then_some(entries);
        let sockstat = [&files.sockstat, &files.sockstat6];
        let netstats = [&files.net_netstat, &files.net_snmp];
        write! {
            "loadavg" false => |text| system::loadavg(text, &files.loadavg);
            "meminfo" false => |text| system::meminfo(text, &files.meminfo);
            "pressure" false => |text| system::pressure(text, pressure);
            "filefd" false => |text| system::filefd(text, &files.file_nr);
            "entropy" false => |text| system::entropy(text, &files.entropy_available, &files.entropy_pool);
        }
        // Only a process of the same UTS namespace can ask for the machine's name.
        if machine.has_name {
            write! { "uname" false => system::uname; }
        }
        write! {
            "time" false => |text| system::time(text, &files.clock_available, &files.clock_current);
            "timex" false => timex::write;
            "schedstat" false => |text| system::schedstat(text, &files.schedstat);
            "netdev" false => |text| network::netdev(text, &files.net_dev, &self.nohandler, switches.netdev.as_ref());
            "netclass" false => |text| netclass::write(text, &self.devices);
            // A machine may have no neighbours.
            "arp" !files.arp.bytes().is_empty() => |text| network::arp(text, &files.arp, switches.arp.as_ref());
            "softnet" false => |text| network::softnet(text, &files.softnet);
            "sockstat" false => |text| network::sockstat(text, sockstat);
            "netstat" false => |text| netstat.write(text, netstats, &files.net_snmp6);
            "conntrack" false => |text| network::conntrack(text, entries, &files.conntrack_stat);
            "diskstats" false => |text| storage::diskstats(text, &files.diskstats, &self.disk_infos, &switches.disks);
            "filesystem" false => |text| self.filesystems.write(text);
            // Virtual machines have none of these.
            "cpufreq" true => |text| sensors::cpufreq(text, &sys_root::path("/sys/devices/system/cpu"));
            "thermal_zone" true => |text| sensors::thermal(text, &sys_root::path("/sys/class/thermal"));
            "textfile" false => |text| if let Some(textfiles) = self.textfiles.read() { textfiles.write(text) };
        }
    }
}
