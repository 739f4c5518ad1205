//! Lines of memory.stat that comparisons with the kernel's text have proven.

use std::time::{Duration, Instant};

use super::{
    record::STAT_SLOTS,
    stat::{Lines, StatLine, Stored},
};

/// Whether a line's value is proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    /// It was always zero.
    #[default]
    None,
    /// It was equal to the text, and not zero.
    Proven,
    /// It was outside the two texts around it this many times.
    Outside(u8),
}

/// The proofs of all lines.
#[derive(Clone, Debug)]
pub(super) struct Proofs {
    lines: Vec<Proof>,
    /// The stored values of lines that are not proven.
    unproven: Vec<Stored>,
    /// All bits of these: the greater part of the cgroups has zeros there.
    mask: Box<[u64; STAT_SLOTS]>,
    /// When a line was refuted last, unless its proof was found since.
    refuted: Option<Instant>,
}

/// A value that moved between two texts may be outside both, but not this often.
const MAX_OUTSIDE: u8 = 3;

/// When lines are compared again after one was refuted. By chance, or because a user wants it, a value can move such that it
/// looks wrong, so that is not believed for good.
const AGAIN: Duration = Duration::from_secs(60);

impl Proofs {
    pub(super) fn new(lines: &Lines) -> Self {
        let mut proofs = Self {
            lines: vec![Proof::None; lines.names().count()],
            unproven: Vec::new(),
            mask: Box::new([0; STAT_SLOTS]),
            refuted: None,
        };
        proofs.list_unproven(lines);
        proofs
    }

    fn list_unproven(&mut self, lines: &Lines) {
        self.unproven.clear();
        let all = self.lines.iter().enumerate();
        for (at, _) in all.filter(|(_, proof)| **proof != Proof::Proven) {
            self.unproven.extend(lines.stored(StatLine(at as u16)));
        }
        self.mask.fill(0);
        for stored in &self.unproven {
            stored.mark(&mut self.mask);
        }
    }

    /// Whether a line of this record must still be compared: it is not zero.
    pub(super) fn wants(&self, slots: &[u64; STAT_SLOTS]) -> bool {
        let pairs = slots.iter().zip(&*self.mask);
        let any = pairs.fold(0, |any, (slot, mask)| any | slot & mask);
        any != 0 && self.unproven.iter().any(|stored| stored.raw(slots) != 0)
    }

    /// Compares a record with the texts before and after it.
    pub(super) fn compare(
        &mut self,
        lines: &Lines,
        slots: &[u64; STAT_SLOTS],
        before: &[u64; STAT_SLOTS],
        after: &[u64; STAT_SLOTS],
    ) {
        for (at, proof) in self.lines.iter_mut().enumerate() {
            let Some(value) = lines.value(slots, false, StatLine(at as u16)) else {
                continue;
            };
            let range = before[at].min(after[at])..=before[at].max(after[at]);
            if value == before[at] && value == after[at] {
                if value != 0 {
                    *proof = Proof::Proven;
                }
            } else if !range.contains(&value) && *proof != Proof::Proven {
                let times = if let Proof::Outside(times) = *proof {
                    times
                } else {
                    0
                };
                *proof = Proof::Outside(times.saturating_add(1));
            }
        }
        self.list_unproven(lines);
    }

    /// Checks whether a stored value is not that of its line. If so, the comparisons begin again.
    pub(super) fn refute(&mut self, now: Instant) {
        let is_wrong = |proof: &Proof| matches!(proof, Proof::Outside(MAX_OUTSIDE..));
        if self.lines.iter().any(is_wrong) {
            self.refuted = Some(now);
            for proof in &mut self.lines {
                if *proof != Proof::Proven {
                    *proof = Proof::None;
                }
            }
        }
    }

    /// Whether the values are not to be used.
    pub(super) fn are_refuted(&self) -> bool {
        self.refuted.is_some()
    }

    /// Whether nothing is compared now, because a line was refuted a short time ago.
    pub(super) fn rest(&self, now: Instant) -> bool {
        let age = |at| now.saturating_duration_since(at);
        self.refuted.is_some_and(|at| age(at) < AGAIN)
    }

    /// There is no line left to compare: each is proven, or zero everywhere.
    pub(super) fn settle(&mut self) {
        self.refuted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::stat::tests::lines;

    #[test]
    fn a_line_is_proven_by_an_equal_text_and_refuted_by_others() {
        let lines = lines(8, 6);
        let mut slots = [0; STAT_SLOTS];
        let mut text = [0; STAT_SLOTS];
        slots[13] = 7; // pgmajfault
        let mut proofs = Proofs::new(&lines);
        assert!(proofs.wants(&slots) && !proofs.wants(&text));
        text[15] = 6;
        let mut later = text;
        later[15] = 8;
        for _ in 0..9 {
            proofs.compare(&lines, &slots, &text, &later);
        }
        let now = Instant::now();
        proofs.refute(now);
        assert!(proofs.wants(&slots) && !proofs.are_refuted() && !proofs.rest(now));
        for round in 0..2_u32 {
            let now = now + round * AGAIN;
            for times in 1..=3 {
                assert_eq!((proofs.are_refuted(), proofs.rest(now)), (round > 0, false));
                proofs.compare(&lines, &slots, &text, &text);
                proofs.refute(now);
                assert_eq!(proofs.rest(now), times == 3);
            }
            assert!(proofs.are_refuted() && proofs.wants(&slots));
        }
        proofs.settle();
        assert!(!proofs.are_refuted());
        let mut proofs = Proofs::new(&lines);
        text[15] = 7;
        proofs.compare(&lines, &slots, &text, &text);
        assert!(!proofs.wants(&slots));
    }
}
