//! The file systems of the machine.

use rustix::fs::StatFs;

use super::{
    Pattern,
    machine::Machine,
    mounted::{Mounted, list},
};
use crate::{
    exposition::{Exposition, Family, Value, escape},
    names,
};

const MOUNT: &[&str] = &["device", "mountpoint", "fstype"];

crate::metrics::families! {
    SIZE = "node_filesystem_size_bytes" Gauge MOUNT, "Size of a filesystem. --collector.filesystem, as the next.";
    FREE = "node_filesystem_free_bytes" Gauge MOUNT, "Free space.";
    AVAILABLE = "node_filesystem_avail_bytes" Gauge MOUNT, "Free space for users other than root.";
    FILES = "node_filesystem_files" Gauge MOUNT, "Inodes.";
    FILES_FREE = "node_filesystem_files_free" Gauge MOUNT, "Free inodes.";
    READONLY = "node_filesystem_readonly" Gauge MOUNT, "1 if it is mounted read-only.";
    DEVICE_ERROR = "node_filesystem_device_error" Gauge MOUNT, "1 if it could not be asked: it does not answer, another one is mounted over it, or it cannot be reached from here.";
}

/// The filesystems to leave out.
#[derive(Clone, Debug)]
pub(super) struct MountFilter {
    pub mount_points: Pattern,
    pub types: Pattern,
}

impl MountFilter {
    pub(super) const MOUNT_POINTS: &str =
        "^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)";
    pub(super) const TYPES: &str = "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs)$";
}

/// The labels of a filesystem, and its values in the order of the families; only the last two if it does not answer.
type Filesystem = (String, [Option<u64>; 7]);

/// The filesystems that were read.
#[derive(Debug)]
pub(super) struct Filesystems {
    filter: MountFilter,
    mounted: Mounted,
    found: Vec<Filesystem>,
}

impl Filesystems {
    /// No filesystem is read yet.
    pub(super) fn new(filter: MountFilter, machine: Machine) -> Self {
        Self {
            filter,
            mounted: Mounted::new(machine),
            found: Vec::new(),
        }
    }

    /// Reads all filesystems. One that does not answer has no figures.
    pub(super) fn collect(&mut self) {
        self.read(&list());
    }

    fn read(&mut self, mountinfo: &[u8]) {
        let filter = &self.filter;
        self.mounted.forget();
        let found = self.mounted.ask(mountinfo, |mount, point| {
            let [source, shown, kind] = [&mount.source, point, &mount.kind].map(names::text);
            if filter.mount_points.is_match(&shown) || filter.types.is_match(&kind) {
                return None;
            }
            let labels = format!(
                "device=\"{}\",mountpoint=\"{}\",fstype=\"{}\"",
                escape(&source),
                escape(&shown),
                escape(&kind)
            );
            Some((labels, u64::from(mount.is_read_only)))
        });
        let found = found.into_iter().map(|(labels, read_only, stat)| {
            let mut values = [None, None, None, None, None, Some(read_only), Some(1)];
            if let Some(stat) = stat {
                values[..5].copy_from_slice(&figures(&stat));
                values[6] = Some(0);
            }
            (labels, values)
        });
        self.found = found.collect();
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        for (at, family) in ALL.iter().enumerate() {
            let known = self
                .found
                .iter()
                .filter_map(|(labels, values)| Some((labels, Value::Whole(values[at]?))));
            text.all(family, known);
        }
    }
}

fn figures(stat: &StatFs) -> [Option<u64>; 5] {
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_bsize as u64);
    let [size, free, available] = [stat.f_blocks, stat.f_bfree, stat.f_bavail].map(bytes);
    [size, free, available, stat.f_files, stat.f_ffree].map(Some)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fastproc::mounts;
    use rustix::fs::{major, minor};

    use super::*;

    fn filesystems(mountinfo: &[u8], folder: Option<&str>) -> Vec<Filesystem> {
        let pattern = |pattern| Pattern::new(pattern).expect("a pattern");
        let filter = MountFilter {
            mount_points: pattern(MountFilter::MOUNT_POINTS),
            types: pattern(MountFilter::TYPES),
        };
        let mut machine = Machine::find(None).expect("there is a root");
        machine.folder = folder.map(Into::into);
        let mut filesystems = Filesystems::new(filter, machine);
        filesystems.read(mountinfo);
        filesystems.found
    }

    #[test]
    fn a_mount_that_is_not_utf_8_hides_no_other_and_escapes_are_undone() {
        let found = filesystems(
            b"1 0 0:1 / /tmp/u\xff rw - fuse.x fuse rw\n\
              2 0 0:2 / /tmp/u\xfe ro - fuse.x fuse rw\n\
              3 0 0:3 / /mnt/a\\040b rw - cifs //srv/My\\040Share rw\n",
            None,
        );
        let labels: Vec<_> = found.iter().map(|(labels, _)| &**labels).collect();
        let expected = [
            r#"device="fuse",mountpoint="/tmp/u\\xff",fstype="fuse.x""#,
            r#"device="fuse",mountpoint="/tmp/u\\xfe",fstype="fuse.x""#,
            r#"device="//srv/My Share",mountpoint="/mnt/a b",fstype="cifs""#,
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn space_that_only_root_may_use_is_not_available() {
        let mut stat = rustix::fs::statfs("/").expect("there is a root");
        (stat.f_bsize, stat.f_files, stat.f_ffree) = (512, 5, 4);
        (stat.f_blocks, stat.f_bfree, stat.f_bavail) = (3, 2, 1);
        assert_eq!(figures(&stat), [1536, 1024, 512, 5, 4].map(Some));
    }

    #[test]
    fn a_place_with_another_file_system_has_no_figures() {
        let list = fs::read("/proc/self/mountinfo").expect("/proc is mounted");
        let root = mounts::parse(&list).filter(|mount| &*mount.point == b"/");
        let root = root.last().expect("there is a root");
        let device = format!("{}:{}", major(root.device), minor(root.device));
        // The mount that is there, and one of the same device that another one covers.
        for (id, expected) in [(root.id, 7), (u32::MAX, 2)] {
            // What is mounted last at a place covers the others.
            let list =
                format!("7 0 0:99 / / rw - ext4 disk rw\n{id} 0 {device} / / ro - ext4 disk rw\n");
            let found = filesystems(list.as_bytes(), None);
            let [(_, values)] = &found[..] else {
                panic!("{found:?}")
            };
            assert_eq!(values.iter().flatten().count(), expected, "{found:?}");
            assert_eq!(values[5..], [Some(1), Some(u64::from(expected == 2))]);
        }
    }

    #[test]
    fn the_folder_of_the_machine_is_no_part_of_its_paths() {
        let list = b"1 0 0:1 / / rw - x container rw\n\
            2 1 0:2 / /host rw - x a rw\n\
            3 2 0:3 / /host/home rw - x b rw\n\
            4 1 0:4 / /hostile rw - x c rw\n";
        let points = |folder| {
            let found = filesystems(list, folder).into_iter();
            let points = found.filter_map(|(labels, _)| Some(labels.split('"').nth(3)?.to_owned()));
            points.collect::<Vec<_>>()
        };
        assert_eq!(points(Some("/host")), ["/", "/home"]);
        assert_eq!(
            points(Some("/other")),
            ["/", "/host", "/host/home", "/hostile"]
        );
        assert_eq!(points(None), points(Some("/other")));
    }
}
