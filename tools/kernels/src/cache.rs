//! The folder for everything that is fetched and built. All of it can be deleted at any time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The folder, with an absolute path.
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Makes the folder if it is missing.
    pub fn at(root: &Path) -> Result<Self> {
        fs::create_dir_all(root)
            .with_context(|| format!("cannot make the cache {}", root.display()))?;
        let root = root
            .canonicalize()
            .with_context(|| format!("cannot resolve {}", root.display()))?;
        Ok(Self { root })
    }

    /// A folder of the cache, made if it is missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}
