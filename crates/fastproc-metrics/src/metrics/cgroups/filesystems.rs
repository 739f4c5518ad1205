//! The file systems of the machine, which the root cgroup has as in cAdvisor.

use fastproc::mounts::Mount;
use rustix::fs::{StatFs, major, minor};

use crate::{
    exposition::escape,
    metrics::node::{Machine, Mounted, mounts},
    names,
};

/// The kinds that cAdvisor counts; those of ext and nfs are known by how they begin.
const KINDS: [&str; 5] = ["btrfs", "overlay", "tmpfs", "xfs", "zfs"];
/// What is mounted for pods and containers. A node has several for each, and their values are those of the disks below, or of
/// memory that `container_memory_usage_bytes` has.
const OF_CONTAINERS: [&str; 5] = [
    "/var/lib/kubelet/",
    "/var/lib/docker/",
    "/var/lib/containers/",
    "/run/containerd/",
    "/run/containers/",
];

/// A file system, with its device as it is labelled.
#[derive(Debug)]
pub(super) struct FileSystem {
    pub label: String,
    pub stat: StatFs,
}

impl FileSystem {
    /// Its size, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.bytes(self.stat.f_blocks)
    }

    /// What is not free, in bytes.
    pub(super) fn used(&self) -> u64 {
        self.bytes(self.stat.f_blocks.saturating_sub(self.stat.f_bfree))
    }

    fn bytes(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.stat.f_frsize as u64)
    }
}

/// The file systems that were read.
#[derive(Debug)]
pub(super) struct FileSystems {
    mounted: Mounted,
    pub(super) found: Vec<FileSystem>,
}

impl FileSystems {
    pub(super) fn new(machine: Machine) -> Self {
        Self {
            mounted: Mounted::new(machine),
            found: Vec::new(),
        }
    }

    /// Asks them, as the last that does so in a scrape. One that does not answer, such as one of a server that is gone, is left
    /// out; later scrapes do not wait for it.
    pub(super) fn collect(&mut self) {
        let choose = |mount: &Mount<'_>, point: &[u8]| Some((device(mount, point)?, ()));
        let asked = self.mounted.ask(&mounts(), choose);
        let found = asked.into_iter().filter_map(|(device, (), stat)| {
            let label = format!(",device=\"{}\"", escape(&device));
            Some(FileSystem { label, stat: stat? })
        });
        self.found = found.collect();
        self.mounted.forget();
    }
}

/// The device of a mount, as cAdvisor names it. `None`: it does not count.
fn device(mount: &Mount<'_>, point: &[u8]) -> Option<String> {
    let kind = names::text(&mount.kind);
    let counts =
        ["ext", "nfs"].iter().any(|start| kind.starts_with(start)) || KINDS.contains(&&*kind);
    let is_of_container = OF_CONTAINERS
        .iter()
        .any(|folder| point.starts_with(folder.as_bytes()));
    if (!counts && point != b"/") || is_of_container {
        return None;
    }
    let source = names::text(&mount.source);
    Some(match &*kind {
        "tmpfs" => names::text(point).into_owned(),
        "overlay" => format!("{source}_{}-{}", major(mount.device), minor(mount.device)),
        _ => source.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use fastproc::mounts;

    use super::*;

    #[test]
    fn file_systems_count_under_the_devices_that_cadvisor_names() {
        let list = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:22 / /run rw - tmpfs tmpfs rw\n\
            3 1 0:23 / /merged rw - overlay overlay rw\n\
            4 1 0:24 / /mnt rw - nfs4 server:/x rw\n\
            5 1 0:25 / /proc rw - proc proc rw\n\
            6 1 0:26 / /var/lib/kubelet/pods/1/volumes/a rw - tmpfs tmpfs rw\n";
        let found = mounts::parse(list).filter_map(|mount| device(&mount, &mount.point));
        let found: Vec<_> = found.collect();
        assert_eq!(found, ["/dev/sda1", "/run", "overlay_0-23", "server:/x"]);
        let root = mounts::parse(b"1 0 0:2 / / rw - rootfs none rw\n").next();
        assert_eq!(
            root.and_then(|root| device(&root, b"/")).as_deref(),
            Some("none")
        );
    }
}
