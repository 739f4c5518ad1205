//! Selects the machine's metrics to export.

use std::path::PathBuf;

use fastproc_metrics::metrics::{NodeSwitches, Pattern, Switches, VmstatFilter};

macro_rules! collectors {
    ($($on:ident $off:ident $name:literal $help:literal;)*) => {
        /// Parts of the machine's metrics, named as in `node_exporter`.
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "Metrics of the machine, as of node_exporter")]
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
                #[arg(long = concat!("no-collector.", $name), overrides_with = stringify!($on), help = "Leave these metrics out.")]
                $off: bool,
            )*
            /// Export these fields of /proc/vmstat.
            #[arg(long = "collector.vmstat.fields", value_name = "REGEX", value_parser = VmstatFilter::new, default_value = VmstatFilter::DEFAULT)]
            vmstat_fields: VmstatFilter,
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
        if self.no_host {
            return Switches::none();
        }
        let base = (by_default || self.host) && !self.disable_defaults;
        let either =
            |include: Option<&Pattern>, exclude: Option<&Pattern>| include.or(exclude).cloned();
        let is_on = |on: bool, off: bool| on || base && !off;
        let filesystem = is_on(self.filesystem, self.no_filesystem);
        Switches {
            cpu: is_on(self.cpu, self.no_cpu),
            stat: is_on(self.stat, self.no_stat),
            softirqs: is_on(self.softirqs, self.no_softirqs),
            interrupts: self.interrupts,
            processes: is_on(self.processes, self.no_processes),
            vmstat: is_on(self.vmstat, self.no_vmstat).then(|| self.vmstat_fields.clone()),
            node: NodeSwitches {
                arp: is_on(self.arp, self.no_arp)
                    .then(|| either(self.arp_include.as_ref(), self.arp_exclude.as_ref())),
                conntrack: is_on(self.conntrack, self.no_conntrack),
                cpufreq: is_on(self.cpufreq, self.no_cpufreq),
                diskstats: is_on(self.diskstats, self.no_diskstats).then(|| {
                    self.disks_include
                        .as_ref()
                        .unwrap_or(&self.disks_exclude)
                        .clone()
                }),
                entropy: is_on(self.entropy, self.no_entropy),
                filefd: is_on(self.filefd, self.no_filefd),
                filesystem: filesystem.then(|| {
                    let mount_points = self.mount_points_include.as_ref();
                    let mount_points = mount_points.unwrap_or(&self.mount_points_exclude).clone();
                    (
                        mount_points,
                        self.types_include
                            .as_ref()
                            .unwrap_or(&self.types_exclude)
                            .clone(),
                    )
                }),
                loadavg: is_on(self.loadavg, self.no_loadavg),
                meminfo: is_on(self.meminfo, self.no_meminfo),
                netclass: is_on(self.netclass, self.no_netclass)
                    .then(|| self.netclass_exclude.clone()),
                netdev: is_on(self.netdev, self.no_netdev)
                    .then(|| either(self.devices_include.as_ref(), self.devices_exclude.as_ref())),
                netstat: is_on(self.netstat, self.no_netstat).then(|| self.netstat_fields.clone()),
                pressure: is_on(self.pressure, self.no_pressure),
                schedstat: is_on(self.schedstat, self.no_schedstat),
                sockstat: is_on(self.sockstat, self.no_sockstat),
                softnet: is_on(self.softnet, self.no_softnet),
                textfile: is_on(self.textfile, self.no_textfile)
                    .then(|| self.textfile_folders.clone()),
                thermal_zone: is_on(self.thermal_zone, self.no_thermal_zone),
                time: is_on(self.time, self.no_time),
                timex: is_on(self.timex, self.no_timex),
                uname: is_on(self.uname, self.no_uname),
            },
        }
    }
}
