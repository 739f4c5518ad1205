//! Where the machine's own file systems, network and name can be seen: this process may have its own, as in a container
//! or under a unit of systemd.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use fastproc::{frozen, proc_root};
use rustix::fs::{Mode, OFlags, open};

use super::mounted::Asked;
use crate::sys_root;

/// What the first process has.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The root of its file system, or where that is mounted here.
    pub(super) root: Arc<OwnedFd>,
    /// Where that is mounted here. `None`: it is the root that the first process has.
    pub(super) folder: Option<PathBuf>,
    /// Whether this process has its network, and its name. What cannot be compared is another one if a folder is named in
    /// which the processes of the machine are; otherwise those of this process are meant.
    pub(super) has_network: bool,
    pub(super) has_name: bool,
    /// What its file systems answer, for all that ask.
    pub(super) asked: Arc<Mutex<Asked>>,
}

impl Machine {
    /// Looks at the first process, which requires permission to trace it unless it has this root as well. Without it, the
    /// root is that of this process.
    ///
    /// # Errors
    /// `root`, a folder where the root of the machine is mounted, cannot be opened.
    pub fn find(root: Option<&Path>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: &Path| open(path, flags, Mode::empty());
        // node_exporter's default.
        let named = root.filter(|root| *root != Path::new("/"));
        let (root, folder) = match (named, open(&proc_root::path("/proc/1/root"))) {
            (Some(named), _) => (open(named)?, Some(std::path::absolute(named)?)),
            (None, Ok(root)) => (root, None),
            (None, Err(_)) => (open(Path::new("/"))?, Some("/".into())),
        };
        let has = |namespace| {
            let of = |process| {
                let link = format!("/proc/{process}/ns/{namespace}");
                let link = match process {
                    "1" => fs::metadata(proc_root::path(&link)),
                    _ => fs::metadata(frozen::own_path(&link)),
                };
                link.map(|link| link.ino()).ok()
            };
            of("1").map_or(!proc_root::is_elsewhere(), |first| {
                of("self") == Some(first)
            })
        };
        Ok(Self {
            root: Arc::new(root),
            folder,
            has_network: has("net"),
            has_name: has("uts"),
            asked: Arc::default(),
        })
    }

    /// The folder of its network devices. `None`: it cannot be reached.
    pub(super) fn devices(&self) -> Option<PathBuf> {
        const FOLDER: &str = "sys/class/net";
        if self.has_network || sys_root::is_elsewhere() {
            return Some(sys_root::path("/sys/class/net").into_owned());
        }
        // A mounted sysfs has the devices of the network in which it was mounted.
        let is_own = self.folder.as_deref() == Some(Path::new("/"));
        (!is_own).then(|| format!("/proc/self/fd/{}/{FOLDER}", self.root.as_raw_fd()).into())
    }
}
