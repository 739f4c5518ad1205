//! `-F`: the lines of `lsof -F`, which scripts parse.

use std::{
    io::{self, Write},
    str::FromStr,
};

use fastproc::files::{Fields, File, Kind, Slot, Socket};
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
        if self.has(b'P') || self.has(b'T') {
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
        Kind::Socket | Kind::Bound => match file.socket().map(Socket::family) {
            Some(2) => "IPv4",
            Some(10) => "IPv6",
            Some(1) => "unix",
            Some(16) => "netlink",
            _ => "sock",
        },
        _ => "unknown",
    }
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
        if file.descriptor().is_some() {
            self.put_field(b'a', "mode", row, lookup);
        }
        self.put(b't', type_name(file).as_bytes());
        if let Some(device) = file.device() {
            let number = rustix::fs::makedev(device.major, device.minor);
            self.put(b'D', format!("0x{number:x}").as_bytes());
        }
        if let Some(size) = file.size() {
            self.put(b's', size.to_string().as_bytes());
        } else if let Some(position) = file.position() {
            self.put(b'o', format!("0t{position}").as_bytes());
        }
        if let Some(inode) = file.inode() {
            self.put(b'i', inode.to_string().as_bytes());
        }
        let Some(socket) = file.socket() else {
            self.put_field(b'n', "name", row, lookup);
            return;
        };
        self.put(b'P', socket.netid().to_uppercase().as_bytes());
        if self.letters.has(b'n') {
            let mut name = Vec::new();
            if let Some(local) = socket.local() {
                local.write(&mut name);
            }
            if let Some(peer) = socket.peer().filter(|peer| peer.port().is_some()) {
                name.extend_from_slice(b"->");
                peer.write(&mut name);
            }
            self.put_escaped(b'n', &name);
        }
        if let (Some(received), Some(sent)) = (socket.receive_queue(), socket.send_queue()) {
            self.put(b'T', format!("ST={}", socket.state_name()).as_bytes());
            self.put(b'T', format!("QR={received}").as_bytes());
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
