//! Disks and filesystems.

use std::fs;

use fastproc::proc_root;
use regex::Regex;

use super::text::TextFile;
use crate::exposition::{Exposition, Family, Value, escape};

const DEVICE: &[&str] = &["device"];
const MOUNT: &[&str] = &["device", "mountpoint", "fstype"];

crate::metrics::families! {
    READS = "node_disk_reads_completed_total" Counter DEVICE, "Reads of a disk. --collector.diskstats, as the next.";
    READS_MERGED = "node_disk_reads_merged_total" Counter DEVICE, "Reads that were merged with others.";
    READ_BYTES = "node_disk_read_bytes_total" Counter DEVICE, "Bytes read.";
    READ_TIME = "node_disk_read_time_seconds_total" Counter DEVICE, "Time of all reads.";
    WRITES = "node_disk_writes_completed_total" Counter DEVICE, "Writes of a disk.";
    WRITES_MERGED = "node_disk_writes_merged_total" Counter DEVICE, "Writes that were merged with others.";
    WRITTEN_BYTES = "node_disk_written_bytes_total" Counter DEVICE, "Bytes written.";
    WRITE_TIME = "node_disk_write_time_seconds_total" Counter DEVICE, "Time of all writes.";
    IO_NOW = "node_disk_io_now" Gauge DEVICE, "Requests under way.";
    IO_TIME = "node_disk_io_time_seconds_total" Counter DEVICE, "Time with a request under way.";
    IO_WEIGHTED = "node_disk_io_time_weighted_seconds_total" Counter DEVICE, "Time of all requests.";
    DISCARDS = "node_disk_discards_completed_total" Counter DEVICE, "Discards.";
    DISCARDS_MERGED = "node_disk_discards_merged_total" Counter DEVICE, "Discards that were merged with others.";
    DISCARDED = "node_disk_discarded_sectors_total" Counter DEVICE, "Sectors discarded.";
    DISCARD_TIME = "node_disk_discard_time_seconds_total" Counter DEVICE, "Time of all discards.";
    FLUSHES = "node_disk_flush_requests_total" Counter DEVICE, "Flushes.";
    FLUSH_TIME = "node_disk_flush_requests_time_seconds_total" Counter DEVICE, "Time of all flushes.";
    DISK_INFO = "node_disk_info" Gauge &["device", "major", "minor", "path", "wwn", "model", "serial", "revision"], "1, with what udev knows of a disk.";
    SIZE = "node_filesystem_size_bytes" Gauge MOUNT, "Size of a filesystem. --collector.filesystem, as the next.";
    FREE = "node_filesystem_free_bytes" Gauge MOUNT, "Free space.";
    AVAILABLE = "node_filesystem_avail_bytes" Gauge MOUNT, "Free space for users other than root.";
    FILES = "node_filesystem_files" Gauge MOUNT, "Inodes.";
    FILES_FREE = "node_filesystem_files_free" Gauge MOUNT, "Free inodes.";
    READONLY = "node_filesystem_readonly" Gauge MOUNT, "1 if it is mounted read-only.";
    DEVICE_ERROR = "node_filesystem_device_error" Gauge MOUNT, "1 if it could not be asked.";
}

/// How a column of /proc/diskstats is converted.
enum Unit {
    Whole,
    Sectors,
    Milliseconds,
}

const UNITS: [Unit; 17] = {
    use Unit::{Milliseconds, Sectors, Whole};
    [
        Whole,
        Whole,
        Sectors,
        Milliseconds,
        Whole,
        Whole,
        Sectors,
        Milliseconds,
        Whole,
        Milliseconds,
        Milliseconds,
        Whole,
        Whole,
        Whole,
        Milliseconds,
        Whole,
        Milliseconds,
    ]
};

/// udev's properties for the labels after the device and its numbers, in their order; the first that exists counts.
const UDEV: [&[&str]; 5] = [
    &["ID_PATH"],
    &["ID_WWN"],
    &["ID_MODEL"],
    &["SCSI_IDENT_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"],
    &["ID_REVISION"],
];

/// The labels of each disk.
pub(super) fn disk_infos(file: &TextFile, exclude: &Regex) -> Vec<String> {
    let disks = file.lines().filter_map(|mut words| {
        let (major, minor, name) = (words.next()?, words.next()?, words.next()?);
        (!exclude.is_match(name)).then_some((major, minor, name))
    });
    disks
        .map(|(major, minor, name)| {
            let udev = fs::read_to_string(format!("/run/udev/data/b{major}:{minor}"));
            let udev = udev.unwrap_or_default();
            let properties = UDEV.map(|names| {
                let mut known = names.iter().filter_map(|name| property(&udev, name));
                known.next().unwrap_or_default()
            });
            let values = [name, major, minor].into_iter().chain(properties);
            let labels = DISK_INFO.labels.iter().zip(values);
            let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escape(value)));
            labels.collect::<Vec<_>>().join(",")
        })
        .collect()
}

