//! The socket at which metrics are served.

use std::{io, net::TcpListener};

/// Listening at the address failed.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen at {address}")]
    Failed { address: String, source: io::Error },
    #[error("'{0}' is no address; type :{0} for all addresses, or 127.0.0.1:{0}")]
    Port(String),
    #[error("'{0}' has no port; type {0}:9256")]
    NoPort(String),
}

/// Listens at an address, or with `:PORT` at all addresses.
pub fn at(address: &str) -> Result<TcpListener, ListenError> {
    if !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ListenError::Port(address.into()));
    }
    if !address.contains(':') {
        return Err(ListenError::NoPort(address.into()));
    }
    let failed = |source| ListenError::Failed {
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
