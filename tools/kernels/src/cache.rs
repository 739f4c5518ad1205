//! The folder that everything fetched and built is kept in. All of it can be deleted at any time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The folder, made and made absolute.
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Makes the folder where it is missing.
    pub fn at(root: &Path) -> Result<Self> {
        fs::create_dir_all(root)
            .with_context(|| format!("cannot make the cache {}", root.display()))?;
        let root = root
            .canonicalize()
            .with_context(|| format!("cannot resolve {}", root.display()))?;
        Ok(Self { root })
    }

    /// A folder of the cache, made where it is missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}
