//! The properties of devices in /sys/class/net.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::Pattern;
use crate::{
    exposition::{Exposition, Family, Value, escape},
    names,
};

const DEVICE: &[&str] = &["device"];

crate::metrics::families! {
    UP = "node_network_up" Gauge DEVICE, "1 if a device's operstate is up. --collector.netclass, as the next.";
    INFO = "node_network_info" Gauge &["device", "address", "broadcast", "duplex", "ifalias", "operstate"], "1, with what a device says in words.";
    ADDRESS_ASSIGN_TYPE = "node_network_address_assign_type" Gauge DEVICE, "How a device has its address (addr_assign_type).";
    CARRIER = "node_network_carrier" Gauge DEVICE, "1 if a device has a carrier.";
    CARRIER_CHANGES = "node_network_carrier_changes_total" Counter DEVICE, "Changes of the carrier.";
    CARRIER_UP = "node_network_carrier_up_changes_total" Counter DEVICE, "Times that the carrier came.";
    CARRIER_DOWN = "node_network_carrier_down_changes_total" Counter DEVICE, "Times that the carrier went.";
    DEVICE_ID = "node_network_device_id" Gauge DEVICE, "Which port of its hardware a device is (dev_id).";
    DORMANT = "node_network_dormant" Gauge DEVICE, "1 if a device waits for something, such as authentication.";
    FLAGS = "node_network_flags" Gauge DEVICE, "Flags of a device, as a number.";
    IFACE_ID = "node_network_iface_id" Gauge DEVICE, "Number of a device (ifindex).";
    IFACE_LINK = "node_network_iface_link" Gauge DEVICE, "Number of the device that a device is on (iflink).";
    LINK_MODE = "node_network_iface_link_mode" Gauge DEVICE, "Whether a device may be dormant (link_mode).";
    MTU = "node_network_mtu_bytes" Gauge DEVICE, "Largest packet of a device.";
    NAME_ASSIGN_TYPE = "node_network_name_assign_type" Gauge DEVICE, "How a device has its name.";
    GROUP = "node_network_net_dev_group" Gauge DEVICE, "Group of a device (netdev_group).";
    SPEED = "node_network_speed_bytes" Gauge DEVICE, "Bytes a second that a device is capable of; absent where it does not know.";
    QUEUE = "node_network_transmit_queue_length" Gauge DEVICE, "Length of a device's queue (tx_queue_len).";
    PROTOCOL = "node_network_protocol_type" Gauge DEVICE, "Protocol of a device (type).";
}

/// The files of the numbers, in the order of their families.
const NUMBERS: [(&str, Family); 17] = [
    ("addr_assign_type", ADDRESS_ASSIGN_TYPE),
    ("carrier", CARRIER),
    ("carrier_changes", CARRIER_CHANGES),
    ("carrier_up_count", CARRIER_UP),
    ("carrier_down_count", CARRIER_DOWN),
    ("dev_id", DEVICE_ID),
    ("dormant", DORMANT),
    ("flags", FLAGS),
    ("ifindex", IFACE_ID),
    ("iflink", IFACE_LINK),
    ("link_mode", LINK_MODE),
    ("mtu", MTU),
    ("name_assign_type", NAME_ASSIGN_TYPE),
    ("netdev_group", GROUP),
    ("speed", SPEED),
    ("tx_queue_len", QUEUE),
    ("type", PROTOCOL),
];
/// The files of the words, in the order of the labels after the device.
const WORDS: [&str; 5] = ["address", "broadcast", "duplex", "ifalias", "operstate"];

/// A device and its properties.
#[derive(Debug)]
pub(super) struct Device {
    label: String,
    /// The labels with its words.
    info: String,
    is_up: bool,
    /// In the order of [`NUMBERS`].
    numbers: [Option<i64>; NUMBERS.len()],
}

/// Reads all devices of this folder of sysfs but those that are left out, in the order of their names.
pub(super) fn read(folder: &Path, exclude: &Pattern) -> Vec<Device> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    found.sort_unstable();
    let devices = found.iter().filter_map(|name| {
        let text = names::text(name.as_bytes());
        let is_left_out = exclude.is_match(&text);
        (!is_left_out).then(|| device(&folder.join(name), &text))?
    });
    devices.collect()
}

/// `None` for an entry that is not a device, such as `bonding_masters`, or that has gone.
fn device(folder: &Path, name: &str) -> Option<Device> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).ok()?;
    let label = format!("device=\"{}\"", escape(name));
    let words = WORDS.map(|file| attribute(&folder, file).unwrap_or_default());
    let labels = WORDS.iter().zip(&words);
    let labels = labels.map(|(label, word)| format!(",{label}=\"{}\"", escape(word)));
    Some(Device {
        info: label.clone() + &labels.collect::<String>(),
        label,
        is_up: words[4] == "up",
        numbers: NUMBERS.map(|(file, _)| number(&attribute(&folder, file)?)),
    })
}

/// The contents of a device's file. Many cannot be read while the device is down.
fn attribute(folder: &OwnedFd, name: &str) -> Option<String> {
    let file = openat(
        folder,
        name,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut text = Vec::new();
    // Files of sysfs have at most one page.
    let mut file = fs::File::from(file).take(4096);
    file.read_to_end(&mut text).ok()?;
    Some(names::text(text.trim_ascii()).into_owned())
}

/// Decimal, or hexadecimal with its prefix.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Converts megabits a second to bytes. Negative numbers mean unknown.
fn speed(megabits: i64) -> Option<i64> {
    let megabits = (megabits >= 0).then_some(megabits)?;
    megabits.checked_mul(1_000_000 / 8)
}

pub(super) fn write(text: &mut Exposition, devices: &[Device]) {
    let devices = || devices.iter();
    let up = |device: &'_ Device| Value::Whole(device.is_up.into());
    text.all(&UP, devices().map(|device| (&device.label, up(device))));
    text.all(
        &INFO,
        devices().map(|device| (&device.info, Value::Whole(1))),
    );
    for (at, (file, family)) in NUMBERS.iter().enumerate() {
        let values = devices().filter_map(|device| {
            let number = device.numbers[at]?;
            let number = if *file == "speed" {
                speed(number)?
            } else {
                number
            };
            Some((&device.label, Value::Signed(number)))
        });
        text.all(family, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_nothing_else_is_one() {
        for (text, expected) in [
            ("1500", Some(1500)),
            ("-1", Some(-1)),
            ("0x1003", Some(0x1003)),
            ("0x", None),
            ("", None),
            ("unknown", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn a_speed_that_is_not_known_is_not_told() {
        assert_eq!(speed(-1), None);
        assert_eq!(speed(1000), Some(125_000_000));
        assert_eq!(speed(0), Some(0));
        assert_eq!(speed(i64::MAX), None);
    }
}
