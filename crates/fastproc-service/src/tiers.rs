//! Collectors: one for each of a few sets of fields, since the cost of a walk depends on what it collects.

use std::time::{Duration, Instant};

use fastproc::{Collector, Error, Fields, Refusal, Snapshot, SourceKind};

use crate::changes::Changes;

/// What `pgrep` and `top` show by default: also the user of a process, and its priority.
const USERS: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

/// What procps's `ps` requests, whatever it shows, if its user sees everything.
const PS: Fields = USERS.union(Fields::SIGNALS);

/// What monitors request, and what decides about visibility; without rarely requested groups: addresses, signals,
/// limits, numbers in nested namespaces.
const MONITOR: Fields = USERS
    .union(Fields::CREDENTIALS)
    .union(Fields::SCHEDULING_DETAILS)
    .union(Fields::MEMORY_DETAILS)
    .union(Fields::IO)
    .union(Fields::CGROUP);

/// The number of sets.
pub(crate) const COUNT: usize = 6;

/// The sets, the cheapest first.
const TIERS: [Fields; COUNT] = [
    Fields::TOP,
    USERS,
    PS,
    MONITOR,
    Fields::all().difference(Fields::THREADS),
    Fields::all(),
];

/// A collector. If it could not be opened, the next request tries again.
#[derive(Debug)]
pub(crate) struct Tier {
    fields: Fields,
    collector: Option<Collector>,
    changes: Changes,
    /// When the last walk began, and its generation.
    walked: Option<(Instant, u64)>,
    /// The number of the last exit before the walk ended.
    exits: u64,
}

/// All collectors.
#[derive(Debug)]
pub(crate) struct Tiers {
    source: Option<SourceKind>,
    all: Vec<Tier>,
    pub(crate) walks: u64,
    generation: u64,
}

impl Tiers {
    /// Opens all collectors, so that failures are known at once and no request waits later. Generations begin at
    /// `first`.
    pub(crate) fn open(source: Option<SourceKind>, first: u64) -> Result<Self, Error> {
        let tiers = TIERS.map(|fields| Tier {
            fields,
            collector: None,
            changes: Changes::default(),
            walked: None,
            exits: 0,
        });
        let mut tiers = Self {
            source,
            all: tiers.into(),
            walks: 0,
            generation: first,
        };
        for at in 0..TIERS.len() {
            tiers.collector(at)?;
        }
        Ok(tiers)
    }

    /// The source of the first collector.
    pub(crate) fn source(&self) -> SourceKind {
        let first = self.all.first().and_then(|tier| tier.collector.as_ref());
        first.map_or(SourceKind::Procfs, Collector::source)
    }

    pub(crate) fn refused(&self) -> &[Refusal] {
        let first = self.all.first().and_then(|tier| tier.collector.as_ref());
        first.map_or(&[], Collector::refused)
    }

    /// The cheapest tier that has these fields.
    pub(crate) fn find(&self, fields: Fields) -> Option<usize> {
        self.all
            .iter()
            .position(|tier| tier.fields.contains(fields))
    }

    /// The collector of a tier.
    pub(crate) fn collector(&mut self, at: usize) -> Result<&mut Collector, Error> {
        let tier = &mut self.all[at];
        Ok(match &mut tier.collector {
            Some(collector) => collector,
            none => {
                let builder = Collector::builder()
                    .fields(tier.fields)
                    .source(self.source)
                    .service_socket(None);
                none.insert(builder.open()?)
            }
        })
    }

    /// The generation of the last walk of this tier, if it began at `since` or later. With `None` any walk will do.
    pub(crate) fn walked_since(&self, at: usize, since: Option<Instant>) -> Option<u64> {
        let (walked, generation) = self.all[at].walked?;
        since
            .is_none_or(|since| walked >= since)
            .then_some(generation)
    }

    /// Walks. Returns the generation.
    pub(crate) fn walk(&mut self, at: usize) -> Result<u64, Error> {
        self.all[at].walked = None;
        let began = Instant::now();
        self.collector(at)?.snapshot()?;
        self.walks += 1;
        self.generation += 1;
        let tier = &mut self.all[at];
        if let Some(snapshot) = tier.collector.as_ref().and_then(Collector::latest) {
            tier.changes.update(&snapshot, self.generation);
        }
        tier.walked = Some((began, self.generation));
        Ok(self.generation)
    }

    /// The snapshot of the last walk, and which records changed when.
    pub(crate) fn latest(&self, at: usize) -> Option<(Snapshot<'_>, &Changes)> {
        let tier = &self.all[at];
        Some((tier.collector.as_ref()?.latest()?, &tier.changes))
    }

    /// The number of the last exit before the last walk ended; 0 if exits were not recorded.
    pub(crate) fn exits(&self, at: usize) -> u64 {
        self.all[at].exits
    }

    pub(crate) fn set_exits(&mut self, at: usize, last: u64) {
        self.all[at].exits = last;
    }

    /// How old the last walk of each tier is.
    pub(crate) fn ages(&self) -> impl Iterator<Item = (Fields, Option<Duration>)> + '_ {
        self.all
            .iter()
            .filter(|tier| tier.collector.is_some())
            .map(|tier| (tier.fields, tier.walked.map(|(at, _)| at.elapsed())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_handed_out_until_it_is_as_old_as_its_reader_allows() {
        const AGE: Duration = Duration::from_secs(15);
        let began = Instant::now().checked_sub(AGE);
        let tiers = Tiers {
            source: None,
            all: vec![Tier {
                fields: Fields::TOP,
                collector: None,
                changes: Changes::default(),
                walked: began.map(|began| (began, 7)),
                exits: 0,
            }],
            walks: 0,
            generation: 7,
        };
        let walked = |most| tiers.walked_since(0, Instant::now().checked_sub(most));
        for most in [Duration::ZERO, AGE / 2, AGE * 2 / 3] {
            assert_eq!(walked(most), None, "{most:?}");
        }
        assert_eq!(walked(Duration::from_secs(3600)), Some(7));
    }
}
