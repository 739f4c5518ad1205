//! What the guest and the driver outside say to each other: the scenarios' names and the report.

pub mod report;
pub mod scenario;
