//! How tests wait: for an event, within one time limit that only a defect exceeds.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// The limit of every wait. A virtual CPU may stand still for many seconds; this is far longer.
pub const GUARD: Duration = Duration::from_secs(120);

/// Repeats `done` until it is true.
///
/// # Panics
///
/// After [`GUARD`]; the message names `what` the test waited for.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// Repeats `ask` until there is an answer, and returns it.
///
/// # Panics
///
/// After [`GUARD`]; the message names `what` the test waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        // The clock is read first: if the thread stood still between the two, it tries once more.
        let late = started.elapsed() > GUARD;
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!late, "waited {} s in vain for: {what}", GUARD.as_secs());
        sleep(Duration::from_millis(2));
    }
}
