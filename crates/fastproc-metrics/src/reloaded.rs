//! How the configuration was read the last time.

use std::time::UNIX_EPOCH;

use fastproc::frozen;

/// How the configuration was read the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Whether it could be used.
    pub successful: bool,
    /// When the configuration in use was read, in nanoseconds since 1970.
    pub success_unix_ns: u64,
}

impl Reloaded {
    /// The configuration was read just now, and is used.
    pub fn now() -> Self {
        let now = frozen::system_time().duration_since(UNIX_EPOCH);
        Self {
            successful: true,
            success_unix_ns: now.map_or(0, |now| now.as_nanos() as u64),
        }
    }

    /// The configuration could not be used this time.
    #[must_use]
    pub fn failed(self) -> Self {
        Self {
            successful: false,
            ..self
        }
    }
}
