//! What the kernel side writes: records, their groups of fields, their description as data.

pub mod fields;
pub mod layout;
pub mod name;
pub mod record;
pub mod schema;
pub mod translation;
