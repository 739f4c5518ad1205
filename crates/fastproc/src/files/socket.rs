//! A socket: its addresses, state and queues.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{net::NOBODY, object::layout};

/// A socket of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Socket<'a> {
    pub(super) record: &'a layout::Socket,
    pub(super) texts: &'a [u8],
    pub(super) inode: u64,
}

/// One end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address<'a> {
    /// IPv4 or IPv6, with the port.
    Inet(IpAddr, u16),
    /// The path that a unix socket is bound to.
    Path(&'a [u8]),
    /// The abstract name of a unix socket, without the zero byte before it.
    Abstract(&'a [u8]),
    /// The inode number of a unix socket.
    Inode(u64),
}

/// Families, types and protocols: include/linux/socket.h, include/linux/net.h, include/uapi/linux/in.h.
pub(super) const AF_UNIX: u8 = 1;
pub(super) const AF_INET: u8 = 2;
pub(super) const AF_INET6: u8 = 10;
const FAMILIES: [(u8, &str); 12] = [
    (AF_UNIX, "unix"),
    (16, "nl"),
    (17, "p"),
    (40, "vsock"),
    (38, "alg"),
    (31, "bt"),
    (29, "can"),
    (30, "tipc"),
    (15, "key"),
    (43, "smc"),
    (44, "xdp"),
    (45, "mctp"),
];
pub(super) const STREAM: u8 = 1;
pub(super) const DATAGRAM: u8 = 2;
pub(super) const RAW: u8 = 3;
const SEQPACKET: u8 = 5;
pub(super) const TCP: u32 = 6;
pub(super) const UDP: u32 = 17;
pub(super) const ICMP: u32 = 1;
pub(super) const ICMP6: u32 = 58;
pub(super) const UDPLITE: u32 = 136;
const PROTOCOLS: [(u32, &str); 8] = [
    (ICMP, "icmp"),
    (TCP, "tcp"),
    (UDP, "udp"),
    (33, "dccp"),
    (ICMP6, "icmp6"),
    (132, "sctp"),
    (UDPLITE, "udplite"),
    // Wider than the number in the protocol's header.
    (262, "mptcp"),
];

pub(super) const LISTEN: u8 = 10;
/// `include/net/tcp_states.h`, in the words of ss(8).
const STATES: [&str; 13] = [
    "",
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "SYN-RECV",
];

fn find<N: Copy + PartialEq>(table: &[(N, &'static str)], number: N) -> Option<&'static str> {
    table
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

impl<'a> Socket<'a> {
    /// The inode number; 0 if no process has a descriptor of it.
    pub fn inode(self) -> u64 {
        self.inode
    }

    /// `AF_*`.
    pub fn family(self) -> u8 {
        self.record.family
    }

    /// `SOCK_*`.
    pub fn socket_type(self) -> u8 {
        self.record.sock_type
    }

    /// `IPPROTO_*`, or the protocol of another family.
    pub fn protocol(self) -> u32 {
        self.record.protocol
    }

    /// What ss(8) calls it, as in `tcp`, `udp` or `u_str`.
    pub fn netid(self) -> &'static str {
        match (self.family(), self.socket_type()) {
            (AF_UNIX, STREAM) => "u_str",
            (AF_UNIX, DATAGRAM) => "u_dgr",
            (AF_UNIX, SEQPACKET) => "u_seq",
            (AF_INET | AF_INET6, RAW) => "raw",
            (AF_INET | AF_INET6, _) => find(&PROTOCOLS, self.protocol()).unwrap_or("inet"),
            (family, _) => find(&FAMILIES, family).unwrap_or("other"),
        }
    }

    /// The number of its state: `TCP_*` of `include/net/tcp_states.h`, which other protocols use as well.
    pub fn state(self) -> u8 {
        self.record.state
    }

    /// The name of its state in ss(8), as in `ESTAB`.
    pub fn state_name(self) -> &'static str {
        STATES
            .get(usize::from(self.record.state))
            .copied()
            .unwrap_or_default()
    }

    /// Whether it waits for connections.
    pub fn listens(self) -> bool {
        self.record.state == LISTEN
    }

    /// Bytes that the process has not read yet; of a listening TCP socket, connections that it has not accepted. `None`: the
    /// kernel keeps no such number.
    pub fn receive_queue(self) -> Option<u32> {
        self.has_queues().then_some(self.record.rxq)
    }

    /// Bytes that were not sent or not acknowledged yet. `None`: the kernel keeps no such number, as of a listening socket.
    pub fn send_queue(self) -> Option<u32> {
        let sends = self.has_queues() && !self.listens();
        sends.then_some(self.record.txq)
    }

    /// The user who made it. `None`: the text does not tell it.
    pub fn uid(self) -> Option<u32> {
        Some(self.record.uid).filter(|&uid| uid != NOBODY)
    }

    /// The inode number of its network namespace; `None` if it is not known.
    pub fn network_namespace(self) -> Option<u32> {
        Some(self.record.netns).filter(|&number| number != 0)
    }

    /// Other protocols keep their queues elsewhere.
    fn has_queues(self) -> bool {
        let is_known = matches!(self.protocol(), TCP | UDP | UDPLITE | ICMP | ICMP6);
        self.is_inet() && (is_known || self.socket_type() == RAW)
    }

    fn is_inet(self) -> bool {
        matches!(self.record.family, AF_INET | AF_INET6)
    }

    fn inet(self, words: [u32; 4], port: u32) -> Address<'a> {
        let [first, ..] = words;
        let address = if self.record.family == AF_INET {
            IpAddr::V4(Ipv4Addr::from(first.to_ne_bytes()))
        } else {
            let mut bytes = [0; 16];
            for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        };
        Address::Inet(address, port as u16)
    }

    /// Its own address. `None`: it has none, or its family has other ones.
    pub fn local(self) -> Option<Address<'a>> {
        if self.is_inet() {
            return Some(self.inet(self.record.saddr, self.record.sport));
        }
        let start = self.record.text as usize;
        let name = self.texts.get(start..start + self.record.text_len as usize);
        match name? {
            [] => None,
            [0, name @ ..] => Some(Address::Abstract(name)),
            // The kernel counts the zero byte that ends a path.
            path => Some(Address::Path(path.strip_suffix(b"\0").unwrap_or(path))),
        }
    }

    /// The address of the other end. `None`: it is not connected, or not known (of unix sockets, from `/proc`).
    pub fn peer(self) -> Option<Address<'a>> {
        let record = self.record;
        if self.is_inet() {
            let is_connected = record.dport != 0 || record.daddr != [0; 4];
            return is_connected.then(|| self.inet(record.daddr, record.dport));
        }
        Some(Address::Inode(record.peer.into())).filter(|_| record.peer != 0)
    }
}

