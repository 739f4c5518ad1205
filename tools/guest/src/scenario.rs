//! The names of scenarios, which a guest can run.

use std::{fmt, str::FromStr};

/// The kernel command-line parameter with the names of scenarios, separated by commas.
pub const PARAMETER: &str = "fastproc.scenarios";

/// A task of a guest, which may run several, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// Reports what the kernel offers, without judging it.
    Survey,
    /// The default source and one comparison: the cheapest proof.
    Glance,
    /// The cost of reading every cgroup, in instructions, without judging it.
    CgroupCost,
    /// The same with eight CPUs.
    CgroupCostBig,
    /// How long a CPU runs with interrupts off while the kernel folds the counts of cgroups, in instructions.
    CgroupFlush,
    /// The cost of reading every process in a pid namespace, in instructions, without judging it.
    NamespaceCost,
    /// The cost of reading thousands of interrupt counts of 255 CPUs, in instructions, compared if the table has it.
    InterruptsCost,
    /// Readers in pid namespaces, nested once and twice, during some minutes of storms. Too long to run every day.
    NamespaceStorms,
    /// The metrics of cgroups beside those of cAdvisor, which `make cadvisor` builds.
    Cadvisor,
    /// What a scrape of both costs, in instructions.
    CadvisorCost,
    /// Every value of cgroups in storms. Too long to run every day.
    CgroupStorms,
    /// Many cgroups, deep ones, and a storm of them. Too long to run every day.
    CgroupScale,
    /// The same with 64 CPUs and fewer cgroups. Too long to run every day.
    CgroupScaleBig,
    /// Every value of processes in a storm on 32 CPUs. Too long to run every day.
    Storms32,
    /// The same with 255 possible CPUs, of which four are online. Too long to run every day.
    Storms255,
    /// A hundred thousand removed cgroups, as far as the kernel keeps them. Too long to run every day.
    CgroupDying,
    /// All sources and readers: root, a user who may load programs, and an unprivileged user.
    Conformance,
    /// The kernel shows no addresses, not even to root.
    KptrRestrict,
    /// The kernel does not let programs read its memory.
    Lockdown,
    /// CPUs go offline and online while they are read.
    Hotplug,
    /// Cgroups with memory, throttling, I/O and processes.
    Cgroups,
    /// Memory swapped out, and huge pages in use.
    Memory,
    /// `/proc` hides other users' processes.
    HidePid,
    /// Readers in their own pid namespace or user namespace.
    Namespaces,
    /// A service, and all kinds of readers that it serves or refuses.
    Service,
    /// A service and readers that `AppArmor` confines.
    AppArmor,
    /// Exits are recorded.
    Exits,
    /// The cost of reading every process, in instructions instead of time.
    Cost,
    /// 64 CPUs, the most that a 64-bit mask has room for, and hundreds of interrupts.
    Big,
    /// Thousands of interrupt numbers, nearly all of them unused.
    Interrupts,
}

impl Scenario {
    /// All scenarios, in the order in which a guest runs them. A lockdown cannot be undone, so it is the last of those
    /// that share a machine.
    pub const ALL: [Self; 30] = [
        Self::Survey,
        Self::Glance,
        Self::CgroupCost,
        Self::CgroupCostBig,
        Self::CgroupFlush,
        Self::NamespaceCost,
        Self::InterruptsCost,
        Self::NamespaceStorms,
        Self::Cadvisor,
        Self::CadvisorCost,
        Self::CgroupStorms,
        Self::CgroupScale,
        Self::CgroupScaleBig,
        Self::Storms32,
        Self::Storms255,
        Self::CgroupDying,
        Self::Conformance,
        Self::Exits,
        Self::Service,
        Self::AppArmor,
        Self::Namespaces,
        Self::KptrRestrict,
        Self::HidePid,
        Self::Cgroups,
        Self::Memory,
        Self::Lockdown,
        Self::Hotplug,
        Self::Cost,
        Self::Big,
        Self::Interrupts,
    ];

    /// The scenarios that run if none is named: all except the first sixteen.
    pub const PROOFS: &[Self] = Self::ALL.split_at(16).1;

