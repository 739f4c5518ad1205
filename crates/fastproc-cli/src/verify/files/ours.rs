//! The same values from a record, in the kernel's form.

use std::{collections::BTreeSet, net::IpAddr};

use fastproc::files::{Address, Device, File, Holder, Socket};

use super::Values;

pub fn process(holder: Holder<'_>) -> Values {
    if holder.is_hidden() || holder.is_of_thread() {
        return Values::new();
    }
    let open: BTreeSet<u32> = holder.files().filter_map(File::descriptor).collect();
    Values::from([("descriptors", format!("{open:?}"))])
}

pub fn file(file: File<'_>) -> Values {
    let mut values = Values::new();
    let device = |device: Device| format!("{}:{}", device.major, device.minor);
    let mut name = Vec::new();
    if file.write_name(&mut name) {
        values.insert("name", name.escape_ascii().to_string());
    }
    let numbers = [
        ("device", file.device().map(device)),
        ("inode", file.inode().map(|inode| inode.to_string())),
        ("size", file.size().map(|size| size.to_string())),
        ("rdev", file.special_device().map(device)),
        (
            "position",
            file.position()
                .map(|at| without_zeros(&(at as i64).to_string())),
        ),
        (
            "flags",
            file.flags()
                .map(|flags| without_zeros(&format!("{flags:o}"))),
        ),
    ];
    values.extend(
        numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    if let Some(socket) = file.socket() {
        add_socket(socket, &mut values);
    }
    values
}

/// The kernel prints numbers of the flags with a zero before them, and so a zero has two.
fn without_zeros(number: &str) -> String {
    number.trim_start_matches('0').to_owned()
}

fn add_socket(socket: Socket<'_>, values: &mut Values) {
    // The text has a line for each of its connections, as of TCP, with states of their own.
    if socket.netid() == "mptcp" {
        return;
    }
    if let Some(Address::Inet(address, port)) = socket.local() {
        let suffix = if address.is_ipv6() { "6" } else { "" };
        values.insert("socket table", format!("{}{suffix}", socket.netid()));
        values.insert("socket local", end(address, port));
        let peer = match socket.peer() {
            Some(Address::Inet(address, port)) => end(address, port),
            _ => end(
                if address.is_ipv6() {
                    IpAddr::from([0_u16; 8])
                } else {
                    IpAddr::from([0_u8; 4])
                },
                0,
            ),
        };
        values.insert("socket peer", peer);
        values.insert("socket state", format!("{:02X}", socket.state()));
        if let (Some(received), Some(sent)) = (socket.receive_queue(), socket.send_queue()) {
            values.insert("socket queues", format!("{sent:08X}:{received:08X}"));
        }
        if let Some(uid) = socket.uid() {
            values.insert("socket uid", uid.to_string());
        }
        return;
    }
    if socket.family() != 1 {
        return;
    }
    values.insert("unix type", format!("{:04X}", socket.socket_type()));
    values.insert("unix listens", socket.listens().to_string());
    let name = match socket.local() {
        Some(Address::Path(path)) => path.to_vec(),
        Some(Address::Abstract(name)) => [b"@", name].concat(),
        _ => Vec::new(),
    };
    // The text of one with a newline may look like several sockets.
    if let Some(name) = String::from_utf8(name)
        .ok()
        .filter(|name| !name.contains('\n'))
    {
        values.insert("unix name", name.escape_debug().to_string());
    }
}

/// An address as the kernel prints the words of its memory.
fn end(address: IpAddr, port: u16) -> String {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| {
        let word = [word[0], word[1], word[2], word[3]];
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    format!("{}:{port:04X}", words.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_as_the_kernel_does() {
        let local = u32::from_ne_bytes([127, 0, 0, 1]);
        assert_eq!(
            end(IpAddr::from([127, 0, 0, 1]), 22),
            format!("{local:08X}:0016")
        );
        assert_eq!(end(IpAddr::from([0_u16; 8]), 0).len(), 37);
    }
}
