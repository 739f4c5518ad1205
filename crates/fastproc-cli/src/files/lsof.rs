//! `-F`: the lines of `lsof -F`, which scripts parse.

use std::{
    io::{self, Write},
    net::IpAddr,
    str::FromStr,
};

use fastproc::files::{Address, Fields, File, Kind, Slot, Socket};
use fastproc_columns::{
    Value,
    escape::escape,
    files::{Lookup, Row, Rows, find},
};

/// The letters of the values to write.
#[derive(Clone, Debug)]
pub struct Letters(Vec<u8>);

/// A letter that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is no field of -F; there are {KNOWN}, and 0 for zero bytes in place of line ends", .0.escape_debug())]
pub struct UnknownLetter(char);

const KNOWN: &str = "pcuLfatDisonPT";
/// `AF_UNIX` and so on.
const UNIX: u8 = 1;
const INET: u8 = 2;
const INET6: u8 = 10;
/// Ends values with a zero byte, and rows with a line end.
const ZERO: u8 = b'0';

impl FromStr for Letters {
    type Err = UnknownLetter;

    fn from_str(text: &str) -> Result<Self, UnknownLetter> {
        match text.chars().find(|&one| !KNOWN.contains(one) && one != '0') {
            Some(unknown) => Err(UnknownLetter(unknown)),
            None => Ok(Self(text.bytes().collect())),
        }
    }
}

impl Letters {
    fn has(&self, letter: u8) -> bool {
        self.0.contains(&letter)
    }

    /// The groups of fields that the letters need.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::FILES;
        if self.has(b'n') {
            fields |= Fields::PATHS | Fields::SOCKETS;
        }
        if [b'D', b'i', b's'].iter().any(|&letter| self.has(letter)) {
            fields |= Fields::STAT;
        }
        if [b'P', b'T', b't'].iter().any(|&letter| self.has(letter)) {
            fields |= Fields::SOCKETS;
        }
        fields
    }

    /// Writes a set of lines for each process, and one for each of its files.
    pub fn write(
        &self,
        rows: &Rows<'_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let mut last = None;
        let mut line = Line {
            letters: self,
            text: Vec::new(),
        };
        for row in rows.iter() {
            let (Some(holder), Some(file)) = (row.holder, row.file) else {
                continue;
            };
            if last != Some(holder.pid()) {
                last = Some(holder.pid());
                // lsof always writes these two, which begin a process and a file.
                line.put_always(b'p', holder.pid().to_string().as_bytes());
                line.put_escaped(b'c', holder.comm());
                line.put(b'u', holder.uid().to_string().as_bytes());
                line.put_field(b'L', "user", row, lookup);
                line.end(output)?;
            }
            line.put_always(b'f', &slot(file));
            line.put_file(file, row, lookup);
            line.end(output)?;
        }
        Ok(())
    }
}

fn slot(file: File<'_>) -> Vec<u8> {
    match file.slot() {
        Slot::Descriptor(number) => number.to_string().into_bytes(),
        Slot::CurrentDirectory => b"cwd".into(),
        Slot::Root => b"rtd".into(),
        _ => b"txt".into(),
    }
}

