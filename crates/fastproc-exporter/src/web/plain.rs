//! Plain HTTP requests to a port with TLS: answered with one sentence, as by Go's servers.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Limits;

const SENTENCE: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// Whether a client begins with the name of a method. TLS begins with a byte that is not a letter.
pub(super) async fn is_request(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1) if first[0].is_ascii_uppercase())
}

/// Answers. Reads what the client still sends, within limits, since closing with unread data would lose the answer.
pub(super) async fn refuse(stream: &mut TcpStream, limits: Limits) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{SENTENCE}",
        SENTENCE.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(limits.header_bytes as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}
