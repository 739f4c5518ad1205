//! A cgroup of the default hierarchy for the processes of one test.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// A cgroup, removed with its parents when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// Makes a cgroup at this path, below one that no other test uses. `None` if the hierarchy is not mounted, or the
    /// test may not write to it.
    pub fn new(path: &str) -> Option<Self> {
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

impl Drop for Cgroup {
    fn drop(&mut self) {
        let mut folder = Some(self.path.as_path());
        while let Some(path) = folder.filter(|path| !path.as_os_str().is_empty()) {
            // The kernel removes a process from its cgroup some time after its parent has waited for it.
            for _ in 0..100 {
                match fs::remove_dir(self.root.join(path)) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    _ => break,
                }
            }
            folder = path.parent();
        }
    }
}