impl Address<'_> {
    /// The port, if it has one.
    pub fn port(self) -> Option<u16> {
        match self {
            Self::Inet(_, port) => Some(port),
            _ => None,
        }
    }

    /// Appends it as text: `127.0.0.1:80`, `[::1]:80`, a path, `@` and an abstract name, `* ` and an inode number. Names may hold
    /// any byte.
    pub fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Path(path) => to.extend_from_slice(path),
            Self::Abstract(name) => {
                to.push(b'@');
                to.extend_from_slice(name);
            }
            other => to.extend_from_slice(other.to_string().as_bytes()),
        }
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(IpAddr::V4(address), port) => write!(f, "{address}:{port}"),
            Self::Inet(IpAddr::V6(address), port) => write!(f, "[{address}]:{port}"),
            Self::Path(path) => write!(f, "{}", path.escape_ascii()),
            Self::Abstract(name) => write!(f, "@{}", name.escape_ascii()),
            Self::Inode(number) => write!(f, "* {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(record: layout::Socket, texts: &[u8]) -> [Option<String>; 2] {
        let socket = Socket {
            record: &record,
            texts,
            inode: 1,
        };
        [socket.local(), socket.peer()].map(|address| Some(address?.to_string()))
    }

    #[test]
    fn addresses_are_read_in_network_order() {
        let mut record = layout::Socket {
            family: AF_INET,
            sock_type: STREAM,
            protocol: TCP,
            sport: 80,
            ..layout::Socket::default()
        };
        record.saddr[0] = u32::from_ne_bytes([127, 0, 0, 1]);
        assert_eq!(text(record, b""), [Some("127.0.0.1:80".into()), None]);
        record.family = AF_INET6;
        record.saddr = [0, 0, 0, u32::from_ne_bytes([0, 0, 0, 1])];
        record.daddr = [u32::from_ne_bytes([0x20, 1, 0xd, 0xb8]), 0, 0, 0];
        record.dport = 443;
        let [local, peer] = text(record, b"");
        assert_eq!(local.as_deref(), Some("[::1]:80"));
        assert_eq!(peer.as_deref(), Some("[2001:db8::]:443"));
    }

    #[test]
    fn a_unix_socket_has_a_path_a_name_or_nothing() {
        let mut record = layout::Socket {
            family: AF_UNIX,
            sock_type: STREAM,
            peer: 9,
            ..layout::Socket::default()
        };
        assert_eq!(text(record, b"")[0], None);
        record.text_len = 5;
        let [local, peer] = text(record, b"/run\0");
        assert_eq!(local.as_deref(), Some("/run"));
        assert_eq!(peer.as_deref(), Some("* 9"));
        assert_eq!(
            text(record, b"\0a\n\xffb")[0].as_deref(),
            Some("@a\\n\\xffb")
        );
    }

    #[test]
    fn sockets_have_the_names_of_ss() {
        let names = [
            (AF_INET, STREAM, TCP, "tcp"),
            (AF_INET6, DATAGRAM, UDP, "udp"),
            (AF_INET, RAW, 1, "raw"),
            (AF_INET, DATAGRAM, 1, "icmp"),
            (AF_UNIX, DATAGRAM, 0, "u_dgr"),
            (16, RAW, 0, "nl"),
            (99, 1, 0, "other"),
        ];
        for (family, type_, protocol, expected) in names {
            let record = layout::Socket {
                family,
                sock_type: type_,
                protocol,
                ..layout::Socket::default()
            };
            let socket = Socket {
                record: &record,
                texts: b"",
                inode: 0,
            };
            assert_eq!(socket.netid(), expected);
        }
    }
}
