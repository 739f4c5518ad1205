//! The protocol between the collecting and the serving process. A message has a fixed number of 64-bit words, and may
//! carry a descriptor. Data of variable length (files, rules, the metrics) come as the descriptor of a file in memory.
//!
//! The serving process asks, the collecting process answers. There are two links, since scrapes must continue while a
//! file takes long to be read: [`Question`] uses one, [`Scrape`] the other.

mod text;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use fastproc::message;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

pub use self::text::{LONGEST, lend, read, refusal, refused, take};
use crate::{exposition::Format, page::PAGES, reloaded::Reloaded};

/// Changes whenever the meaning of a message changes.
pub const VERSION: &str = "5";

/// The words of a message.
pub const WORDS: usize = 4;

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Its words.
    pub words: [u64; WORDS],
    /// The descriptor that came with it.
    pub descriptor: Option<OwnedFd>,
}

/// One end of a socket pair.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl From<OwnedFd> for Link {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl From<Link> for OwnedFd {
    fn from(link: Link) -> Self {
        link.0
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Link {
    /// Creates both ends.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    /// Sends a message without waiting. The order of questions and answers leaves room for it, so an end that does not
    /// read counts as gone (`WouldBlock`).
    pub fn send(&self, words: [u64; WORDS], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = words.map(u64::to_ne_bytes);
        message::send(&self.0, bytes.as_flattened(), descriptor)
    }

    /// Waits for the next message. `None`: the other end is gone.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        let mut bytes = [[0; 8]; WORDS];
        match message::receive(&self.0, bytes.as_flattened_mut()) {
            // The other end exited, maybe before it had read everything.
            Ok((0, _)) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Ok((received, descriptor)) if received == bytes.as_flattened().len() => {
                Ok(Some(Message {
                    words: bytes.map(u64::from_ne_bytes),
                    descriptor,
                }))
            }
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(error) => Err(error),
        }
    }

    /// Whether this error means that the other end is gone.
    pub fn is_end(error: &io::Error) -> bool {
        matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
        )
    }

    /// Whether there is a message, or the other end has closed.
    pub fn has_news(&self) -> bool {
        let mut socket = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut socket, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Sends a message, and waits for the answer.
    pub fn ask(
        &self,
        words: [u64; WORDS],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<Message> {
        self.send(words, descriptor)?;
        self.receive()?
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// What the serving process asks before it serves, and at each reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Question {
    /// The file that says how processes are grouped.
    Groups = 1,
    /// The web configuration.
    Web = 2,
    /// A file that the web configuration names; its name comes as a text.
    Named = 3,
    /// The configuration can be used. With whether there is TLS, and the rules as a text if a file has them.
    Configured = 4,
}

impl Question {
    /// The question in the first word of a message.
    pub fn of(message: &Message) -> Option<Self> {
        [Self::Groups, Self::Web, Self::Named, Self::Configured]
            .into_iter()
            .find(|&question| question as u64 == message.words[0])
    }
}

/// A request of the process that serves metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrape {
    /// Read every process and counter again.
    pub collects: bool,
    /// Other rules come with it as a text. They count from the next snapshot on.
    pub regroups: bool,
    /// Write the last snapshot in this format.
    pub format: Option<Format>,
    /// Write it into this one of the [`PAGES`]: the text in another may still be being sent.
    pub page: usize,
    /// How the configuration was read the last time.
    pub reloaded: Reloaded,
    /// The time and memory of the serving process.
    pub used: Used,
}

/// Time and memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time since it began, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory.
    pub resident_bytes: u64,
}

impl Scrape {
    const COLLECTS: u64 = 1;
    const PROMETHEUS: u64 = 2;
    const OPEN_METRICS: u64 = 4;
    const RELOADED: u64 = 8;
    const REGROUPS: u64 = 16;
    /// The page is in the bits from this one on.
    const PAGE: u64 = 32;

    /// Converts to words.
    pub fn words(self) -> [u64; WORDS] {
        let collects = if self.collects { Self::COLLECTS } else { 0 };
        let format = match self.format {
            None => 0,
            Some(Format::Prometheus) => Self::PROMETHEUS,
            Some(Format::OpenMetrics) => Self::OPEN_METRICS,
        };
        let regroups = if self.regroups { Self::REGROUPS } else { 0 };
        let page = self.page as u64 * Self::PAGE;
        let reloaded = if self.reloaded.successful {
            Self::RELOADED
        } else {
            0
        };
        [
            collects | format | reloaded | regroups | page,
            self.reloaded.success_unix_ns,
            self.used.cpu_ns,
            self.used.resident_bytes,
        ]
    }

    /// Converts from words.
    pub fn of(words: [u64; WORDS]) -> Self {
        let [flags, success_unix_ns, cpu_ns, resident_bytes] = words;
        let has = |flag| flags & flag != 0;
        Self {
            collects: has(Self::COLLECTS),
            regroups: has(Self::REGROUPS),
            format: match (has(Self::PROMETHEUS), has(Self::OPEN_METRICS)) {
                (_, true) => Some(Format::OpenMetrics),
                (true, false) => Some(Format::Prometheus),
                (false, false) => None,
            },
            page: (flags / Self::PAGE) as usize % PAGES,
            reloaded: Reloaded {
                successful: has(Self::RELOADED),
                success_unix_ns,
            },
            used: Used {
                cpu_ns,
                resident_bytes,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::IoSlice, mem::MaybeUninit};

    use rustix::{
        cmsg_space,
        net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    };

    use super::*;

    #[test]
    fn a_message_and_its_descriptor_come_through() {
        let (one, other) = Link::pair().unwrap();
        assert!(!other.has_news());
        let text = lend(b"a text").unwrap();
        one.send([1, 2, 3, u64::MAX], Some(text.as_fd())).unwrap();
        assert!(other.has_news());
        let message = other.receive().unwrap().unwrap();
        assert_eq!(message.words, [1, 2, 3, u64::MAX]);
        assert_eq!(take(message.descriptor.unwrap()).unwrap(), b"a text");
        one.send([5; WORDS], None).unwrap();
        drop(one);
        assert!(other.receive().unwrap().unwrap().descriptor.is_none());
        assert!(other.has_news());
        assert!(other.receive().unwrap().is_none());
    }

    #[test]
    fn a_peer_that_reads_nothing_does_not_block_the_sender() {
        let (one, _other) = Link::pair().unwrap();
        let error = loop {
            if let Err(error) = one.send([0; WORDS], None) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!Link::is_end(&error));
    }

    #[test]
    fn a_message_with_more_descriptors_than_one_is_an_error() {
        let (one, other) = Link::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [one.as_fd(); 3];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes = [0; 8 * WORDS];
        let parts = [IoSlice::new(&bytes)];
        sendmsg(&one.0, &parts, &mut control, SendFlags::empty()).unwrap();
        let error = other.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_scrape_is_words() {
        for format in [None, Some(Format::Prometheus), Some(Format::OpenMetrics)] {
            for (collects, successful) in [(false, true), (true, false)] {
                let scrape = Scrape {
                    collects,
                    regroups: !successful,
                    format,
                    page: if collects { PAGES - 1 } else { 0 },
                    reloaded: Reloaded {
                        successful,
                        success_unix_ns: 17,
                    },
                    used: Used {
                        cpu_ns: 18,
                        resident_bytes: 19,
                    },
                };
                assert_eq!(Scrape::of(scrape.words()), scrape);
            }
        }
    }
}
