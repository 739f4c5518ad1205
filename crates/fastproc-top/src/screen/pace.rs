//! The pace of keys: pasted text that the terminal does not mark arrives faster than a person types.

use std::time::{Duration, Instant};

/// After this time without a key, a paste is over.
pub const QUIET: Duration = Duration::from_millis(150);

/// When the last key was handled, and whether it was pasted.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    is_burst: bool,
    /// Whether the next key was already waiting when the last one was taken.
    waits: bool,
}

impl Pace {
    /// Takes a key that was just read, and returns whether it belongs to a burst. It does if another one is already
    /// waiting, unread, or if it has been waiting itself. A burst lasts until there is a pause, because a terminal
    /// passes a long text in pieces.
    pub fn take(&mut self, now: Instant, has_more: bool) -> bool {
        let since = self.last.map(|last| now.saturating_duration_since(last));
        let goes_on = self.is_burst && since.is_some_and(|since| since < QUIET);
        self.is_burst = has_more || self.waits || goes_on;
        self.waits = has_more;
        self.last = Some(now);
        self.is_burst
    }

    /// The effect of the key is done and drawn. Keys typed meanwhile may have come at any time of it.
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
        // Two keys, then one that is held down and repeats sixty times a second.
        assert!([0, 60, 76, 92, 108].iter().all(|&ms| !take(ms, false)));
        // Eight bytes in two pieces; then a key that a person presses.
        assert!([300, 300, 301].iter().all(|&ms| take(ms, true)));
        assert!(take(301, false));
        assert!(take(400, true) && take(400, false));
        assert!(!take(600, false));
        // The last of two keys, however long the first takes.
        assert!(take(1000, true) && take(3000, false));
        pace.done(start + Duration::from_secs(5));
        assert!(pace.take(start + Duration::from_millis(5001), false));
    }
}
