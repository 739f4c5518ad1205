//! Options of the metrics of cgroups.

use clap::ArgAction;
use fastproc::cgroups::Source;
use fastproc_metrics::metrics::CgroupSettings;

use super::flags::boolean;

/// Which cgroups have metrics, and which ones.
#[derive(Debug, clap::Args)]
pub struct CgroupArgs {
    /// Export the resources that cgroups of version 2 use, with cAdvisor's names, and names of containers and pods.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub cgroups: bool,
    /// Export at most N cgroups: the first ones of the tree.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_cgroups: usize,
    /// Read the network of each container, as long as its processes live.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    cgroup_networks: bool,
    /// Count the open descriptors and sockets of the processes of each cgroup.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    cgroup_files: bool,
}

impl CgroupArgs {
    /// `None`: cgroups have no metrics. `by_files`: only files may be read.
    pub fn settings(&self, by_files: bool) -> Option<CgroupSettings> {
        self.cgroups.then(|| CgroupSettings {
            source: by_files.then_some(Source::Files),
            most: self.max_cgroups,
            networks: self.cgroup_networks,
            files: self.cgroup_files,
        })
    }
}
