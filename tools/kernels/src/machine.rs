//! The emulated machine for each scenario.

use std::{path::Path, time::Duration};

use fastproc_guest::scenario::Scenario;

use crate::{
    architecture::{Architecture, Flavour},
    series::Series,
};

/// A machine, in qemu's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The architecture.
    pub architecture: Architecture,
    /// The board.
    pub board: &'static str,
    /// The model of its CPUs.
    pub cpu: &'static str,
    /// The number of CPUs at the start.
    pub cpus: u16,
    /// The number of CPUs that could be plugged in, if greater.
    pub cpus_at_most: Option<u16>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Whether one thread of the host emulates all CPUs.
    pub one_thread: bool,
    /// Disk controllers (`nvme`) with 64 queues, each of which has its own interrupt.
    pub nvme_controllers: u16,
    /// MiB of a disk that keeps its data while the machine runs.
    pub disk_mib: Option<u64>,
    /// Whether time is counted in instructions, so that measurements do not depend on the host.
    pub counted: bool,
    /// Additional words of the kernel's command line.
    pub parameters: &'static [&'static str],
    /// The host's CPU time for each scenario after which it is given up.
    pub timeout: Duration,
}

/// A small machine of two CPUs.
const SMALL: Machine = Machine {
    architecture: Architecture::Amd64,
    board: "pc",
    cpu: "qemu64",
    cpus: 2,
    cpus_at_most: None,
    memory_mib: 1024,
    one_thread: false,
    nvme_controllers: 0,
    disk_mib: None,
    counted: false,
    parameters: &[],
    timeout: Duration::from_secs(300),
};

/// The same for arm64.
const SMALL_ARM64: Machine = Machine {
    architecture: Architecture::Arm64,
    board: "virt",
    // Everything that the emulator supports, with its own pointer authentication: that of the architecture alone would
    // take half of the time.
    cpu: "max,pauth-impdef=on",
    // It takes twice as long.
    timeout: Duration::from_secs(600),
    ..SMALL
};

impl Machine {
    /// The machine of a scenario. Scenarios with equal machines share one boot.
    pub fn of(scenario: Scenario, architecture: Architecture) -> Self {
        let small = match architecture {
            Architecture::Amd64 => SMALL,
            Architecture::Arm64 => SMALL_ARM64,
        };
        match scenario {
            Scenario::Survey
            | Scenario::Glance
            | Scenario::Conformance
            | Scenario::KptrRestrict
            | Scenario::Lockdown
            | Scenario::HidePid
            | Scenario::Namespaces
            | Scenario::Service
            | Scenario::AppArmor
            | Scenario::Exits
            // The scenarios that use the disk.
            | Scenario::Cgroups
            | Scenario::Memory => Self {
                disk_mib: Some(64),
                ..small
            },
            // Two storms of some minutes, and both CPUs are busy all the time.
            Scenario::NamespaceStorms => Self {
                timeout: small.timeout * 6,
                ..small
            },
            Scenario::Hotplug => Self { cpus: 4, ..small },
            // A thousand cgroups.
            Scenario::CgroupCost => Self {
                cpus: 2,
                memory_mib: 2048,
                timeout: small.timeout * 4,
                ..Self::of(Scenario::Cost, architecture)
            },
            // Nothing may differ between runs, not even addresses.
            Scenario::Cost
            | Scenario::NamespaceCost
            | Scenario::InterruptsCost => Self {
                cpus: 1,
                cpus_at_most: (scenario == Scenario::InterruptsCost).then_some(255),
                one_thread: true,
                counted: true,
                parameters: &["nokaslr", "norandmaps"],
                ..small
            },
            Scenario::CgroupCostBig => Self {
                cpus: 8,
                ..Self::of(Scenario::CgroupCost, architecture)
            },
            Scenario::CgroupFlush => Self::of(Scenario::CgroupCost, architecture),
            Scenario::Cadvisor => Self {
                disk_mib: Some(64),
                timeout: small.timeout * 2,
                ..small
            },
            Scenario::CadvisorCost => Self {
                timeout: small.timeout * 8,
                ..Self::of(Scenario::CgroupCost, architecture)
            },
            // Both CPUs are busy all the time.
            Scenario::CgroupStorms => Self {
                disk_mib: Some(64),
                timeout: small.timeout * 20,
                ..small
            },
            // Room for the removed cgroups that the kernel keeps.
            Scenario::CgroupScale | Scenario::CgroupDying => Self {
                memory_mib: 8192,
                timeout: small.timeout * 8,
                ..small
            },
            Scenario::CgroupScaleBig => Self {
                nvme_controllers: 0,
                timeout: small.timeout * 4,
                ..Self::of(Scenario::Big, architecture)
            },
            Scenario::Storms32 => Self {
                cpus: 32,
                nvme_controllers: 0,
                timeout: small.timeout * 12,
                ..Self::of(Scenario::Big, architecture)
            },
            // The kernel starts four of them: 6.12 takes no CPU as possible that only could be plugged in.
            Scenario::Storms255 => Self {
                cpus: 255,
                parameters: &["maxcpus=4"],
                memory_mib: 4096,
                timeout: small.timeout * 12,
                ..small
            },
            // One thread emulates this many CPUs in turn.
            Scenario::Big => Self {
                board: match architecture {
                    Architecture::Amd64 => "q35",
                    // The default has room for eight CPUs.
                    Architecture::Arm64 => "virt,gic-version=3",
                },
                cpus: 64,
                memory_mib: 4096,
                one_thread: true,
                nvme_controllers: 6,
                timeout: small.timeout * 2,
                ..small
            },
            // The kernel reserves room for the interrupts of every CPU that could be plugged in.
            Scenario::Interrupts => Self {
                cpus_at_most: Some(255),
                ..small
            },
        }
    }

