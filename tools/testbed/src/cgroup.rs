//! A cgroup of the default hierarchy for the processes of one test.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use crate::gate;

/// A cgroup, removed with its parents when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// Makes a cgroup at this path, below one that no other test uses. `None` if the hierarchy is not mounted, or the
    /// test may not write to it: the test is then skipped.
    #[track_caller]
    pub fn new(path: &str) -> Option<Self> {
        let made = Self::try_new(path);
        if made.is_none() {
            gate::skipped("the default hierarchy is not mounted here");
        }
        made
    }

    fn try_new(path: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read("/proc/self/mounts").ok()?;
        let mounts = String::from_utf8_lossy(&mounts);
        let mut fields = mounts.lines().map(|line| line.split(' '));
        let root = fields.find_map(|mut line| {
            let point = line.nth(1)?;
            (line.next() == Some("cgroup2")).then(|| PathBuf::from(point))
        })?;
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = format!("fastproc-test-{}-{next}", std::process::id());
        let path = Path::new(&own).join(path);
        fs::create_dir_all(root.join(&path)).ok()?;
        Some(Self { root, path })
    }

    /// Its path in the hierarchy.
    pub fn path(&self) -> String {
        format!("/{}", self.path.display())
    }

    /// The path of one below it, which begins with a slash.
    pub fn path_of(&self, below: &str) -> Vec<u8> {
        (self.path() + below).into_bytes()
    }

    /// Makes one below it, and returns its folder.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub fn make(&self, below: &str) -> PathBuf {
        let folder = self.folder().join(below);
        fs::create_dir_all(&folder).expect("root may make a cgroup");
        folder
    }

    /// Removes one below it, with all below that.
    pub fn remove(&self, below: &str) {
        remove(&self.folder().join(below));
    }

    /// The number by which the kernel knows it.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn id(&self) -> u64 {
        let folder = fs::metadata(self.folder());
        folder.expect("the cgroup exists").ino()
    }

    /// The CPU time of its processes.
    ///
    /// # Panics
    ///
    /// If the kernel does not tell it.
    pub fn usage_ns(&self) -> u64 {
        let text = fs::read_to_string(self.folder().join("cpu.stat"));
        let text = text.expect("each cgroup has one");
        let mut lines = text.lines();
        let usage = lines.find_map(|line| line.strip_prefix("usage_usec "));
        let usage = usage.and_then(|usage| usage.parse::<u64>().ok());
        usage.expect("a number") * 1000
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        self.root.join(&self.path)
    }

    /// A command that a shell runs in the cgroup.
    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        let script = format!(
            "echo $$ > '{}/cgroup.procs' && {script}",
            self.folder().display()
        );
        command.args(["-c", &script]);
        command
    }
}

/// Removes a cgroup and all below it.
fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // The kernel removes a process from its cgroup some time after its parent has waited for it.
    for _ in 0..500 {
        if fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Some(own) = self.path.iter().next() {
            remove(&self.root.join(own));
        }
    }
}
