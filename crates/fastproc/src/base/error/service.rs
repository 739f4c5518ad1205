//! Why the service is not used.

use std::{io, path::PathBuf, time::Duration};

/// Why the service cannot be used, or why it failed. A collector that may choose its source uses the next one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing listens on the socket.
    #[error(
        "no service at {0} (start one as root: fastproc serve --no-metrics --socket {0})",
        path.display()
    )]
    NotThere {
        /// The socket.
        path: PathBuf,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
    /// The environment says that no service is to be used.
    #[error(
        "FASTPROC_SOCKET is empty, so no service is used; unset it, or let it name the socket of a service"
    )]
    NotWanted,
    /// Another user than root or this one runs it, in a folder that not only root can write to.
    #[error("the service at {} runs as user {uid}; only a service that runs as root or as this user is trusted, or whose socket is in a folder that only root can write", path.display())]
    Untrusted {
        /// The socket.
        path: PathBuf,
        /// Its user.
        uid: u32,
    },
    /// It answers, but refuses to serve this reader.
    #[error("{0}")]
    Refused(Status),
    /// It did not answer in time.
    #[error("the service did not answer within {} ms", waited.as_millis())]
    Timeout {
        /// How long this process waited.
        waited: Duration,
    },
    /// It failed before, was asked again whether it serves, and has not answered yet. Nothing waits for the
    /// answer.
    #[error("the service failed, and has not answered since")]
    Waiting,
    /// It has ended, or the connection failed.
    #[error("the connection to the service broke")]
    Broken(#[source] io::Error),
    /// It has another layout of records, whose description lacks some of these fields.
    #[error(
        "the service is of another version, and its records lack some of these fields; use the same version on both sides"
    )]
    Layout,
    /// It serves, but does not record exits.
    #[error("the service cannot record exits: it does not read by BPF, or is overloaded")]
    NoExits,
    /// Its answer is not valid.
    #[error("the service sent an invalid answer: {0}")]
    Protocol(&'static str),
    /// Its buffer cannot be mapped.
    #[error("the buffer of the service cannot be used")]
    Buffer(#[source] io::Error),
}

/// Whether a request was served, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u64)]
#[non_exhaustive]
pub enum Status {
    /// It was served.
    #[error("served")]
    Ok = 0,
    /// The service speaks another version.
    #[error("the service speaks another version of the protocol; restart it after an upgrade")]
    Version = 1,
    /// The service does not understand the request.
    #[error("the service does not understand the request")]
    BadRequest = 2,
    /// The service cannot collect these groups.
    #[error("the service does not collect these fields")]
    Groups = 3,
    /// The reader lives in another namespace or root directory than the service.
    #[error(
        "this process has another mount, pid, user or time namespace, or another root directory, than the service"
    )]
    Namespace = 4,
    /// `/proc` hides processes from the reader.
    #[error("/proc is mounted with hidepid, so the service serves only root")]
    HidePid = 5,
    /// The service cannot decide from the reader's credentials what the kernel would show it.
    #[error("the service cannot tell what the kernel would show this process")]
    Credentials = 6,
    /// The kernel cannot name the process that connected (before Linux 6.5). Ask again: by the next request
    /// the service may know the reader, unless it is root.
    #[error("this kernel cannot tell the service who has connected (Linux 6.5 can)")]
    NoPeer = 7,
    /// The message came from another process or user than the one that connected.
    #[error("this connection was made by another process or user")]
    NotYours = 8,
    /// Readers of this user hold too much memory, or have asked for too many walks within a second.
    #[error("readers of this user hold or request too many snapshots")]
    Busy = 9,
    /// The service could not make a snapshot.
    #[error("the service cannot make a snapshot")]
    Failed = 10,
    /// A status that this reader does not know.
    #[error("the service refuses for a reason that this version does not know")]
    Unknown = u64::MAX,
}

impl Status {
    const ALL: [Self; 11] = [
        Self::Ok,
        Self::Version,
        Self::BadRequest,
        Self::Groups,
        Self::Namespace,
        Self::HidePid,
        Self::Credentials,
        Self::NoPeer,
        Self::NotYours,
        Self::Busy,
        Self::Failed,
    ];

    pub(crate) fn from_word(word: u64) -> Self {
        let known = usize::try_from(word).ok().and_then(|at| Self::ALL.get(at));
        known.copied().unwrap_or(Self::Unknown)
    }
}
