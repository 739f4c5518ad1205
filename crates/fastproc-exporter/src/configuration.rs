//! What a reload reads anew: the rules of groups, and the web configuration with its users, keys and certificates.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{naming::Rules, web::WebConfig};

/// Why a configuration cannot be used.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the files of the configuration say now.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// How processes are grouped; `None` without a file that says so.
    pub rules: Option<Rules>,
    /// How clients are served.
    pub web: WebConfig,
}

/// Reads the files.
pub type Read = Arc<dyn Fn() -> Result<Configuration, Failure> + Send + Sync>;

/// How a running server reads its configuration again: by SIGHUP, and by a request where that is allowed.
pub struct Reload {
    /// Reads the files. Nothing is changed if that fails.
    pub read: Read,
    /// Hears how it went, in one line.
    pub log: fn(&str),
    /// Whether POST and PUT of `/-/reload` do the same.
    pub by_request: bool,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload")
            .field("by_request", &self.by_request)
            .finish_non_exhaustive()
    }
}

/// How the configuration was read the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// Whether it could be used.
    pub successful: bool,
    /// When it was read that is used, in nanoseconds since 1970.
    pub success_unix_ns: u64,
}

impl Reloaded {
    /// It has been read now, and is used.
    pub fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            successful: true,
            success_unix_ns: now.map_or(0, |now| now.as_nanos() as u64),
        }
    }

    /// It could not be used this time.
    #[must_use]
    pub fn failed(self) -> Self {
        Self {
            successful: false,
            ..self
        }
    }
}

pub use fastproc::error_chain as chain;
