//! How tests wait: for an event, within one guard that only a defect reaches.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// The guard of every wait. A virtual CPU may stand still for many seconds; this is far beyond that.
pub const GUARD: Duration = Duration::from_secs(120);

/// Asks until the answer is yes.
///
/// # Panics
///
/// After [`GUARD`]; the message names `what` the test waited for.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// Asks until there is an answer, and returns it.
///
/// # Panics
///
/// After [`GUARD`]; the message names `what` the test waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        // The clock is read first: whoever stood still between the two is asked once more.
        let late = started.elapsed() > GUARD;
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!late, "waited {} s in vain for: {what}", GUARD.as_secs());
        sleep(Duration::from_millis(2));
    }
}
