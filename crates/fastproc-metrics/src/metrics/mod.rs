//! Every metric: its name, type, labels and meaning, and how its series are written.

/// Defines families, and a list of all of them in the order of the text.
macro_rules! families {
    ($($constant:ident = $name:literal $kind:ident $labels:expr, $help:literal;)*) => {
        $(const $constant: Family = Family {
            name: $name,
            kind: $crate::exposition::Kind::$kind,
            help: $help,
            labels: $labels,
        };)*
        /// All of them, in the order of the text.
        pub(super) const ALL: &[Family] = &[$($constant),*];
    };
}
pub(crate) use families;

mod cadvisor;
mod cgroups;
mod cpu;
mod groups;
mod host;
mod node;
mod own;
mod scrapes;
mod table;

pub use self::{
    cadvisor::cadvisor_names,
    cgroups::{CgroupMetrics, CgroupSettings},
    groups::{Extras, series_of_a_group, write_groups},
    host::{HostMetrics, WrongFilter},
    node::{LeftOut, Machine, Pattern, Switches},
    own::{ExitCounts, Own, Served, Service, write_own},
    table::markdown,
};
