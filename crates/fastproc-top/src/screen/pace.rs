//! How fast keys come: what is pasted into a terminal that does not mark it comes faster than a person types.

use std::time::{Duration, Instant};

/// After so much time without a key, what was pasted is over.
pub const QUIET: Duration = Duration::from_millis(150);

/// When the last key was dealt with, and whether it was pasted.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    is_burst: bool,
    /// Whether the next key waited already when the last one was taken.
    waits: bool,
}

impl Pace {
    /// Takes a key that was read now, and says whether it belongs to a burst. It does if another one waits behind it
    /// already, unread, when the program comes to it, or if it has waited so itself; and a burst lasts until there is quiet,
    /// as a terminal hands out a long text in pieces.
    pub fn take(&mut self, now: Instant, has_more: bool) -> bool {
        let since = self.last.map(|last| now.saturating_duration_since(last));
        let goes_on = self.is_burst && since.is_some_and(|since| since < QUIET);
        self.is_burst = has_more || self.waits || goes_on;
        self.waits = has_more;
        self.last = Some(now);
        self.is_burst
    }

    /// What the key did is done, and drawn: what was typed meanwhile may have come at any time of it.
    pub fn done(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_person_are_no_burst_and_pasted_text_is_to_its_end() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let mut take = |ms, has_more| pace.take(start + Duration::from_millis(ms), has_more);
        // Two keys, and one that is held down and repeats sixty times a second.
        assert!([0, 60, 76, 92, 108].iter().all(|&ms| !take(ms, false)));
        // Eight bytes in two pieces; then a key of a person.
        assert!([300, 300, 301].iter().all(|&ms| take(ms, true)));
        assert!(take(301, false));
        assert!(take(400, true) && take(400, false));
        assert!(!take(600, false));
        // The last of two, however long the first takes.
        assert!(take(1000, true) && take(3000, false));
        pace.done(start + Duration::from_secs(5));
        assert!(pace.take(start + Duration::from_millis(5001), false));
    }
}
