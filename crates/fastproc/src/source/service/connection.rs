//! A connection to the service, and the buffers that it has passed.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        socket::{
            AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, setsockopt,
            socket,
            sockopt::{PeerCredentials, ReceiveTimeout},
        },
        time::TimeVal,
    },
};
use rustix::process::{Gid, Pid, Uid, getegid, geteuid, getpid};

use super::{
    environment,
    mapping::Mapping,
    trust::is_trusted,
    wire::{self, HOLDS, Op, Reply, Request},
};
use crate::base::{error::service::Error, message, plain::Plain};

/// Longest text behind an answer: more does not fit into a message of a socket with default settings.
const LONGEST_TEXT: usize = 192 << 10;

/// How long to wait for the status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns who uses the service at this socket, as JSON.
pub fn status(path: &Path) -> Result<String, Error> {
    let mut connection = Connection::open(path, environment::timeout().unwrap_or(STATUS_TIMEOUT))?;
    connection.ask_for_text(Request::new(Op::Status))
}

/// The identity of this process. A child must not use the connection, nor this process after a change of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    pid: Pid,
    uid: Uid,
    gid: Gid,
}

impl Owner {
    fn current() -> Self {
        Self {
            pid: getpid(),
            uid: geteuid(),
            gid: getegid(),
        }
    }
}

#[derive(Debug)]
struct Buffer {
    id: u64,
    mapping: Mapping,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    owner: Owner,
    timeout: Duration,
    /// Whether a request was repeated because the service could not tell who sent it.
    asked_again: bool,
    /// The most recently used buffers, the latest at the end.
    buffers: Vec<Buffer>,
}

impl Connection {
    /// Connects to a service, if it can be trusted.
    pub(super) fn open(path: &Path, timeout: Duration) -> Result<Self, Error> {
        let not_there = |error: Errno| Error::NotThere {
            path: path.to_owned(),
            source: error.into(),
        };
        // Do not wait while the queue of the service is full, nor while it does not answer.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None);
        let socket = socket.map_err(not_there)?;
        let address = UnixAddr::new(path).map_err(not_there)?;
        connect(socket.as_raw_fd(), &address).map_err(not_there)?;
        let peer = getsockopt(&socket, PeerCredentials).map_err(not_there)?;
        let owner = Owner::current();
        if !is_trusted(path, peer.uid()) {
            return Err(Error::Untrusted {
                path: path.to_owned(),
                uid: peer.uid(),
            });
        }
        rustix::io::ioctl_fionbio(&socket, false).map_err(|error| Error::Broken(error.into()))?;
        let limit = TimeVal::new(
            timeout.as_secs() as i64,
            i64::from(timeout.subsec_micros().max(1)),
        );
        setsockopt(&socket, ReceiveTimeout, &limit).map_err(not_there)?;
        Ok(Self {
            socket,
            owner,
            timeout,
            asked_again: false,
            buffers: Vec::new(),
        })
    }

    /// Whether this process made the connection, and its user is the same.
    pub(super) fn is_ours(&self) -> bool {
        self.owner == Owner::current()
    }

    /// Ids of the buffers that the service need not pass again.
    pub(super) fn holds(&self) -> [u64; HOLDS] {
        let mut holds = [0; HOLDS];
        for (hold, buffer) in holds.iter_mut().zip(&self.buffers) {
            *hold = buffer.id;
        }
        holds
    }

    /// One of the last buffers.
    pub(super) fn buffer(&self, id: u64) -> Option<&Mapping> {
        let buffer = self.buffers.iter().rev().find(|buffer| buffer.id == id);
        buffer.map(|buffer| &buffer.mapping)
    }

    /// A part of the buffer of an answer. `None`: its elements have another size, or are not within the buffer.
    pub(super) fn part<T: Plain>(&self, reply: &Reply, number: usize) -> Option<&[T]> {
        let (buffer, part) = (self.buffer(reply.buffer)?, reply.parts[number]);
        let is_of_size = part.count == 0 || part.stride == size_of::<T>() as u64;
        buffer
            .elements(part.offset, part.count)
            .filter(|_| is_of_size)
    }

    /// Sends a request and waits for the answer. Maps the buffer that the answer names.
    pub(super) fn ask(&mut self, request: Request) -> Result<Reply, Error> {
        self.send(request)?;
        let reply = self.answer()?;
        if reply.status != wire::Status::NoPeer || std::mem::replace(&mut self.asked_again, true) {
            return Ok(reply);
        }
        // Before Linux 6.5 the service knows the sender only by the second request.
        self.send(request)?;
        self.answer()
    }

    /// Waits for the answer to the last request.
    pub(super) fn answer(&mut self) -> Result<Reply, Error> {
        // A longer message of a later version is cut. The words that this version knows come first.
        let mut bytes = [0; Reply::WORDS * 8];
        let (len, file) = self.receive(&mut bytes)?;
        let reply = parse(&bytes[..len])?;
        if reply.buffer != 0 {
            self.remember(&reply, file)?;
        }
        Ok(reply)
    }

    /// Whether the answer has arrived, or the connection has ended.
    pub(super) fn has_answer(&self) -> bool {
        let mut byte = [0];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let peeked = nix::sys::socket::recv(self.socket.as_raw_fd(), &mut byte, flags);
        peeked != Err(Errno::EAGAIN)
    }

    /// Sends a request and waits for the text behind the answer.
    pub(super) fn ask_for_text(&mut self, request: Request) -> Result<String, Error> {
        self.send(request)?;
        let mut bytes = vec![0; LONGEST_TEXT];
        let (len, _) = self.receive(&mut bytes)?;
        match parse(&bytes[..len])?.status {
            wire::Status::Ok => {
                let text = bytes.get(Reply::WORDS * 8..len).unwrap_or_default();
                Ok(String::from_utf8_lossy(text).into_owned())
            }
            status => Err(Error::Refused(status)),
        }
    }

    pub(super) fn send(&self, request: Request) -> Result<(), Error> {
        let bytes = wire::to_bytes(&request.to_words());
        message::send(&self.socket, &bytes, None).map_err(Error::Broken)
    }

    fn receive(&self, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Error> {
        match message::receive(&self.socket, bytes) {
            Ok((0, _)) => Err(Error::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(received) => Ok(received),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::Timeout {
                waited: self.timeout,
            }),
            Err(error) => Err(Error::Broken(error)),
        }
    }

    /// Maps the buffer of an answer, or finds it among those that are mapped.
    fn remember(&mut self, reply: &Reply, file: Option<OwnedFd>) -> Result<(), Error> {
        let known = self
            .buffers
            .iter()
            .position(|buffer| buffer.id == reply.buffer);
        let known = known.map(|at| self.buffers.remove(at));
        let buffer = match (file, known) {
            (Some(file), _) => Buffer {
                id: reply.buffer,
                mapping: Mapping::new(&file.into(), reply.buffer_bytes).map_err(Error::Buffer)?,
            },
            (None, Some(known)) if known.mapping.len() as u64 >= reply.buffer_bytes => known,
            (None, _) => return Err(Error::Protocol("a buffer that was never passed")),
        };
        if self.buffers.len() == HOLDS {
            self.buffers.remove(0);
        }
        self.buffers.push(buffer);
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Result<Reply, Error> {
    let mut words = [0; Reply::WORDS];
    let len = words.len().min(bytes.len() / 8);
    for (word, read) in words.iter_mut().zip(wire::from_bytes(bytes)) {
        *word = read;
    }
    Reply::from_words(&words[..len]).ok_or(Error::Protocol("an answer is too short"))
}
