//! Folders for the files of one test.

use std::{
    env, fs,
    ops::Deref,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

/// A new folder, removed with its contents when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder that every user may enter and read, and only this one may write.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        Self::with_mode(name, 0o755)
    }

    /// A folder with these permissions.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    #[track_caller]
    pub fn with_mode(name: &str, mode: u32) -> Self {
        Self::within(&env::temp_dir(), name, mode)
    }

    /// A folder like that of [`new`](Self::new) for thousands of small files, in memory if that is possible.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    #[must_use]
    #[track_caller]
    pub fn in_memory(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        if rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok() {
            Self::within(memory, name, 0o755)
        } else {
            Self::new(name)
        }
    }

    #[track_caller]
    fn within(parent: &Path, name: &str, mode: u32) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos());
        loop {
            // Pids are reused, and a killed test leaves its folder behind: the clock distinguishes them.
            let next = NEXT.fetch_add(1, Relaxed);
            let name = format!("fastproc-{name}-{}-{now:x}-{next}", std::process::id());
            let path = parent.join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // mkdir(2) applies the umask.
                    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                    fs::set_permissions(&path, mode).expect("the folder is ours");
                    return Self(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_folder_is_new_and_goes_with_its_owner() {
        let [one, two] = [Folder::with_mode("test", 0o1777), Folder::new("test")];
        assert_ne!(*one, *two);
        let mode = one.metadata().expect("it exists").permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        std::fs::write(one.join("file"), "x").expect("the folder is writable");
        let path = one.to_path_buf();
        drop(one);
        assert!(!path.exists());
    }
}