/// A line `E:NAME=VALUE`.
fn property<'a>(udev: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = udev.lines().filter_map(|line| line.strip_prefix("E:"));
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

pub(super) fn diskstats(text: &mut Exposition, file: &TextFile, infos: &[String], exclude: &Regex) {
    if !infos.is_empty() {
        text.family(&DISK_INFO);
    }
    for labels in infos {
        text.series(DISK_INFO.name, labels, "", Value::Whole(1));
    }
    let disks: Vec<(String, Vec<u64>)> = file
        .lines()
        .filter_map(|mut words| {
            let name = words.nth(2)?;
            let label = || format!("device=\"{}\"", escape(name));
            let numbers = || words.map_while(|word| word.parse().ok()).collect();
            (!exclude.is_match(name)).then(|| (label(), numbers()))
        })
        .collect();
    for (at, (family, unit)) in ALL.iter().zip(UNITS).enumerate() {
        // Older kernels have fewer columns.
        let mut disks = disks
            .iter()
            .filter_map(|(label, numbers)| Some((label, *numbers.get(at)?)))
            .peekable();
        if disks.peek().is_some() {
            text.family(family);
        }
        for (label, number) in disks {
            let value = match unit {
                Unit::Whole => Value::Whole(number),
                Unit::Sectors => Value::Whole(number * 512),
                Unit::Milliseconds => Value::Nano(number * 1_000_000),
            };
            text.series(family.name, label, "", value);
        }
    }
}

/// The filesystems to leave out.
#[derive(Clone, Debug)]
pub(super) struct MountFilter {
    pub mount_points: Regex,
    pub types: Regex,
}

impl MountFilter {
    pub(super) const MOUNT_POINTS: &str =
        "^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)";
    pub(super) const TYPES: &str = "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs)$";
}

/// The labels of a filesystem, and its values in the order of the families; only the last two if it does not answer.
type Filesystem = (String, [Option<u64>; 7]);

/// The filesystems that were read. Asking one may block on its server.
#[derive(Debug)]
pub(super) struct Filesystems {
    filter: MountFilter,
    found: Vec<Filesystem>,
}

impl Filesystems {
    /// No filesystem is read yet.
    pub(super) fn new(filter: MountFilter) -> Self {
        Self {
            filter,
            found: Vec::new(),
        }
    }

    /// Reads all filesystems.
    pub(super) fn read(&mut self) {
        self.found = filesystems(&self.filter);
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        let families = [
            SIZE,
            FREE,
            AVAILABLE,
            FILES,
            FILES_FREE,
            READONLY,
            DEVICE_ERROR,
        ];
        for (at, family) in families.iter().enumerate() {
            let mut known = self
                .found
                .iter()
                .filter_map(|(labels, values)| Some((labels, values[at]?)))
                .peekable();
            if known.peek().is_some() {
                text.family(family);
            }
            for (labels, value) in known {
                text.series(family.name, labels, "", Value::Whole(value));
            }
        }
    }
}

fn filesystems(filter: &MountFilter) -> Vec<Filesystem> {
    let mounts = fs::read_to_string(proc_root::path("/proc/1/mounts"))
        .or_else(|_| fs::read_to_string("/proc/self/mounts"))
        .unwrap_or_default();
    let mut found = Vec::<Filesystem>::new();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(point), Some(kind), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        // The kernel escapes a space and a tab as octal numbers.
        let point = point.replace("\\040", " ").replace("\\011", "\t");
        if filter.mount_points.is_match(&point) || filter.types.is_match(kind) {
            continue;
        }
        let labels = format!(
            "device=\"{}\",mountpoint=\"{}\",fstype=\"{}\"",
            escape(device),
            escape(&point),
            escape(kind)
        );
        if found.iter().any(|(known, _)| *known == labels) {
            continue;
        }
        let read_only = options.split(',').any(|option| option == "ro");
        let mut values = [None; 7];
        values[5] = Some(read_only.into());
        values[6] = Some(1);
        if let Ok(stat) = rustix::fs::statfs(&*point) {
            let size = stat.f_bsize as u64;
            values = [
                Some(stat.f_blocks * size),
                Some(stat.f_bfree * size),
                Some(stat.f_bavail * size),
                Some(stat.f_files),
                Some(stat.f_ffree),
                Some(read_only.into()),
                Some(0),
            ];
        }
        found.push((labels, values));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_udev_knows_is_found_by_its_whole_name() {
        let udev = "S:disk/by-id/x\nE:ID_MODEL_ENC=no\nE:ID_MODEL=A=B\nE:ID_SERIAL=long\n";
        assert_eq!(property(udev, "ID_MODEL"), Some("A=B"));
        assert_eq!(property(udev, "ID_SERIAL"), Some("long"));
        assert_eq!(property(udev, "ID_SERIAL_SHORT"), None);
        assert_eq!(property("", "ID_WWN"), None);
    }
}
