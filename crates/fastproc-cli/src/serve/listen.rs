//! The socket at which metrics are served.

use std::{io, net::TcpListener};

/// Listening at the address failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
pub struct ListenError {
    address: String,
    #[source]
    source: io::Error,
}

/// Listens at an address, or with `:PORT` at all addresses.
pub fn at(address: &str) -> Result<TcpListener, ListenError> {
    let failed = |source| ListenError {
        address: address.into(),
        source,
    };
    let listener = match address.strip_prefix(':') {
        // Like Go: at all addresses, of both families if they exist.
        Some(port) => TcpListener::bind(format!("[::]:{port}"))
            .or_else(|_| TcpListener::bind(format!("0.0.0.0:{port}"))),
        None => TcpListener::bind(address),
    };
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
