//! A folder for a test, which every user may read.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use crate::serve::FASTPROC;

/// Removed with the test.
pub struct Folder(fastproc_testbed::Folder);

impl Folder {
    #[track_caller]
    pub fn new() -> Self {
        Self(fastproc_testbed::Folder::new("serve"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_str().expect("temporary paths are UTF-8").into()
    }

    /// A link to a program under another name, which becomes the name of the process.
    pub fn alias(&self, of: &str, name: &str) -> PathBuf {
        let path = self.0.join(name);
        if !path.exists() {
            symlink(of, &path).expect("the link is made");
        }
        path
    }

    /// A copy of fastproc, beside the program that it starts.
    pub fn programs(&self) -> PathBuf {
        let exporter = Path::new(FASTPROC).with_file_name("fastproc-exporter");
        let exporter = exporter.to_str().expect("UTF-8");
        self.copy(exporter, "fastproc-exporter");
        self.copy(FASTPROC, "fastproc")
    }

    /// A copy of a program that every user may execute. Another process makes it: a concurrently forked child would
    /// inherit the descriptor for writing, and the program would be busy.
    pub fn copy(&self, of: &str, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let status = Command::new("install")
            .args(["-m", "755", of])
            .arg(&path)
            .status();
        assert!(status.expect("install is everywhere").success());
        path
    }
}
