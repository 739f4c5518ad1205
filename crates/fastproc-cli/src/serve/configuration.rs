//! The files of the configuration, which are read at the start and at each reload.

use std::path::{Path, PathBuf};

use fastproc_exporter::{
    configuration::Configuration, document::ConfigError, naming, web::WebConfig,
};

use super::say;
use crate::Failure;

/// Where they are.
pub struct Files {
    /// How processes are grouped.
    pub groups: Option<PathBuf>,
    /// How clients are served.
    pub web: Option<PathBuf>,
}

impl Files {
    pub fn is_empty(&self) -> bool {
        self.groups.is_none() && self.web.is_none()
    }

    /// Reads them, and says which lines are not used.
    pub fn read(&self) -> Result<Configuration, ConfigError> {
        let mut rules = None;
        if let Some(path) = &self.groups {
            let file = naming::read(path)?;
            warn(path, &file.warnings);
            rules = Some(file.rules);
        }
        let mut web = WebConfig::default();
        if let Some(path) = &self.web {
            web = WebConfig::read(path)?;
            warn(path, &web.warnings);
        }
        Ok(Configuration { rules, web })
    }

    /// The same at a reload. A file that is just being written may be empty, and what no group needs is not read.
    pub fn read_again(&self, had_groups: bool) -> Result<Configuration, Failure> {
        let read = self.read()?;
        if let (Some(path), Some(rules)) = (&self.groups, &read.rules)
            && rules.is_empty() == had_groups
        {
            let (path, some) = (path.display(), if had_groups { "no" } else { "a" });
            return Err(format!(
                "{path}: from now on {some} process would be in a group, which takes a restart"
            )
            .into());
        }
        Ok(read)
    }
}

fn warn(path: &Path, warnings: &[String]) {
    for warning in warnings {
        say(&format!("{}: {warning}", path.display()));
    }
}
