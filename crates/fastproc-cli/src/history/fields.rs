//! Fields that a history does not keep.

use fastproc::Host;
use fastproc_columns::{FIELDS, Field, Subject};
pub use fastproc_history::read::{Of, kept, kept_of_cgroups};

use crate::{failure::Failure, paragraphs};

/// A field that the history does not keep.
#[derive(Debug, thiserror::Error)]
#[error("the history does not keep {name}; it has these fields:\n{known}")]
pub struct NotKept {
    name: &'static str,
    known: String,
}

/// Checks that a history has all of these fields.
pub fn check(fields: impl Iterator<Item = &'static Field>, of: Of) -> Result<(), Failure> {
    let (host, fields) = (Host::read()?, fields.collect::<Vec<_>>());
    if kept(fields.iter().copied(), of, &host).len() == fields.len() {
        return Ok(());
    }
    check_in(&kept(FIELDS, of, &host), fields.into_iter())
}

/// Checks that these fields are among those that are kept.
pub fn check_in<S: Subject>(
    kept: &[&Field<S>],
    mut fields: impl Iterator<Item = &'static Field<S>>,
) -> Result<(), Failure> {
    let is_kept = |field: &Field<S>| kept.iter().any(|kept| kept.name == field.name);
    let Some(field) = fields.find(|field| !is_kept(field)) else {
        return Ok(());
    };
    let known = kept.iter().map(|field| field.name);
    Err(NotKept {
        name: field.name,
        known: paragraphs::wrap(" ".into(), known, 2, 78),
    }
    .into())
}
