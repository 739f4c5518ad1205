//! The names of what a guest can be asked to do.

use std::{fmt, str::FromStr};

/// The kernel command-line parameter that names the scenarios, with commas between them.
pub const PARAMETER: &str = "fastproc.scenarios";

/// One thing that a guest does. It may do several, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// Says what the kernel offers; judges nothing.
    Survey,
    /// What a look at every cgroup costs, in instructions; judges nothing.
    CgroupCost,
    /// Many cgroups, deep ones, removed ones, and a storm of them. It takes too long for every run.
    CgroupScale,
    /// Every source, every reader: root, a user who may load programs, a user who may nothing.
    Conformance,
    /// The kernel shows no addresses, not even to root.
    KptrRestrict,
    /// The kernel gives no program its memory.
    Lockdown,
    /// CPUs go and come while they are read.
    Hotplug,
    /// Cgroups with memory, throttling, I/O and processes.
    Cgroups,
    /// Memory swapped out, and huge pages in use.
    Memory,
    /// `/proc` hides other users' processes.
    HidePid,
    /// Readers in a pid namespace and in a user namespace of their own.
    Namespaces,
    /// A service, and readers of every kind that it serves or refuses.
    Service,
    /// A service and readers that `AppArmor` confines.
    AppArmor,
    /// Processes that end are recorded.
    Exits,
    /// What a look at every process costs, in instructions instead of time.
    Cost,
    /// More CPUs than a 64-bit mask has room for, and hundreds of interrupts.
    Big,
    /// Thousands of interrupt numbers, nearly all of them unused.
    Interrupts,
}

impl Scenario {
    /// Every scenario, in the order in which a guest runs them. Nothing undoes a lockdown, so it comes last of those that share
    /// a machine.
    pub const ALL: [Self; 17] = [
        Self::Survey,
        Self::CgroupCost,
        Self::CgroupScale,
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

    /// Those that prove something in every run: all but the first three.
    pub const PROOFS: &[Self] = Self::ALL.split_at(3).1;

    /// Whether its processes are meant to show every field in use.
    pub fn uses_fields(self) -> bool {
        matches!(self, Self::Conformance | Self::Memory)
    }

    /// The name on the kernel's and on the driver's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Survey => "survey",
            Self::CgroupCost => "cgroup_cost",
            Self::CgroupScale => "cgroup_scale",
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

    /// Finds the scenarios that a kernel command line asks for. `None`: it names none, or one that is not known.
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
