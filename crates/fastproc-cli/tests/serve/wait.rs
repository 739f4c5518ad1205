//! Waiting for what must come, however loaded the machine is.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// Far beyond need: only a defect reaches it.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Asks again until there is an answer. `what` is named if none comes.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let limit = Instant::now() + TIMEOUT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < limit, "waited in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}
