//! Why the service is not used.

use std::{io, path::PathBuf};

use super::wire::Status;

/// Why the service cannot be used, or why it failed. A collector that may choose goes on with the next source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens there.
    #[error(
        "no service at {0} (`sudo fastproc serve --no-metrics --socket {0}` starts one)",
        path.display()
    )]
    NotThere {
        /// The socket.
        path: PathBuf,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
    /// Another user than root or oneself runs it, and root has not put the socket where it is.
    #[error("the service at {} is run by user {uid}; only those of root and of oneself are trusted, and those in a folder that only root can write", path.display())]
    Untrusted {
        /// The socket.
        path: PathBuf,
        /// Who runs it.
        uid: u32,
    },
    /// It answers, and does not serve this reader.
    #[error("{0}")]
    Refused(Status),
    /// It did not answer in time.
    #[error("the service did not answer within {waited_ms} ms")]
    Timeout {
        /// How long it was waited for.
        waited_ms: u128,
    },
    /// It failed before, was asked once more whether it serves, and has not answered yet. Nobody waits for that.
    #[error("the service failed, and has not answered since")]
    Waiting,
    /// It has ended, or the connection failed.
    #[error("the connection to the service broke")]
    Broken(#[source] io::Error),
    /// It lays out records in another way, and not all of these fields are among those that it describes.
    #[error(
        "the service lays out records in another way, without all of these fields; use the same version on both sides"
    )]
    Layout,
    /// It serves, and does not record what ends.
    #[error(
        "the service cannot record exits: it does not read by BPF, or too much was asked of it just now"
    )]
    NoExits,
    /// What it answers makes no sense.
    #[error("the service answered what makes no sense: {0}")]
    Protocol(&'static str),
    /// Its buffer cannot be mapped.
    #[error("the buffer of the service cannot be used")]
    Buffer(#[source] io::Error),
}
