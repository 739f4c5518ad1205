//! Flags of `node_exporter` and process-exporter that have no effect here. They are accepted, so that units need not be
//! changed, and are not in the help.

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, parser::ValueSource};

/// Each name with and without `no-`, which disables a switch.
macro_rules! switches {
    ($($name:literal)*) => { &[$(($name, concat!("no-", $name))),*] };
}

macro_rules! values {
    ($($name:literal)*) => { &[$($name),*] };
}

/// Collectors of `node_exporter` 1.5 to 1.11 that are not here. Without them nothing is missing.
const COLLECTORS: &[(&str, &str)] = switches! {
    "collector.bcache" "collector.bcachefs" "collector.bonding" "collector.btrfs" "collector.buddyinfo"
    "collector.cgroups" "collector.cpu_vulnerabilities" "collector.dmi" "collector.dmmultipath" "collector.drbd"
    "collector.drm" "collector.edac" "collector.ethtool" "collector.fibrechannel" "collector.hwmon"
    "collector.infiniband" "collector.ipvs" "collector.kernel_hung" "collector.ksmd" "collector.lnstat"
    "collector.logind" "collector.mdadm" "collector.meminfo_numa" "collector.mountstats" "collector.network_route"
    "collector.nfs" "collector.nfsd" "collector.ntp" "collector.nvme" "collector.nvmesubsystem" "collector.os"
    "collector.pcidevice" "collector.perf" "collector.powersupplyclass" "collector.qdisc" "collector.rapl"
    "collector.runit" "collector.selinux" "collector.slabinfo" "collector.softirqs" "collector.supervisord"
    "collector.swap" "collector.sysctl" "collector.systemd" "collector.tapestats" "collector.tcpstat"
    "collector.udp_queues" "collector.watchdog" "collector.wifi" "collector.xfrm" "collector.xfs" "collector.zfs"
    "collector.zoneinfo"
};

const SWITCHES: &[(&str, &str)] = switches! {
    "collector.arp.netlink" "collector.bcache.priorityStats" "collector.cpu.guest" "collector.cpu.info"
    "collector.interrupts.include-zeros" "collector.netclass.ignore-invalid-speed" "collector.netclass.netlink"
    "collector.netclass_rtnl.with-stats" "collector.netdev.address-info"
    "collector.netdev.enable-detailed-metrics" "collector.netdev.label-ifalias" "collector.netdev.netlink"
    "collector.ntp.server-is-local" "collector.pcidevice.names" "collector.perf.disable-cache-profilers"
    "collector.perf.disable-hardware-profilers" "collector.perf.disable-software-profilers"
    "collector.rapl.enable-zone-label" "collector.systemd.enable-restarts-metrics"
    "collector.systemd.enable-start-time-metrics" "collector.systemd.enable-task-metrics"
    "collector.systemd.private" "web.disable-exporter-metrics" "web.systemd-socket"
};

/// Flags with a value.
const VALUES: &[&str] = values! {
    "collector.cpu.info.bugs-include" "collector.cpu.info.flags-include" "collector.ethtool.device-exclude"
    "collector.ethtool.device-include" "collector.ethtool.metrics-include" "collector.filesystem.mount-timeout"
    "collector.filesystem.stat-workers" "collector.hwmon.chip-exclude" "collector.hwmon.chip-include"
    "collector.hwmon.sensor-exclude" "collector.hwmon.sensor-include" "collector.infiniband.device-exclude"
    "collector.infiniband.device-include" "collector.interrupts.name-exclude" "collector.interrupts.name-include"
    "collector.ipvs.backend-labels" "collector.ntp.ip-ttl" "collector.ntp.local-offset-tolerance"
    "collector.ntp.max-distance" "collector.ntp.protocol-version" "collector.ntp.server" "collector.ntp.server-port"
    "collector.pcidevice.idsfile" "collector.perf.cache-profilers" "collector.perf.cpus"
    "collector.perf.hardware-profilers" "collector.perf.software-profilers" "collector.perf.tracepoint"
    "collector.powersupply.ignored-supplies" "collector.qdisc.device-exclude" "collector.qdisc.device-include"
    "collector.qdisc.fixtures" "collector.qdisk.device-exclude" "collector.qdisk.device-include"
    "collector.runit.servicedir" "collector.slabinfo.slabs-exclude" "collector.slabinfo.slabs-include"
    "collector.supervisord.url" "collector.sysctl.include" "collector.sysctl.include-info"
    "collector.systemd.unit-blacklist" "collector.systemd.unit-exclude" "collector.systemd.unit-include"
    "collector.systemd.unit-whitelist" "collector.tapestats.ignored-devices" "collector.wifi.fixtures" "log.format"
    "log.level" "path.udev.data" "runtime.gomaxprocs" "web.max-requests"
};

/// The flags that were given.
#[derive(Debug, Default)]
pub struct Peers(Vec<&'static str>);

impl Peers {
    /// What to say about them; `None` if none was given.
    pub fn remark(&self) -> Option<String> {
        let flags: Vec<String> = self.0.iter().map(|name| format!("--{name}")).collect();
        (!flags.is_empty()).then(|| {
            format!(
                "these flags of other exporters have no effect here: {}",
                flags.join(", ")
            )
        })
    }
}

fn switches() -> impl Iterator<Item = &'static str> {
    let both = COLLECTORS.iter().chain(SWITCHES);
    both.flat_map(|&(on, off)| [on, off])
}

impl clap::Args for Peers {
    fn augment_args(command: Command) -> Command {
        let hidden = |name: &'static str, action| {
            let argument = Arg::new(name).long(name).action(action);
            argument.hide(true)
        };
        let switches = switches().map(|name| hidden(name, ArgAction::Count));
        let values = VALUES.iter().map(|name| hidden(name, ArgAction::Append));
        command.args(switches).args(values)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Peers {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let of_collectors = COLLECTORS.iter().map(|&(on, _)| on);
        let of_switches = SWITCHES.iter().flat_map(|&(on, off)| [on, off]);
        let names = of_collectors
            .chain(of_switches)
            .chain(VALUES.iter().copied());
        let given =
            names.filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<String> {
        let command = <Peers as clap::Args>::augment_args(Command::new("serve"));
        let arguments = ["serve"].iter().chain(arguments);
        let matches = command.try_get_matches_from(arguments).expect("flags");
        Peers::from_arg_matches(&matches).expect("flags").remark()
    }

    #[test]
    fn one_line_names_the_flags_without_effect() {
        let arguments = [
            "--log.level=info",
            "--collector.mdadm",
            "--log.format",
            "json",
            "--no-collector.cpu.guest",
            "--no-collector.zfs",
        ];
        assert_eq!(
            parsed(&arguments).as_deref(),
            Some(
                "these flags of other exporters have no effect here: --collector.mdadm, --no-collector.cpu.guest, \
                 --log.format, --log.level"
            )
        );
        // What is not here is left out as asked for.
        assert_eq!(parsed(&["--no-collector.zfs", "--no-collector.nfs"]), None);
    }
}
