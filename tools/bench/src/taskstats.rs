//! The kernel's taskstats, by generic netlink: many processes with two system calls.
//!
//! See Documentation/accounting/taskstats.rst and taskstats-struct.rst. Needs `CAP_NET_ADMIN`.

use std::{
    mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind,
        netlink::{GENERIC, SocketAddrNetlink},
        recv, send, socket_with,
        sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force},
    },
};

use super::measure::Failure;

// linux/netlink.h and linux/genetlink.h: nlmsghdr (16 bytes), genlmsghdr (4), nlattr (4).
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const HEADER: usize = 16 + 4;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The controller's family, which knows the numbers of the others.
const GENL_ID_CTRL: u16 = 16;

// linux/taskstats.h
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_PID: u16 = 1;

/// The number of processes in one message. More do not make it measurably faster.
const BATCH: usize = 128;
/// A reply has about 400 to 500 bytes, and grows with the kernel.
const REPLY: usize = 2048;
/// Header, attribute, pid.
const REQUEST: usize = HEADER + 4 + 4;

/// A socket to the kernel, and buffers that are used again.
pub struct Taskstats {
    socket: OwnedFd,
    family: u16,
    requests: Vec<u8>,
    replies: Box<[[u8; REPLY]]>,
}

impl Taskstats {
    /// Finds the family, and sends one request, so that a missing privilege is detected at once.
    pub fn open() -> Result<Self, Failure> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(GENERIC),
        )
        .map_err(|errno| format!("no netlink socket: {errno}"))?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        let family = family(&socket, b"TASKSTATS\0")?;
        // All replies of a batch wait in the socket. Without CAP_NET_ADMIN taskstats does not work either.
        set_socket_recv_buffer_size_force(&socket, 8 << 20)
            .or_else(|_| set_socket_recv_buffer_size(&socket, 8 << 20))?;
        let replies = vec![[0; REPLY]; BATCH].into();
        let mut taskstats = Self {
            socket,
            family,
            requests: Vec::with_capacity(BATCH * REQUEST),
            replies,
        };
        match taskstats.query([std::process::id()].into_iter()) {
            Ok(1) => Ok(taskstats),
            Ok(_) => Err("taskstats do not know this process".into()),
            Err(error) => {
                Err(format!("taskstats are refused: {error}; they need CAP_NET_ADMIN").into())
            }
        }
    }

    /// Requests all of these processes. Returns how many were answered; the others have exited.
    pub fn query(&mut self, pids: impl Iterator<Item = u32>) -> Result<usize, Failure> {
        let mut pids = pids.peekable();
        let mut answered = 0;
        while pids.peek().is_some() {
            self.requests.clear();
            let mut asked = 0;
            for pid in pids.by_ref().take(BATCH) {
                request(
                    &mut self.requests,
                    self.family,
                    TASKSTATS_CMD_GET,
                    TASKSTATS_CMD_ATTR_PID,
                    &pid.to_ne_bytes(),
                );
                asked += 1;
            }
            send(&self.socket, &self.requests, SendFlags::empty())?;
            answered += self.receive(asked)?;
        }
        Ok(answered)
    }

    /// Receives one reply for each request, each in its own datagram.
    fn receive(&mut self, asked: usize) -> Result<usize, Failure> {
        let (mut received, mut answered) = (0, 0);
        while received < asked {
            let lengths = receive_many(&self.socket, &mut self.replies[received..asked])?;
            for (reply, length) in self.replies[received..]
                .iter()
                .zip(lengths.iter().flatten())
            {
                match error(&reply[..*length]) {
                    None => answered += 1,
                    Some(Errno::SRCH) => {}
                    Some(errno) => return Err(errno.into()),
                }
                received += 1;
            }
        }
        Ok(answered)
    }
}

/// recvmmsg(2): at least one datagram, and all that are waiting. Returns their lengths.
fn receive_many(
    socket: &OwnedFd,
    into: &mut [[u8; REPLY]],
) -> Result<[Option<usize>; BATCH], Errno> {
    // SAFETY: an all-zero mmsghdr is a valid one: no name, no buffers, no control data.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut buffers = [libc::iovec {
        iov_base: ptr::null_mut(),
        iov_len: 0,
    }; BATCH];
    for ((header, buffer), reply) in headers.iter_mut().zip(&mut buffers).zip(into.iter_mut()) {
        buffer.iov_base = reply.as_mut_ptr().cast();
        buffer.iov_len = REPLY;
        header.msg_hdr.msg_iov = ptr::from_mut(buffer);
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = into.len().min(BATCH);
    // SAFETY: `count` headers point to one buffer each, and each buffer to a reply of its length; all outlive the call.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as u32,
            libc::MSG_WAITFORONE as _,
            ptr::null_mut(),
        )
    };
    if received < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    let mut lengths = [None; BATCH];
    for (length, header) in lengths.iter_mut().zip(&headers[..received as usize]) {
        *length = Some((header.msg_len as usize).min(REPLY));
    }
    Ok(lengths)
}

/// Appends a message with one attribute.
fn request(to: &mut Vec<u8>, family: u16, command: u8, attribute: u16, value: &[u8]) {
    let length = HEADER + 4 + value.len();
    to.extend((length as u32).to_ne_bytes());
    to.extend(family.to_ne_bytes());
    to.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence and port.
    to.extend([0; 8]);
    to.extend([command, 1, 0, 0]);
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(attribute.to_ne_bytes());
    to.extend(value);
    // The next message begins at a multiple of four.
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The error that a message reports. A message that is too short counts as an error.
fn error(message: &[u8]) -> Option<Errno> {
    let Some(kind) = u16_at(message, 4) else {
        return Some(Errno::PROTO);
    };
    if kind != NLMSG_ERROR {
        return None;
    }
    let code = message
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, i32::from_ne_bytes);
    Some(Errno::from_raw_os_error(code.unsigned_abs() as i32))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The number of a family of generic netlink, which differs from boot to boot.
fn family(socket: &OwnedFd, name: &[u8]) -> Result<u16, Failure> {
    let mut message = Vec::new();
    request(
        &mut message,
        GENL_ID_CTRL,
        CTRL_CMD_GETFAMILY,
        CTRL_ATTR_FAMILY_NAME,
        name,
    );
    send(socket, &message, SendFlags::empty())?;
    let mut reply = [0; 4096];
    let (length, _) = recv(socket, &mut reply, RecvFlags::empty())?;
    let reply = &reply[..length];
    if let Some(errno) = error(reply) {
        return Err(format!("this kernel has no taskstats (CONFIG_TASKSTATS): {errno}").into());
    }
    attribute(reply.get(HEADER..).unwrap_or_default(), CTRL_ATTR_FAMILY_ID)
        .and_then(|value| u16_at(value, 0))
        .ok_or_else(|| "the kernel's answer names no taskstats family".into())
}

/// The value of an attribute.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let value = attributes.get(4..length)?;
        // The two highest bits are flags.
        if kind & 0x3fff == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}
