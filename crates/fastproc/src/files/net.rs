//! The kernel's tables of sockets as text: `/proc/net/tcp` and its like, which show one network namespace.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::File,
};

use super::{
    object::layout::Socket,
    socket::{
        AF_INET, AF_INET6, AF_UNIX, DATAGRAM, ICMP, ICMP6, LISTEN, RAW, STREAM, TCP, UDP, UDPLITE,
    },
};
use crate::base::{proc_root, whole_file::read_whole};

/// Files, with the family, the type and the protocol of their sockets. A raw socket has its protocol in place of a port.
const INET: [(&str, u8, u8, u32); 10] = [
    ("tcp", AF_INET, STREAM, TCP),
    ("tcp6", AF_INET6, STREAM, TCP),
    ("udp", AF_INET, DATAGRAM, UDP),
    ("udp6", AF_INET6, DATAGRAM, UDP),
    ("udplite", AF_INET, DATAGRAM, UDPLITE),
    ("udplite6", AF_INET6, DATAGRAM, UDPLITE),
    ("icmp", AF_INET, DATAGRAM, ICMP),
    ("icmp6", AF_INET6, DATAGRAM, ICMP6),
    ("raw", AF_INET, RAW, 0),
    ("raw6", AF_INET6, RAW, 0),
];
/// The tables that programs list as well.
pub(super) const LISTED: [&str; 5] = ["tcp", "tcp6", "udp", "udp6", "unix"];
const ESTABLISHED: u8 = 1;
const CLOSE: u8 = 7;
/// `SS_CONNECTING`, as which the kernel shows a connection that is not accepted yet, `SS_CONNECTED`, and the flag of a listening
/// socket (`__SO_ACCEPTCON`): include/uapi/linux/net.h.
const CONNECTING: u32 = 2;
const CONNECTED: u32 = 3;
const ACCEPTS: u32 = 1 << 16;
/// The user of a socket whose user the text does not tell.
pub(super) const NOBODY: u32 = u32::MAX;
/// The longest name of a unix socket: `sun_path`.
const MOST_UNIX_NAME: usize = 108;

/// Sockets by their inode numbers, and those without one.
#[derive(Debug, Default)]
pub(super) struct Net {
    by_inode: HashMap<u64, (Socket, Box<[u8]>)>,
    without: Vec<Socket>,
    text: Vec<u8>,
}

impl Net {
    pub(super) fn clear(&mut self) {
        self.by_inode.clear();
        self.without.clear();
    }

    /// Adds the tables of this folder, as in `/proc/net`, which show this network namespace (0: not known), except these. Returns
    /// whether the first and the last could be read: of others a kernel may have none.
    pub(super) fn read(&mut self, folder: &str, namespace: u32, except: &[&str]) -> bool {
        let mut is_read = true;
        for (name, family, sock_type, protocol) in INET {
            if except.contains(&name) {
                continue;
            }
            if !self.load(&format!("{folder}/{name}")) {
                is_read &= name != INET[0].0;
                continue;
            }
            let lines = self.text.split(|&byte| byte == b'\n').skip(1);
            for (inode, mut socket) in
                lines.filter_map(|line| inet(line, family, sock_type, protocol))
            {
                socket.netns = namespace;
                if inode == 0 {
                    self.without.push(socket);
                } else {
                    self.by_inode.insert(inode, (socket, Box::default()));
                }
            }
        }
        if !except.contains(&"unix") {
            if self.load(&format!("{folder}/unix")) {
                self.add_unix(namespace);
            } else {
                is_read = false;
            }
        }
        is_read
    }

    fn load(&mut self, path: &str) -> bool {
        let file = File::open(proc_root::path(path));
        file.is_ok_and(|file| read_whole(&file, &mut self.text).is_ok())
    }

