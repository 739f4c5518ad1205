//! Looks back: what a folder says of a machine at a time, and of what its processes did between two times.
//!
//! A [`History`] reads only the row groups and columns that an answer needs. A file or row group that is damaged is left out
//! and named ([`History::damaged`]); where an answer would be wrong without it, there is none ([`Error::Damaged`]). What was
//! not recorded is no answer either: a time in a gap is [`Error::Gap`].

mod cgroups;
mod error;
mod history;
mod kept;
mod latest;
mod life;
mod moment;
mod record;
mod save;
mod spans;
mod texts;
mod walk;
mod window;

#[cfg(test)]
mod tests;

pub use self::{
    cgroups::Cgroups,
    error::{Error, shown},
    history::{Damage, History},
    kept::{LACKED, Of, kept, kept_of_cgroups},
    moment::Moment,
    record::groups,
    spans::{Size, Span},
    texts::{Line, Texts},
    walk::Walk,
    window::{Exited, Lacks, Window},
};