    /// Whether its processes must use every field.
    pub fn uses_fields(self) -> bool {
        matches!(self, Self::Conformance | Self::Memory)
    }

    /// Whether the guest judges all that it does, and reports no program's output.
    pub fn has_only_checks(self) -> bool {
        matches!(
            self,
            Self::Survey
                | Self::Cadvisor
                | Self::CadvisorCost
                | Self::CgroupStorms
                | Self::CgroupScale
                | Self::CgroupScaleBig
                | Self::Storms32
                | Self::Storms255
                | Self::CgroupDying
                | Self::CgroupFlush
        )
    }

    /// Whether cAdvisor runs beside.
    pub fn needs_cadvisor(self) -> bool {
        matches!(self, Self::Cadvisor | Self::CadvisorCost)
    }

    /// Whether it runs benchmarks.
    pub fn measures(self) -> bool {
        matches!(
            self,
            Self::Cost
                | Self::CgroupCost
                | Self::CgroupCostBig
                | Self::NamespaceCost
                | Self::InterruptsCost
        )
    }

    /// The name on the kernel's and on the driver's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Survey => "survey",
            Self::Glance => "glance",
            Self::CgroupCost => "cgroup_cost",
            Self::CgroupCostBig => "cgroup_cost_big",
            Self::CgroupFlush => "cgroup_flush",
            Self::NamespaceCost => "namespace_cost",
            Self::InterruptsCost => "interrupts_cost",
            Self::NamespaceStorms => "namespace_storms",
            Self::Cadvisor => "cadvisor",
            Self::CadvisorCost => "cadvisor_cost",
            Self::CgroupStorms => "cgroup_storms",
            Self::CgroupScale => "cgroup_scale",
            Self::CgroupScaleBig => "cgroup_scale_big",
            Self::Storms32 => "storms_32",
            Self::Storms255 => "storms_255",
            Self::CgroupDying => "cgroup_dying",
            Self::Conformance => "conformance",
            Self::KptrRestrict => "kptr_restrict",
            Self::Lockdown => "lockdown",
            Self::Hotplug => "hotplug",
            Self::Cgroups => "cgroups",
            Self::Memory => "memory",
            Self::HidePid => "hidepid",
            Self::Namespaces => "namespaces",
            Self::Service => "service",
            Self::AppArmor => "apparmor",
            Self::Exits => "exits",
            Self::Cost => "cost",
            Self::Big => "big",
            Self::Interrupts => "interrupts",
        }
    }

    /// Finds the scenarios on a kernel command line. `None`: it names none, or an unknown one.
    pub fn from_kernel_command_line(line: &str) -> Option<Vec<Self>> {
        let names = line
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(PARAMETER)?.strip_prefix('='))?;
        names.split(',').map(|name| name.parse().ok()).collect()
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no scenario has.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Scenario::ALL.map(Scenario::name).join(", ");
        write!(f, "there is no scenario “{}”; there are: {names}", self.0)
    }
}

impl std::error::Error for Unknown {}

impl FromStr for Scenario {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_scenario() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.name().parse(), Ok(scenario));
            let line = format!("console=ttyS0 {PARAMETER}={scenario} quiet\n");
            let found = Scenario::from_kernel_command_line(&line);
            assert_eq!(found, Some(vec![scenario]));
        }
    }

    #[test]
    fn several_are_named_in_their_order() {
        let line = format!("{PARAMETER}=exits,survey");
        let found = Scenario::from_kernel_command_line(&line);
        assert_eq!(found, Some(vec![Scenario::Exits, Scenario::Survey]));
    }

    #[test]
    fn a_command_line_without_known_scenarios_names_none() {
        for line in [
            "",
            "quiet",
            "fastproc.scenarios",
            "fastproc.scenarios=",
            "fastproc.scenarios=survey,",
            "fastproc.scenarios=survey,nothing",
            "fastproc.scenario=survey",
        ] {
            assert_eq!(Scenario::from_kernel_command_line(line), None, "{line}");
        }
    }
}
