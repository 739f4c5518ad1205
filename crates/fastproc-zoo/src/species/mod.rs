//! The animals, by what is odd about them.

mod creds;
mod exec;
mod family;
mod limits;
mod memory;
mod names;
mod namespaces;
mod sched;
mod session;
mod signals;
mod states;

use rustix::{
    fd::OwnedFd,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

use crate::{expect::Expect, nest::Raise};

pub use exec::executed;

/// Animals that are set up together.
pub struct Species {
    /// Label and promises of each.
    pub animals: &'static [(&'static str, &'static [Expect])],
    /// Sets all of them up.
    pub raise: Raise,
}

/// One animal of its own.
macro_rules! single {
    ($label:literal, [$($expect:expr),* $(,)?], $raise:expr) => {
        $crate::species::Species {
            animals: &[($label, &[$($expect),*])],
            raise: { const RAISE: $crate::nest::Raise = $raise; RAISE },
        }
    };
}
use single;

const ALL: &[&[Species]] = &[
    states::SPECIES,
    family::SPECIES,
    names::SPECIES,
    exec::SPECIES,
    namespaces::SPECIES,
    creds::SPECIES,
    signals::SPECIES,
    sched::SPECIES,
    memory::SPECIES,
    session::SPECIES,
    limits::SPECIES,
];

/// Everything there is.
pub fn all() -> impl Iterator<Item = &'static Species> {
    ALL.iter().copied().flatten()
}

/// The animals of all species, in the order of their index.
pub fn animals() -> impl Iterator<Item = (&'static str, &'static [Expect])> {
    all().flat_map(|species| species.animals.iter().copied())
}

/// A new file system that is mounted nowhere, for guests that mount few. Needs root.
fn unattached(kind: &str) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_and_plain() {
        let mut labels: Vec<_> = animals().map(|animal| animal.0).collect();
        assert!(labels.iter().all(|label| {
            label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        }));
        labels.sort_unstable();
        let count = labels.len();
        labels.dedup();
        assert_eq!(labels.len(), count);
    }

    #[test]
    fn every_animal_promises_something() {
        assert!(animals().all(|(_, expect)| !expect.is_empty()));
    }
}