    /// A name may hold a newline, and then its rest stands in a line of its own: the name is not known. The rest may look like the
    /// line of another socket. That socket has a line as well, so a unix socket with two lines is not known, and a line of a socket of
    /// another table is not believed.
    fn add_unix(&mut self, namespace: u32) {
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        let mut previous = None;
        for line in text.split(|&byte| byte == b'\n').skip(1) {
            let Some((inode, mut socket, name)) = unix(line) else {
                let cut = previous.and_then(|inode| self.by_inode.get_mut(&inode));
                if let Some((
                    Socket {
                        family: AF_UNIX, ..
                    },
                    name,
                )) = cut
                {
                    *name = Box::default();
                }
                continue;
            };
            previous = Some(inode);
            socket.netns = namespace;
            match self.by_inode.entry(inode) {
                Entry::Vacant(place) => {
                    place.insert((socket, name.into()));
                }
                Entry::Occupied(mut known) if known.get().0.family == AF_UNIX => {
                    let unknown = Socket {
                        family: AF_UNIX,
                        uid: NOBODY,
                        ..Socket::default()
                    };
                    known.insert((unknown, Box::default()));
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// The socket with this inode number, and the name of a unix socket as its address has it.
    pub(super) fn find(&self, inode: u64) -> Option<(Socket, &[u8])> {
        let (socket, name) = self.by_inode.get(&inode)?;
        Some((*socket, name))
    }

    /// All sockets, with their inode numbers and names.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (u64, Socket, &[u8])> {
        let without = self.without.iter().map(|socket| (0, *socket, &[][..]));
        let named = self.by_inode.iter();
        let named = named.map(|(&inode, (socket, name))| (inode, *socket, &**name));
        without.chain(named)
    }
}

fn hex(word: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

fn decimal(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
}

/// Two words that a colon separates.
fn pair(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = word.iter().position(|&byte| byte == b':')?;
    Some((&word[..at], &word[at + 1..]))
}

/// The words of an address are shown as numbers of the machine, so they are those in its memory.
fn address(word: &[u8]) -> Option<([u32; 4], u32)> {
    let (address, port) = pair(word)?;
    let mut words = [0; 4];
    if address.len() != 8 && address.len() != 32 {
        return None;
    }
    for (to, digits) in words.iter_mut().zip(address.chunks(8)) {
        *to = hex(digits)?;
    }
    Some((words, hex(port)?))
}

/// A line of `/proc/net/tcp`: `get_tcp4_sock()` of `net/ipv4/tcp_ipv4.c` and its like.
fn inet(line: &[u8], family: u8, sock_type: u8, protocol: u32) -> Option<(u64, Socket)> {
    let mut words = words(line).skip(1);
    let (saddr, sport) = address(words.next()?)?;
    let (daddr, dport) = address(words.next()?)?;
    let state = u8::try_from(hex(words.next()?)?).ok()?;
    let (txq, rxq) = pair(words.next()?)?;
    let mut rest = words.skip(2);
    let uid = decimal(rest.next()?)?;
    let inode = decimal(rest.nth(1)?)?;
    let socket = Socket {
        saddr,
        daddr,
        family,
        sock_type,
        protocol: if sock_type == RAW { sport } else { protocol },
        state,
        sport,
        dport,
        rxq: hex(rxq)?,
        txq: hex(txq)?,
        uid: u32::try_from(uid).ok()?,
        ..Socket::default()
    };
    Some((inode, socket))
}

/// A line of `/proc/net/unix`: `unix_seq_show()` of `net/unix/af_unix.c`. The name is as in the address: a zero byte before an
/// abstract one, which the kernel shows as an @. It shows others in the name as an @, too, so a name with one more is not known.
fn unix(line: &[u8]) -> Option<(u64, Socket, Vec<u8>)> {
    let mut columns = line.splitn(2, |&byte| byte == b':');
    columns.next()?;
    let mut at = 0;
    let rest = columns.next()?;
    let mut next = || {
        let start = at + rest[at..].iter().position(|&byte| byte != b' ')?;
        let length = rest[start..].iter().position(|&byte| byte == b' ');
        at = length.map_or(rest.len(), |length| start + length);
        Some((&rest[start..at], at))
    };
    next()?;
    let protocol = hex(next()?.0)?;
    let flags = hex(next()?.0)?;
    let sock_type = u8::try_from(hex(next()?.0)?).ok()?;
    let state = hex(next()?.0)?;
    let (inode, end) = next()?;
    let inode = decimal(inode)?;
    let shown = rest.get(end + 1..).unwrap_or_default();
    let mut name = shown.to_vec();
    if name.len() > MOST_UNIX_NAME + 1 {
        return None;
    }
    if let Some((first @ b'@', rest)) = name.split_first_mut() {
        *first = 0;
        if rest.contains(&b'@') {
            name.clear();
        }
    }
    let socket = Socket {
        family: AF_UNIX,
        sock_type,
        protocol,
        state: if flags & ACCEPTS != 0 {
            LISTEN
        } else if state == CONNECTING || state == CONNECTED {
            ESTABLISHED
        } else {
            CLOSE
        },
        uid: NOBODY,
        ..Socket::default()
    };
    Some((inode, socket, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP_LINE: &[u8] = b"   0: 0100007F:1F90 0200007F:0050 01 00000007:00000003 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0";

    #[test]
    fn a_line_of_tcp_is_a_socket() {
        let (inode, socket) = inet(TCP_LINE, AF_INET, STREAM, TCP).expect("a line");
        assert_eq!((inode, socket.uid, socket.state), (4242, 1000, 1));
        assert_eq!((socket.sport, socket.dport), (8080, 80));
        assert_eq!((socket.txq, socket.rxq), (7, 3));
        assert_eq!(socket.saddr[0], 0x0100_007f);
        let v6 = b"   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1";
        let (inode, socket) = inet(v6, AF_INET6, STREAM, TCP).expect("a line");
        assert_eq!(
            (inode, socket.sport, socket.saddr),
            (17, 22, [0, 0, 0, 0x0100_0000])
        );
        for end in 0..TCP_LINE.len() - 30 {
            let _ = inet(&TCP_LINE[..end], AF_INET, STREAM, TCP);
        }
        assert_eq!(inet(b"", AF_INET, STREAM, TCP), None);
    }

    #[test]
    fn a_line_of_unix_keeps_the_name() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 26536 @/tmp/a b";
        let (inode, socket, name) = unix(line).expect("a line");
        assert_eq!(
            (inode, socket.state, socket.sock_type),
            (26536, LISTEN, STREAM)
        );
        assert_eq!(name, b"\0/tmp/a b");
        let cases: [(&[u8], &[u8]); 2] = [(b"@a@b", b""), (b"/run/a@b", b"/run/a@b")];
        for (shown, known) in cases {
            let line = [&line[..line.len() - 9], shown].concat();
            assert_eq!(unix(&line).expect("a line").2, known);
        }
        let bare = b"0000000000000000: 00000003 00000000 00000000 0002 03 7";
        let (inode, socket, name) = unix(bare).expect("a line");
        assert_eq!((inode, socket.state, &name[..]), (7, ESTABLISHED, &b""[..]));
        for end in 0..line.len() {
            let _ = unix(&line[..end]);
        }
    }

    #[test]
    fn a_name_that_imitates_a_line_only_hides() {
        let mut net = Net {
            text: b"Num       RefCount Protocol Flags    Type St Inode Path\n\
                a: 00000002 00000000 00010000 0001 01 5 /run/real\n\
                b: 00000002 00000000 00010000 0001 01 6 @x\n\
                c: 00000002 00000000 00010000 0001 01 5 /run/false\n"
                .to_vec(),
            ..Net::default()
        };
        net.add_unix(1);
        let name = |inode| net.find(inode).map(|(_, name)| name.to_vec());
        assert_eq!((name(5), name(6)), (Some(vec![]), Some(b"\0x".to_vec())));
        // That of a socket in another table hides nothing.
        let (_, tcp) = inet(TCP_LINE, AF_INET, STREAM, TCP).expect("a line");
        net.by_inode.insert(5, (tcp, Box::default()));
        net.add_unix(1);
        assert_eq!(net.find(5), Some((tcp, &[][..])));
    }

    #[test]
    fn a_name_with_a_newline_is_not_known() {
        let mut net = Net {
            text: b"Num       RefCount Protocol Flags    Type St Inode Path\n\
                a: 00000002 00000000 00010000 0001 01 5 @two\nlines\n\
                b: 00000002 00000000 00010000 0001 01 6 /run/last\n\
                c: 00000002 00000000 00010000 0001 01 7 @ends with one\n\n"
                .to_vec(),
            ..Net::default()
        };
        net.add_unix(1);
        let name = |inode| {
            net.find(inode)
                .map(|(_, name)| name.escape_ascii().to_string())
        };
        assert_eq!(
            [5, 6, 7].map(name),
            ["", "/run/last", ""].map(|name| Some(name.into()))
        );
    }
}
