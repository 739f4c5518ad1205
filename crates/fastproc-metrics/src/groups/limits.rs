//! Chooses the groups with their own series, and folds the others.

use super::{OTHER, group::Groups, threads::ThreadNames};

/// The value by which groups are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// None: the first groups are shown, and stay.
    #[default]
    First,
    /// CPU time since the last scrape.
    Cpu,
    /// Resident memory.
    Memory,
}

/// Limits on the number of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Groups that are shown.
    pub groups: usize,
    /// The choice of these groups.
    pub rank: Rank,
    /// Names of threads, of all groups together.
    pub thread_names: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            groups: 10_000,
            rank: Rank::First,
            thread_names: 10_000,
        }
    }
}

/// Chooses which groups are shown.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    ranked: Vec<(u64, u32)>,
}

impl Chooser {
    /// Chooses, and adds what every group did to its own sum or to that of the others. Returns the number of folded
    /// groups.
    ///
    /// No counter decreases by this: what a group did while it was not shown stays with the others.
    pub(super) fn settle(
        &mut self,
        groups: &mut Groups,
        names: &mut ThreadNames,
        limits: Limits,
        remove_empty: bool,
    ) -> u64 {
        let other = groups.find(OTHER);
        for at in 0..groups.slots() {
            let gone = |group: &super::Group| {
                // A group whose processes came and went since the last update must still be reported.
                let is_empty = group.now.procs == 0 && group.grown == super::Counts::default();
                is_empty && (remove_empty || !group.shown) && Some(at) != other
            };
            if groups.get(at).is_some_and(gone) {
                groups.remove(at);
            }
        }
        match limits.rank {
            Rank::First => Self::first(groups, limits.groups, other),
            Rank::Cpu | Rank::Memory => self.ranked(groups, limits, other),
        }
        fold(groups, names)
    }

    /// Keeps the shown groups, and adds others while there is room. Groups without processes make room.
    fn first(groups: &mut Groups, most: usize, other: Option<u32>) {
        let mut shown = groups
            .iter()
            .filter(|(at, group)| group.shown && Some(*at) != other)
            .count();
        let waiting = groups.iter().filter(|(_, group)| !group.shown).count();
        for at in 0..groups.slots() {
            if shown + waiting <= most {
                break;
            }
            if groups
                .get(at)
                .is_some_and(|group| group.shown && group.now.procs == 0 && Some(at) != other)
            {
                groups.remove(at);
                shown -= 1;
            }
        }
        for (at, group) in groups.iter_mut() {
            if !group.shown && Some(at) != other && shown < most {
                group.shown = true;
                shown += 1;
            }
        }
    }

    fn ranked(&mut self, groups: &mut Groups, limits: Limits, other: Option<u32>) {
        self.ranked.clear();
        self.ranked
            .extend(
                groups
                    .iter()
                    .filter(|(at, _)| Some(*at) != other)
                    .map(|(at, group)| {
                        let value = match limits.rank {
                            Rank::Memory => group.now.resident,
                            _ => group.grown.cpu_ns(),
                        };
                        // The greater value comes first; of equal ones, the group that came first.
                        (u64::MAX - value, at)
                    }),
            );
        if limits.groups < self.ranked.len() {
            self.ranked.select_nth_unstable(limits.groups);
            self.ranked.truncate(limits.groups);
        }
        for (_, group) in groups.iter_mut() {
            group.shown = false;
        }
        for &(_, at) in &self.ranked {
            if let Some(group) = groups.get_mut(at) {
                group.shown = true;
            }
        }
    }
}

fn fold(groups: &mut Groups, names: &mut ThreadNames) -> u64 {
    let other = groups.find(OTHER);
    let hidden = groups
        .iter()
        .filter(|(at, group)| !group.shown && Some(*at) != other)
        .count() as u64;
    let other = if hidden > 0 {
        Some(groups.intern(OTHER))
    } else {
        other
    };
    if let Some(other) = other {
        let (mut grown, mut now) = (super::Counts::default(), super::Gauges::default());
        for (at, group) in groups.iter() {
            if !group.shown && at != other {
                grown.add(&group.grown);
                now.add(&group.now);
            }
        }
        if let Some(group) = groups.get_mut(other) {
            group.grown.add(&grown);
            group.now.add(&now);
            group.shown = true;
        }
        let labels = groups.get(other).map_or("", |group| &group.labels);
        let (mut grown, mut count) = (super::Counts::default(), 0);
        for name in names.iter() {
            if groups.get(name.group).is_none_or(|group| !group.shown) {
                grown.add(&name.grown);
                count += name.count;
            }
        }
        if count > 0 {
            let at = names.other(other, labels);
            if let Some(name) = names.get_mut(at) {
                name.grown.add(&grown);
                name.count += count;
            }
        }
    }
    for (_, group) in groups.iter_mut() {
        if group.shown {
            group.total.add(&group.grown);
        }
    }
    for name in names.iter_mut() {
        if groups.get(name.group).is_some_and(|group| group.shown) {
            name.total.add(&name.grown);
        }
    }
    hidden
}