/// lsof's words for kinds of files.
fn type_name(file: File<'_>) -> &'static str {
    match file.kind() {
        Kind::File | Kind::Namespace => "REG",
        Kind::Directory => "DIR",
        Kind::Character => "CHR",
        Kind::Block => "BLK",
        Kind::Fifo | Kind::Pipe => "FIFO",
        Kind::Anonymous | Kind::Pidfd => "a_inode",
        Kind::Link => "LINK",
        Kind::Socket | Kind::Bound => file.socket().map_or("sock", socket_type_name),
        _ => "unknown",
    }
}

fn socket_type_name(socket: Socket<'_>) -> &'static str {
    let is_raw = socket.netid() == "raw";
    match socket.family() {
        _ if !is_listed(socket) => "sock",
        INET if is_raw => "raw",
        INET => "IPv4",
        INET6 if is_raw => "raw6",
        INET6 => "IPv6",
        UNIX => "unix",
        16 => "netlink",
        17 => "pack",
        _ => "sock",
    }
}

fn is_inet(socket: Socket<'_>) -> bool {
    matches!(socket.family(), INET | INET6)
}

/// Whether the tables of /proc/net have it, from which lsof reads: not if it has no port, nor TCP before it connects or listens.
fn is_listed(socket: Socket<'_>) -> bool {
    let is_open_tcp = socket.netid() == "tcp" && socket.state_name() == "UNCONN";
    let has_port = || socket.local().and_then(Address::port) != Some(0);
    !is_inet(socket) || socket.netid() == "raw" || !is_open_tcp && has_port()
}

/// lsof's words for states; UDP has none.
fn state_name(socket: Socket<'_>) -> Option<&'static str> {
    let words = match socket.netid() {
        "u_str" | "u_dgr" | "u_seq" => ["CONNECTED", "UNCONNECTED"],
        "tcp" => ["ESTABLISHED", "CLOSE"],
        _ => return None,
    };
    Some(match socket.state_name() {
        "ESTAB" => words[0],
        "UNCONN" => words[1],
        "SYN-SENT" => "SYN_SENT",
        "SYN-RECV" => "SYN_RECV",
        "FIN-WAIT-1" => "FIN_WAIT1",
        "FIN-WAIT-2" => "FIN_WAIT2",
        "TIME-WAIT" => "TIME_WAIT",
        "CLOSE-WAIT" => "CLOSE_WAIT",
        "LAST-ACK" => "LAST_ACK",
        other => other,
    })
}

/// An end of a socket: the unspecified address is a star, and so is the port 0.
fn write_address(address: Address<'_>, to: &mut Vec<u8>) {
    let Address::Inet(ip, port) = address else {
        return address.write(to);
    };
    let ip = match ip.to_canonical() {
        ip if ip.is_unspecified() => "*".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let port = if port == 0 {
        "*".to_owned()
    } else {
        port.to_string()
    };
    to.extend_from_slice(format!("{ip}:{port}").as_bytes());
}

fn socket_name(socket: Socket<'_>) -> Vec<u8> {
    let mut name = Vec::new();
    if let Some(local) = socket.local() {
        write_address(local, &mut name);
    }
    if let Some(peer) = socket.peer().filter(|_| is_inet(socket)) {
        name.extend_from_slice(b"->");
        write_address(peer, &mut name);
    }
    let kind = match socket.netid() {
        "u_str" => "type=STREAM",
        "u_dgr" => "type=DGRAM",
        "u_seq" => "type=SEQPACKET",
        _ => return name,
    };
    if !name.is_empty() {
        name.push(b' ');
    }
    name.extend_from_slice(kind.as_bytes());
    name
}

struct Line<'a> {
    letters: &'a Letters,
    text: Vec<u8>,
}

impl Line<'_> {
    fn end_of_value(&self) -> u8 {
        if self.letters.has(ZERO) { 0 } else { b'\n' }
    }

    fn put_always(&mut self, letter: u8, value: &[u8]) {
        self.text.push(letter);
        self.text.extend_from_slice(value);
        self.text.push(self.end_of_value());
    }

    fn put(&mut self, letter: u8, value: &[u8]) {
        if self.letters.has(letter) {
            self.put_always(letter, value);
        }
    }

    /// A name may hold a line end, which would begin another value.
    fn put_escaped(&mut self, letter: u8, value: &[u8]) {
        if self.letters.has(letter) {
            self.text.push(letter);
            escape(value, &mut self.text);
            self.text.push(self.end_of_value());
        }
    }

    fn put_field(&mut self, letter: u8, name: &str, row: &Row<'_>, lookup: &mut Lookup) {
        let Ok(field) = find(name) else {
            return;
        };
        if let Value::Text(text) = field.value(row, lookup) {
            let text = text.to_vec();
            self.put_escaped(letter, &text);
        }
    }

    fn put_file(&mut self, file: File<'_>, row: &Row<'_>, lookup: &mut Lookup) {
        if file.mode().is_some() {
            self.put_field(b'a', "mode", row, lookup);
        } else {
            self.put(b'a', b" ");
        }
        self.put(b't', type_name(file).as_bytes());
        // A socket has no file system that anyone could name.
        if let Some(device) = file.device().filter(|_| file.socket().is_none()) {
            let number = rustix::fs::makedev(device.major, device.minor);
            self.put(b'D', format!("0x{number:x}").as_bytes());
        }
        // As with lsof -o, the position is in place of the size if it is asked for.
        match (file.position(), file.size()) {
            (Some(position), _) if self.letters.has(b'o') => {
                self.put(b'o', format!("0t{position}").as_bytes());
            }
            (_, Some(size)) => self.put(b's', size.to_string().as_bytes()),
            _ => {}
        }
        if let Some(inode) = file.inode() {
            self.put(b'i', inode.to_string().as_bytes());
        }
        let has_address = |socket: &Socket<'_>| is_inet(*socket) || socket.family() == UNIX;
        let socket = file.socket().filter(has_address);
        match socket.filter(|&socket| is_listed(socket)) {
            Some(socket) => self.put_socket(socket),
            None => self.put_field(b'n', "name", row, lookup),
        }
    }

    fn put_socket(&mut self, socket: Socket<'_>) {
        let has_protocol = is_inet(socket) && socket.netid() != "raw";
        if has_protocol {
            self.put(b'P', socket.netid().to_uppercase().as_bytes());
        }
        if self.letters.has(b'n') {
            self.put_escaped(b'n', &socket_name(socket));
        }
        if let Some(state) = state_name(socket) {
            self.put(b'T', format!("ST={state}").as_bytes());
        }
        if let Some(received) = socket.receive_queue().filter(|_| has_protocol) {
            self.put(b'T', format!("QR={received}").as_bytes());
            let sent = socket.send_queue().unwrap_or_default();
            self.put(b'T', format!("QS={sent}").as_bytes());
        }
    }

    /// Writes the lines of a process or of a file.
    fn end(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if self.letters.has(ZERO) {
            self.text.push(b'\n');
        }
        output.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_lsof() {
        for (ip, port, expected) in [
            ("0.0.0.0", 80, "*:80"),
            ("::", 80, "*:80"),
            ("::1", 80, "[::1]:80"),
            ("::ffff:127.0.0.1", 80, "127.0.0.1:80"),
            ("127.0.0.1", 0, "127.0.0.1:*"),
        ] {
            let ip: IpAddr = ip.parse().expect("an address");
            let mut name = Vec::new();
            write_address(Address::Inet(ip, port), &mut name);
            assert_eq!(name, expected.as_bytes());
        }
    }
}
