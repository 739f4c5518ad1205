//! Devices, sockets, protocols and tracked connections.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{
    Pattern,
    sysfs::Attributes,
    text::{self, TextFile},
};
use crate::{
    exposition::{Exposition, Family, Kind, Value, escape},
    names,
};

const DEVICE: &[&str] = &["device"];
const CPU: &[&str] = &["cpu"];

crate::metrics::families! {
    RECEIVE_BYTES = "node_network_receive_bytes_total" Counter DEVICE, "Bytes that a device received. --collector.netdev, as the next.";
    RECEIVE_PACKETS = "node_network_receive_packets_total" Counter DEVICE, "Packets that a device received.";
    RECEIVE_ERRS = "node_network_receive_errs_total" Counter DEVICE, "Errors of a device that received.";
    RECEIVE_DROP = "node_network_receive_drop_total" Counter DEVICE, "Packets that were received and dropped.";
    RECEIVE_FIFO = "node_network_receive_fifo_total" Counter DEVICE, "Errors of a device's queue for packets that are received.";
    RECEIVE_FRAME = "node_network_receive_frame_total" Counter DEVICE, "Errors of frames that were received.";
    RECEIVE_COMPRESSED = "node_network_receive_compressed_total" Counter DEVICE, "Compressed packets that were received.";
    RECEIVE_MULTICAST = "node_network_receive_multicast_total" Counter DEVICE, "Multicast packets that were received.";
    TRANSMIT_BYTES = "node_network_transmit_bytes_total" Counter DEVICE, "Bytes that a device sent.";
    TRANSMIT_PACKETS = "node_network_transmit_packets_total" Counter DEVICE, "Packets that a device sent.";
    TRANSMIT_ERRS = "node_network_transmit_errs_total" Counter DEVICE, "Errors of a device that sent.";
    TRANSMIT_DROP = "node_network_transmit_drop_total" Counter DEVICE, "Packets that were dropped and not sent.";
    TRANSMIT_FIFO = "node_network_transmit_fifo_total" Counter DEVICE, "Errors of a device's queue for packets to be sent.";
    TRANSMIT_COLLS = "node_network_transmit_colls_total" Counter DEVICE, "Collisions.";
    TRANSMIT_CARRIER = "node_network_transmit_carrier_total" Counter DEVICE, "Losses of the carrier.";
    TRANSMIT_COMPRESSED = "node_network_transmit_compressed_total" Counter DEVICE, "Compressed packets that were sent.";
    RECEIVE_NOHANDLER = "node_network_receive_nohandler_total" Counter DEVICE, "Packets that were received and that no protocol wanted.";
    SOCKSTAT = "node_sockstat_*" Gauge &[], "A number of /proc/net/sockstat and sockstat6. --collector.sockstat";
    NETSTAT = "node_netstat_*" Untyped &[], "A number of /proc/net/netstat, snmp and snmp6. --collector.netstat, those that --collector.netstat.fields matches.";
    ARP = "node_arp_entries" Gauge DEVICE, "Neighbours that a device knows by ARP. --collector.arp";
    SOFTNET_PROCESSED = "node_softnet_processed_total" Counter CPU, "Packets that a CPU has processed. --collector.softnet, as the next.";
    SOFTNET_DROPPED = "node_softnet_dropped_total" Counter CPU, "Packets that a CPU has dropped, as its queue was full.";
    SOFTNET_SQUEEZED = "node_softnet_times_squeezed_total" Counter CPU, "Times that a CPU had more packets than it may process at once.";
    SOFTNET_COLLISIONS = "node_softnet_cpu_collision_total" Counter CPU, "Times that a device was locked by another CPU.";
    SOFTNET_RPS = "node_softnet_received_rps_total" Counter CPU, "Times that a CPU was woken for packets of another one.";
    SOFTNET_LIMITED = "node_softnet_flow_limit_count_total" Counter CPU, "Packets that a flow had too many of.";
    SOFTNET_BACKLOG = "node_softnet_backlog_len" Gauge CPU, "Packets that wait for a CPU.";
    CONNTRACK = "node_nf_conntrack_entries" Gauge &[], "Connections that are tracked. --collector.conntrack, as the next.";
    CONNTRACK_LIMIT = "node_nf_conntrack_entries_limit" Gauge &[], "Limit of connections that are tracked.";
    CONNTRACK_STAT = "node_nf_conntrack_stat_*" Gauge &[], "A number of /proc/net/stat/nf_conntrack, over all CPUs.";
}

