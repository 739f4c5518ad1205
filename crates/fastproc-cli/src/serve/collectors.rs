//! Selects the machine's metrics to export.

use std::path::PathBuf;

use fastproc_metrics::metrics::{Pattern, Switches};

macro_rules! collectors {
    ($($on:ident $off:ident $name:literal $help:literal;)*) => {
        /// Parts of the machine's metrics, named as in `node_exporter`.
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "Metrics of the machine, as of node_exporter; --no-collector.NAME leaves some out")]
        pub struct Collectors {
            /// Export these metrics also with --config, --procnames, or flags with one dash.
            #[arg(long, overrides_with = "no_host")]
            host: bool,
            /// Export none of these metrics, regardless of other flags.
            #[arg(long, overrides_with = "host")]
            no_host: bool,
            /// Export only those of these metrics whose own flags say so.
            #[arg(long = "collector.disable-defaults")]
            disable_defaults: bool,
            $(
                #[arg(long = concat!("collector.", $name), overrides_with = stringify!($off), help = $help)]
                $on: bool,
                #[arg(long = concat!("no-collector.", $name), overrides_with = stringify!($on), hide = true)]
                $off: bool,
            )*
            /// Export these fields of /proc/vmstat.
            #[arg(long = "collector.vmstat.fields", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::VMSTAT)]
            vmstat_fields: Pattern,
            /// Leave out these disks.
            #[arg(long = "collector.diskstats.device-exclude", alias = "collector.diskstats.ignored-devices", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::DISKS)]
            disks_exclude: Pattern,
            /// Export only these disks.
            #[arg(long = "collector.diskstats.device-include", value_name = "REGEX", value_parser = Pattern::inverted, conflicts_with = "disks_exclude")]
            disks_include: Option<Pattern>,
            /// Leave out these mount points.
            #[arg(long = "collector.filesystem.mount-points-exclude", alias = "collector.filesystem.ignored-mount-points", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::MOUNT_POINTS)]
            mount_points_exclude: Pattern,
            /// Export only these mount points.
            #[arg(long = "collector.filesystem.mount-points-include", value_name = "REGEX", value_parser = Pattern::inverted, conflicts_with = "mount_points_exclude")]
            mount_points_include: Option<Pattern>,
            /// Leave out file systems of these types.
            #[arg(long = "collector.filesystem.fs-types-exclude", alias = "collector.filesystem.ignored-fs-types", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::FILESYSTEMS)]
            types_exclude: Pattern,
            /// Export only file systems of these types.
            #[arg(long = "collector.filesystem.fs-types-include", value_name = "REGEX", value_parser = Pattern::inverted, conflicts_with = "types_exclude")]
            types_include: Option<Pattern>,
            /// Leave out these network devices.
            #[arg(long = "collector.netdev.device-exclude", alias = "collector.netdev.device-blacklist", value_name = "REGEX", value_parser = Pattern::new)]
            devices_exclude: Option<Pattern>,
            /// Export only these network devices.
            #[arg(long = "collector.netdev.device-include", alias = "collector.netdev.device-whitelist", value_name = "REGEX", value_parser = Pattern::inverted, conflicts_with = "devices_exclude")]
            devices_include: Option<Pattern>,
            /// Leave out neighbours of these network devices.
            #[arg(long = "collector.arp.device-exclude", value_name = "REGEX", value_parser = Pattern::new)]
            arp_exclude: Option<Pattern>,
            /// Export only neighbours of these network devices.
            #[arg(long = "collector.arp.device-include", value_name = "REGEX", value_parser = Pattern::inverted, conflicts_with = "arp_exclude")]
            arp_include: Option<Pattern>,
            /// Leave out properties of these network devices.
            #[arg(long = "collector.netclass.ignored-devices", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::NETCLASS)]
            netclass_exclude: Pattern,
            /// Read files *.prom in the Prometheus text format in this folder. Can be repeated.
            #[arg(long = "collector.textfile.directory", value_name = "FOLDER")]
            textfile_folders: Vec<PathBuf>,
            /// Export these protocol counters.
            #[arg(long = "collector.netstat.fields", value_name = "REGEX", value_parser = Pattern::new, default_value = Pattern::NETSTAT)]
            netstat_fields: Pattern,
        }

        impl Collectors {
            /// All, with whether its flags turn it on or off.
            fn named(&self) -> impl Iterator<Item = (&'static str, bool, bool)> {
                [$(($name, self.$on, self.$off)),*].into_iter()
            }
        }
    };
}

collectors! {
    arp no_arp "arp" "Neighbours of network devices.";
    conntrack no_conntrack "conntrack" "Connections that are tracked.";
    cpu no_cpu "cpu" "CPU times.";
    cpufreq no_cpufreq "cpufreq" "Frequencies of CPUs.";
    diskstats no_diskstats "diskstats" "Disks.";
    entropy no_entropy "entropy" "Entropy.";
    filefd no_filefd "filefd" "Open files.";
    filesystem no_filesystem "filesystem" "Filesystems.";
    interrupts no_interrupts "interrupts" "A series for each interrupt and CPU; off unless asked for.";
    loadavg no_loadavg "loadavg" "Load.";
    meminfo no_meminfo "meminfo" "Memory.";
    netclass no_netclass "netclass" "Properties of network devices.";
    netdev no_netdev "netdev" "Network devices.";
    netstat no_netstat "netstat" "Protocols.";
    pressure no_pressure "pressure" "Pressure.";
    processes no_processes "processes" "Processes and threads by state.";
    schedstat no_schedstat "schedstat" "Times of the scheduler.";
    sockstat no_sockstat "sockstat" "Sockets.";
    softnet no_softnet "softnet" "Packets that CPUs process.";
    stat no_stat "stat" "Interrupts, forks, context switches.";
    softirqs no_softirqs "stat.softirq" "Softirqs by kind.";
    textfile no_textfile "textfile" "Metrics that others leave in files.";
    thermal_zone no_thermal_zone "thermal_zone" "Temperatures, and what cools.";
    time no_time "time" "Time, and its source.";
    timex no_timex "timex" "How the time is kept.";
    uname no_uname "uname" "The name of the system.";
    vmstat no_vmstat "vmstat" "Virtual memory.";
}

impl Collectors {
    /// The metrics to export. `by_default` applies to those that no flag names.
    pub fn switches(&self, by_default: bool) -> Switches {
        let base = (by_default || self.host) && !self.disable_defaults;
        let is_on =
            |&(name, on, off): &(&str, bool, bool)| on || base && !off && name != "interrupts";
        let on = self.named().filter(|_| !self.no_host).filter(is_on);
        let either = |include: &Option<Pattern>, exclude: &Pattern| {
            include.as_ref().unwrap_or(exclude).clone()
        };
        Switches {
            on: on.map(|(name, ..)| name).collect(),
            arp: self
                .arp_include
                .clone()
                .or_else(|| self.arp_exclude.clone()),
            disks: either(&self.disks_include, &self.disks_exclude),
            mount_points: either(&self.mount_points_include, &self.mount_points_exclude),
            filesystems: either(&self.types_include, &self.types_exclude),
            netclass: self.netclass_exclude.clone(),
            netdev: self
                .devices_include
                .clone()
                .or_else(|| self.devices_exclude.clone()),
            netstat: self.netstat_fields.clone(),
            textfiles: self.textfile_folders.clone(),
            vmstat: self.vmstat_fields.clone(),
        }
    }
}
