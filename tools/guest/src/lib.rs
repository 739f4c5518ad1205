//! The interface of the guest and the driver outside: the names of scenarios, and the report.

pub mod report;
pub mod scenario;
