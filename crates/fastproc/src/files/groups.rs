//! What to read of open files: a caller requests groups, and does not pay for others.

use super::object::layout;

bitflags::bitflags! {
    /// Groups of fields. Without any, a snapshot only counts the descriptors of every process, by kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Fields: u32 {
        /// Every descriptor, with kind, device, inode, flags and position; also the current directory, the root directory and the
        /// program of every process.
        const FILES = layout::FILES;
        /// The addresses, states and queues of sockets. Without [`FILES`](Self::FILES), only sockets are listed.
        const SOCKETS = layout::SOCKETS;
        /// Names and paths of files.
        const PATHS = layout::PATHS;
        /// What drivers say of clients of GPUs ([`File::gpu`](super::File::gpu)). Without [`FILES`](Self::FILES), only open GPUs are
        /// listed.
        const GPUS = layout::GPUS;
        /// Device and inode numbers where stat(2) shows others than the kernel keeps in its inodes (overlayfs, btrfs). They are
        /// asked for file by file.
        const STAT = 16;
    }
}

/// What a descriptor is open on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A character device.
    Character,
    /// A block device.
    Block,
    /// A pipe with a path.
    Fifo,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// An object without a path: an eventfd, an epoll set, a BPF map and so on. Its name says which.
    Anonymous,
    /// A namespace.
    Namespace,
    /// A process.
    Pidfd,
    /// A symbolic link, opened by `O_PATH`.
    Link,
    /// The file that a unix socket is bound to, opened by `O_PATH`.
    Bound,
    /// Something else, or a descriptor that changed whenever it was read.
    Other,
}

impl Kind {
    /// All kinds, in the order of the counts.
    pub const ALL: [Self; 13] = [
        Self::Other,
        Self::File,
        Self::Directory,
        Self::Character,
        Self::Block,
        Self::Fifo,
        Self::Pipe,
        Self::Socket,
        Self::Anonymous,
        Self::Namespace,
        Self::Pidfd,
        Self::Link,
        Self::Bound,
    ];

    pub(super) fn from_number(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::Other)
    }

    pub(super) fn number(self) -> u8 {
        Self::ALL.iter().position(|&kind| kind == self).unwrap_or(0) as u8
    }

    /// A word for it, as in `file`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Character => "character",
            Self::Block => "block",
            Self::Fifo => "fifo",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Anonymous => "anonymous",
            Self::Namespace => "namespace",
            Self::Pidfd => "pidfd",
            Self::Link => "link",
            Self::Bound => "bound",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_of_the_program() {
        let numbers = [
            (layout::OTHER, Kind::Other),
            (layout::FILE, Kind::File),
            (layout::DIRECTORY, Kind::Directory),
            (layout::CHARACTER, Kind::Character),
            (layout::BLOCK, Kind::Block),
            (layout::FIFO, Kind::Fifo),
            (layout::PIPE, Kind::Pipe),
            (layout::SOCKET, Kind::Socket),
            (layout::ANONYMOUS, Kind::Anonymous),
            (layout::NAMESPACE, Kind::Namespace),
            (layout::PIDFD, Kind::Pidfd),
            (layout::LINK, Kind::Link),
            (layout::BOUND, Kind::Bound),
        ];
        for (number, kind) in numbers {
            assert_eq!(u32::from(kind.number()), number, "{kind:?}");
            assert_eq!(Kind::from_number(number as u8), kind);
        }
        assert_eq!(Kind::from_number(99), Kind::Other);
    }
}
