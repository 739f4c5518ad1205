//! The part of the configuration that a reload reads again: the rules of groups, and the web configuration with its
//! users, keys and certificates.

use std::sync::Arc;

use fastproc_metrics::naming::Item;

use super::WebConfig;

/// Why a configuration cannot be used.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The contents of the configuration files.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// How processes are grouped; `None` without a file for that.
    pub rules: Option<Vec<Item>>,
    /// How clients are served.
    pub web: WebConfig,
}

/// Reads the files.
pub type Read = Arc<dyn Fn() -> Result<Configuration, Failure> + Send + Sync>;

/// How a running server reloads its configuration: by SIGHUP, and by a request if that is allowed.
pub struct Reload {
    /// Reads the files. If that fails, nothing is changed.
    pub read: Read,
    /// Logs the outcome in one line.
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