/// The names and the 16 columns of the text of /proc/net/dev.
pub(in crate::metrics) fn net_dev(text: &[u8]) -> impl Iterator<Item = (&[u8], [u64; 16])> {
    let lines = text.split(|&byte| byte == b'\n').skip(2);
    lines.filter_map(|line| {
        let (device, numbers) = line.split_at(line.iter().rposition(|&byte| byte == b':')?);
        let numbers = text::words(&numbers[1..]).map_while(text::number);
        let numbers: Vec<u64> = numbers.collect();
        Some((device.trim_ascii(), numbers.try_into().ok()?))
    })
}

/// Packets without a handler, by device, which no column of /proc/net/dev has. `folder`: where devices are in sysfs.
pub(super) fn read_nohandler(file: &TextFile, folder: &Path, attributes: &mut Attributes) {
    attributes.read(net_dev(file.bytes()).map(|(device, _)| device), |device| {
        let device = folder.join(OsStr::from_bytes(device));
        device.join("statistics/rx_nohandler")
    });
}

pub(super) fn netdev(
    text: &mut Exposition,
    file: &TextFile,
    nohandler: &Attributes,
    exclude: Option<&Pattern>,
) {
    let is_shown = |device: &str| exclude.is_none_or(|exclude| !exclude.is_match(device));
    let devices: Vec<(String, [u64; 16])> = net_dev(file.bytes())
        .map(|(device, numbers)| (names::text(device), numbers))
        .filter(|(device, _)| is_shown(device))
        .map(|(device, numbers)| (format!("device=\"{}\"", escape(&device)), numbers))
        .collect();
    // The columns of the file are those of the first families.
    for (at, family) in ALL.iter().take(16).enumerate() {
        let value = |numbers: &[u64; 16]| Value::Whole(numbers[at]);
        let devices = devices.iter();
        text.all(
            family,
            devices.map(|(label, numbers)| (label, value(numbers))),
        );
    }
    let nohandler = nohandler
        .values()
        .map(|(device, packets)| (names::text(device), packets))
        .filter(|(device, _)| is_shown(device))
        .filter_map(|(device, packets)| {
            let label = format!("device=\"{}\"", escape(&device));
            Some((label, Value::Whole(packets.parse().ok()?)))
        });
    text.all(&RECEIVE_NOHANDLER, nohandler);
}

/// The last word of a line is the device.
pub(super) fn arp(text: &mut Exposition, file: &TextFile, exclude: Option<&Pattern>) {
    let mut counts = BTreeMap::<_, u64>::new();
    for words in file.words().skip(1) {
        if let Some(device) = words.last().map(names::text)
            && exclude.is_none_or(|exclude| !exclude.is_match(&device))
        {
            *counts.entry(device).or_default() += 1;
        }
    }
    let label = |device: &str| format!("device=\"{}\"", escape(device));
    let counts = counts.iter();
    text.all(
        &ARP,
        counts.map(|(device, &count)| (label(device), Value::Whole(count))),
    );
}

/// The reported columns of `/proc/net/softnet_stat`. Older kernels have fewer.
const SOFTNET: [(usize, Family); 7] = [
    (0, SOFTNET_PROCESSED),
    (1, SOFTNET_DROPPED),
    (2, SOFTNET_SQUEEZED),
    (8, SOFTNET_COLLISIONS),
    (9, SOFTNET_RPS),
    (10, SOFTNET_LIMITED),
    (11, SOFTNET_BACKLOG),
];
const SOFTNET_CPU: usize = 12;

/// Hexadecimal numbers, one line for each online CPU.
pub(super) fn softnet(text: &mut Exposition, file: &TextFile) {
    let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
    let lines: Vec<Vec<Option<u64>>> = file
        .lines()
        .map(|words| words.map(hexadecimal).collect())
        .collect();
    for (column, family) in SOFTNET {
        let values = lines.iter().zip(0..).filter_map(|(line, at)| {
            let cpu = line.get(SOFTNET_CPU).copied().unwrap_or(Some(at))?;
            let value = Value::Whole((*line.get(column)?)?);
            Some((format!("cpu=\"{cpu}\""), value))
        });
        text.all(&family, values);
    }
}

