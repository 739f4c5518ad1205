//! The records that the kernel side writes, their groups of fields, and their description as data.

pub mod fields;
pub mod layout;
pub mod name;
pub mod record;
pub mod schema;
