//! Every metric: its name, type, labels and meaning, and how its series are written.

mod groups;
mod host;
mod own;
mod table;

pub use self::{
    groups::{Extras, Known, Proportional, series_of_a_group, write_groups},
    host::{HostMetrics, Switches, VmstatFilter, WrongFilter},
    own::{Own, write_own},
    table::markdown,
};