    /// Why a scenario makes no sense on a series, if so.
    pub fn refuses(scenario: Scenario, series: Series) -> Option<&'static str> {
        // The newest of Debian's releases whose AppArmor does not label sockets.
        if scenario == Scenario::AppArmor && series != Series::new(Flavour::Amd64, 6, 12) {
            return Some("one kernel is enough");
        }
        // From 6.9 on only CPUs that the firmware declares as pluggable get room; qemu's boards here declare none. On
        // arm64 interrupts get their numbers on request.
        let grows = series.architecture() == Architecture::Amd64
            && series.is_older_than(Series::new(Flavour::Amd64, 6, 9));
        let needs_room = matches!(scenario, Scenario::Interrupts | Scenario::InterruptsCost);
        (needs_room && !grows).then_some("this kernel makes no room for CPUs that are not there")
    }

    /// The kernel's command line for scenarios on this machine.
    pub fn command_line(&self, scenarios: &[Scenario]) -> String {
        let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name()).collect();
        let names = format!(
            "{}={}",
            fastproc_guest::scenario::PARAMETER,
            names.join(",")
        );
        // A kernel that panics restarts at once, which ends the emulator with code 0.
        let console = match self.architecture {
            Architecture::Amd64 => "console=ttyS0",
            Architecture::Arm64 => "console=ttyAMA0",
        };
        let mut words = vec![console, "quiet", "loglevel=4", "panic=-1"];
        if self.architecture == Architecture::Amd64 {
            // A busy host can make the emulated timer look dead, which makes old kernels panic.
            words.push("no_timer_check");
            // Otherwise the kernel finds its clock unreliable, and rewrites code that another CPU is running, which the
            // emulator does not always survive.
            words.push("tsc=reliable");
        }
        words.push(&names);
        words.extend(self.parameters);
        words.join(" ")
    }

    /// qemu's arguments for the two serial ports, and for the device that ends qemu with an exit code.
    pub fn ports(&self, console: &Path, report: &Path) -> Vec<String> {
        let file = |path: &Path| format!("file:{}", path.display());
        match self.architecture {
            Architecture::Amd64 => vec![
                "-device".into(),
                "isa-debug-exit,iobase=0xf4,iosize=0x04".into(),
                "-serial".into(),
                file(console),
                "-serial".into(),
                file(report),
            ],
            Architecture::Arm64 => vec![
                "-semihosting-config".into(),
                "enable=on,userspace=on,target=native".into(),
                "-serial".into(),
                file(console),
                "-chardev".into(),
                format!("file,id=report,path={}", option(report)),
                "-device".into(),
                "pci-serial,chardev=report".into(),
            ],
        }
    }

    /// qemu's arguments that describe the machine. `disk`: a file of the size of its disk, if it has one.
    pub fn arguments(&self, disk: Option<&Path>) -> Vec<String> {
        let cpus = self.cpus_at_most.map_or(self.cpus.to_string(), |most| {
            format!("{},maxcpus={most}", self.cpus)
        });
        let threads = if self.one_thread {
            "tcg,thread=single"
        } else {
            "tcg,thread=multi"
        };
        let memory = format!("{}M", self.memory_mib);
        let mut arguments: Vec<String> = [
            ["-machine", self.board],
            ["-cpu", self.cpu],
            ["-smp", &cpus],
            ["-m", &memory],
            ["-accel", threads],
        ]
        .as_flattened()
        .iter()
        .map(|&word| word.to_owned())
        .collect();
        if self.counted {
            let counted = [
                ["-icount", "shift=1,sleep=off"],
                ["-rtc", "base=2026-01-01,clock=vm"],
                ["-seed", "1"],
            ];
            arguments.extend(counted.as_flattened().iter().map(|&word| word.to_owned()));
        }
        if let Some(disk) = disk {
            let file = option(disk);
            arguments.extend([
                "-blockdev".into(),
                format!("driver=file,filename={file},node-name=kept"),
                "-device".into(),
                "nvme,drive=kept,serial=kept".into(),
            ]);
        }
        for number in 0..self.nvme_controllers {
            arguments.extend([
                "-blockdev".into(),
                format!("driver=null-co,read-zeroes=on,size=1073741824,node-name=disk{number}"),
                "-device".into(),
                format!(
                    "nvme,drive=disk{number},serial=disk{number},max_ioqpairs=64,msix_qsize=65"
                ),
            ]);
        }
        arguments
    }
}

/// A path in the form of qemu's options: a comma is doubled.
fn option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_is_told_its_own_console() {
        let line = |architecture| {
            Machine::of(Scenario::Exits, architecture).command_line(&[Scenario::Exits])
        };
        let names = "fastproc.scenarios=exits";
        assert_eq!(
            line(Architecture::Amd64),
            format!("console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check tsc=reliable {names}")
        );
        assert_eq!(
            line(Architecture::Arm64),
            format!("console=ttyAMA0 quiet loglevel=4 panic=-1 {names}")
        );
    }
}
