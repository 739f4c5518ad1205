//! Cgroups for measurements, all removed afterwards.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::idle::Idle;

/// Cgroups of this program, removed when this is dropped.
pub struct Tree {
    folders: Vec<PathBuf>,
    /// The cgroups for processes.
    pub leaves: Vec<PathBuf>,
}

impl Tree {
    /// Creates one cgroup, at the top of the hierarchy that is mounted there.
    pub fn new(mount: &Path) -> io::Result<Self> {
        let top = mount.join(format!("fastproc-bench-{}", std::process::id()));
        let mut tree = Self {
            folders: Vec::new(),
            leaves: Vec::new(),
        };
        tree.add(top)?;
        Ok(tree)
    }

    /// The topmost cgroup.
    pub fn top(&self) -> &Path {
        &self.folders[0]
    }

    /// Adds a cgroup for other cgroups.
    pub fn add(&mut self, folder: PathBuf) -> io::Result<()> {
        fs::create_dir(&folder).map_err(|error| {
            let text = format!(
                "cannot make {}: {error}; run this as root",
                folder.display()
            );
            io::Error::new(error.kind(), text)
        })?;
        self.folders.push(folder);
        Ok(())
    }

    /// Adds a cgroup for processes.
    pub fn add_leaf(&mut self, leaf: PathBuf) -> io::Result<()> {
        self.add(leaf.clone())?;
        self.leaves.push(leaf);
        Ok(())
    }

    /// Distributes the processes among the cgroups.
    pub fn settle(&self, idle: &Idle) -> io::Result<()> {
        for (pid, leaf) in idle.pids().zip(self.leaves.iter().cycle()) {
            fs::write(leaf.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for folder in self.folders.iter().rev() {
            // The kernel removes a process from its cgroup some time after its parent has waited for it.
            for _ in 0..100 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                        thread::sleep(Duration::from_millis(10));
                    }
                    _ => break,
                }
            }
        }
    }
}
