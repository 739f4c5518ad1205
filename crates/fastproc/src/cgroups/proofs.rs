//! Which lines of memory.stat the kernel's text has proven.

use super::{
    record::STAT_SLOTS,
    stat::{Lines, StatLine},
};

/// What is known of a line's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    /// It has been zero everywhere.
    #[default]
    None,
    /// It was equal to the text, and not zero.
    Proven,
    /// It was outside the two texts around it so many times.
    Outside(u8),
}

/// Which lines are proven by the text.
#[derive(Clone, Debug)]
pub(super) struct Proofs(Vec<Proof>);

/// A value that moved between a text and the next may lie outside both; not so often.
const MAX_OUTSIDE: u8 = 3;

impl Proofs {
    pub(super) fn new(lines: &Lines) -> Self {
        Self(vec![Proof::None; lines.names().count()])
    }

    /// Whether a line of this record is still to be compared: it is not zero.
    pub(super) fn wants(&self, lines: &Lines, slots: &[u64; STAT_SLOTS]) -> bool {
        self.0.iter().enumerate().any(|(at, proof)| {
            *proof != Proof::Proven
                && lines
                    .value(slots, false, StatLine(at as u16))
                    .is_some_and(|value| value != 0)
        })
    }

    /// Compares a record with the texts before and after it.
    pub(super) fn compare(
        &mut self,
        lines: &Lines,
        slots: &[u64; STAT_SLOTS],
        before: &[u64; STAT_SLOTS],
        after: &[u64; STAT_SLOTS],
    ) {
        for (at, proof) in self.0.iter_mut().enumerate() {
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
    }

    /// Whether a line is another than its value.
    pub(super) fn refute(&self) -> bool {
        self.0
            .iter()
            .any(|proof| matches!(proof, Proof::Outside(MAX_OUTSIDE..)))
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
        assert!(proofs.wants(&lines, &slots) && !proofs.wants(&lines, &text));
        text[15] = 6;
        let mut later = text;
        later[15] = 8;
        for _ in 0..9 {
            proofs.compare(&lines, &slots, &text, &later);
        }
        assert!(proofs.wants(&lines, &slots) && !proofs.refute());
        for times in 1..=3 {
            proofs.compare(&lines, &slots, &text, &text);
            assert_eq!(proofs.refute(), times == 3);
        }
        let mut proofs = Proofs::new(&lines);
        text[15] = 7;
        proofs.compare(&lines, &slots, &text, &text);
        assert!(!proofs.wants(&lines, &slots));
    }
}
