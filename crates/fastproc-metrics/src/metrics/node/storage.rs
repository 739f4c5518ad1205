//! Disks.

use std::{fs, iter};

use fastproc::frozen;

use super::{
    Pattern,
    text::{TextFile, number},
};
use crate::{
    exposition::{Exposition, Family, Value, escape},
    names,
};

const DEVICE: &[&str] = &["device"];

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
}

/// udev's properties for the labels after the device and its numbers, in their order; the first that exists counts.
const UDEV: [&[&str]; 5] = [
    &["ID_PATH"],
    &["ID_WWN"],
    &["ID_MODEL"],
    &["SCSI_IDENT_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"],
    &["ID_REVISION"],
];

/// The labels of each disk.
pub(super) fn disk_infos(file: &TextFile, exclude: &Pattern) -> Vec<String> {
    let disks = file.words().filter_map(|mut words| {
        let mut text = || Some(names::text(words.next()?));
        let (major, minor, name) = (text()?, text()?, text()?);
        (!exclude.is_match(&name)).then_some((major, minor, name))
    });
    disks
        .map(|(major, minor, name)| {
            let udev = fs::read(frozen::own_path(&format!(
                "/run/udev/data/b{major}:{minor}"
            )));
            let udev = udev.unwrap_or_default();
            let properties = UDEV.map(|properties| {
                let mut known = properties.iter().filter_map(|name| property(&udev, name));
                names::text(known.next().unwrap_or_default())
            });
            let values = [name, major, minor].into_iter().chain(properties);
            let labels = DISK_INFO.labels.iter().zip(values);
            let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escape(&value)));
            labels.collect::<Vec<_>>().join(",")
        })
        .collect()
}

/// A line `E:NAME=VALUE`.
fn property<'a>(udev: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut lines = udev.split(|&byte| byte == b'\n');
    lines.find_map(|line| {
        let line = line.strip_prefix(b"E:")?;
        line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
    })
}

pub(super) fn diskstats(
    text: &mut Exposition,
    file: &TextFile,
    infos: &[String],
    exclude: &Pattern,
) {
    text.all(&DISK_INFO, infos.iter().zip(iter::repeat(Value::Whole(1))));
    let disks: Vec<(String, Vec<u64>)> = file
        .words()
        .filter_map(|mut words| {
            let name = names::text(words.nth(2)?);
            let label = || format!("device=\"{}\"", escape(&name));
            let numbers = || words.map_while(number).collect();
            (!exclude.is_match(&name)).then(|| (label(), numbers()))
        })
        .collect();
    // The columns of the file are those of the other families. Older kernels have fewer.
    for (at, family) in ALL[..ALL.len() - 1].iter().enumerate() {
        let disks = disks.iter().filter_map(|(label, numbers)| {
            Some((label, converted(family.name, *numbers.get(at)?)))
        });
        text.all(family, disks);
    }
}

/// Converts sectors and milliseconds to the unit that the name of the family has.
fn converted(name: &str, number: u64) -> Value {
    if name.ends_with("_bytes_total") {
        Value::Whole(number * 512)
    } else if name.ends_with("_seconds_total") {
        Value::Nano(number * 1_000_000)
    } else {
        Value::Whole(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_udev_are_found_by_their_whole_name() {
        let udev = b"S:disk/by-id/x\nE:ID_MODEL_ENC=no\nE:ID_MODEL=A=B\xff\nE:ID_SERIAL=long\n";
        assert_eq!(property(udev, "ID_MODEL"), Some(&b"A=B\xff"[..]));
        assert_eq!(property(udev, "ID_SERIAL"), Some(&b"long"[..]));
        assert_eq!(property(udev, "ID_SERIAL_SHORT"), None);
        assert_eq!(property(b"", "ID_WWN"), None);
    }
}
