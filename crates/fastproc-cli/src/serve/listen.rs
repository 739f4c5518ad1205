//! Where metrics are served.

use std::{io, net::TcpListener};

/// The address cannot be listened at.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
pub struct ListenError {
    address: String,
    #[source]
    source: io::Error,
}

/// Listens at an address, or with `:PORT` at all of them.
pub fn at(address: &str) -> Result<TcpListener, ListenError> {
    let failed = |source| ListenError {
        address: address.into(),
        source,
    };
    let listener = match address.strip_prefix(':') {
        // As Go has it: at every address, of either family where there are both.
        Some(port) => TcpListener::bind(format!("[::]:{port}"))
            .or_else(|_| TcpListener::bind(format!("0.0.0.0:{port}"))),
        None => TcpListener::bind(address),
    };
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