/// `TCP: inuse 5 orphan 0`
pub(super) fn sockstat(text: &mut Exposition, files: [&TextFile; 2]) {
    for mut words in files.into_iter().flat_map(TextFile::lines) {
        let protocol = words.next().unwrap_or_default().trim_end_matches(':');
        while let (Some(key), Some(number)) = (words.next(), words.next()) {
            let Ok(number) = number.parse::<u64>() else {
                break;
            };
            let mut one = |name: &str, number| {
                let help = "A number of /proc/net/sockstat.";
                text.named(name, Kind::Gauge, help, Value::Whole(number));
            };
            let name = format!("node_sockstat_{protocol}_{key}");
            if key == "mem" {
                let bytes = number * rustix::param::page_size() as u64;
                one(&format!("{name}_bytes"), bytes);
            }
            one(&name, number);
        }
    }
}

/// Names that are written, by the lines that have them.
#[derive(Debug)]
pub(super) struct Netstat {
    fields: Pattern,
    names: HashMap<String, Vec<Option<String>>>,
}

impl Netstat {
    pub(super) const DEFAULT: &str = "^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$";

    pub(super) fn new(fields: Pattern) -> Self {
        Self {
            fields,
            names: HashMap::new(),
        }
    }

    /// A line of names and a line of numbers for each protocol; for IPv6 one line for each number.
    pub(super) fn write(&mut self, text: &mut Exposition, files: [&TextFile; 2], snmp6: &TextFile) {
        for file in files {
            let mut lines = file.text().lines();
            while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
                let known = self.names.entry(names.into()).or_insert_with(|| {
                    let (protocol, names) = names.split_once(':').unwrap_or_default();
                    let names = names.split_ascii_whitespace();
                    let names = names.map(|name| format!("{protocol}_{name}"));
                    names.map(|name| shown(&self.fields, &name)).collect()
                });
                let numbers = numbers.split_ascii_whitespace().skip(1);
                for (name, number) in known.iter().zip(numbers) {
                    if let Some(name) = name {
                        one(text, name, number);
                    }
                }
            }
        }
        for mut words in snmp6.lines() {
            let (Some(name), Some(number)) = (words.next(), words.next()) else {
                continue;
            };
            let known = self.names.entry(name.into()).or_insert_with(|| {
                let parted = name.find('6').map(|at| name.split_at(at + 1));
                let name = parted.map(|(protocol, name)| format!("{protocol}_{name}"));
                vec![name.and_then(|name| shown(&self.fields, &name))]
            });
            if let [Some(name)] = &known[..] {
                one(text, name, number);
            }
        }
    }
}

fn shown(fields: &Pattern, name: &str) -> Option<String> {
    fields
        .is_match(name)
        .then(|| format!("node_netstat_{name}"))
}

fn one(text: &mut Exposition, name: &str, number: &str) {
    // Some limits are -1.
    if let Ok(number) = number.parse::<i64>() {
        let help = "A number of /proc/net/netstat or snmp.";
        text.named(name, Kind::Untyped, help, Value::Signed(number));
    }
}

/// Without `entries`, their number and its limit, these are of another network.
pub(super) fn conntrack(text: &mut Exposition, entries: Option<[&TextFile; 2]>, stat: &TextFile) {
    let families = [CONNTRACK, CONNTRACK_LIMIT];
    for (family, file) in families.iter().zip(entries.into_iter().flatten()) {
        text.one(family, file.number().map(Value::Whole));
    }
    let mut lines = stat.lines();
    let Some(names) = lines.next() else { return };
    let mut sums: Vec<(&str, u64)> = names.map(|name| (name, 0)).collect();
    for words in lines {
        for ((_, sum), word) in sums.iter_mut().zip(words) {
            *sum += u64::from_str_radix(word, 16).unwrap_or(0);
        }
    }
    for key in [
        "found",
        "invalid",
        "ignore",
        "insert",
        "insert_failed",
        "drop",
        "early_drop",
        "search_restart",
    ] {
        if let Some((_, sum)) = sums.iter().find(|(name, _)| *name == key) {
            let name = format!("node_nf_conntrack_stat_{key}");
            let help = "A number of /proc/net/stat/nf_conntrack.";
            text.named(&name, Kind::Gauge, help, Value::Whole(*sum));
        }
    }
}
