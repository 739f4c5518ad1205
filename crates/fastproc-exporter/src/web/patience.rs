//! A connection whose peer must take what it asked for in time.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// Wraps a connection: from the first byte of an answer to the last, no more than `limit` may pass.
///
/// hyper limits how long a request's header may take; how long its answer is read is up to the peer.
pub(super) struct Patient<T> {
    inner: T,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(super) fn new(inner: T, limit: Duration) -> Self {
        Self {
            inner,
            limit,
            deadline: None,
        }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let limit = self.limit;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes the connection when all of its own memory is written: the answer is out.
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        match flushed {
            Poll::Ready(_) => self.deadline = None,
            Poll::Pending => self.check(context)?,
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_an_answer_is_given_up() {
        let (server, _client) = duplex(16);
        let mut server = Patient::new(server, LIMIT);
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// A few bytes now and then do not buy more time.
    #[tokio::test(start_paused = true)]
    async fn who_takes_little_by_little_is_given_up_as_well() {
        let (server, mut client) = duplex(16);
        let mut server = Patient::new(server, LIMIT);
        tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(LIMIT / 10).await;
            }
        });
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_time() {
        let (server, mut client) = duplex(16);
        let mut server = Patient::new(server, LIMIT);
        for _ in 0..5 {
            server.write_all(&[0; 16]).await.unwrap();
            server.flush().await.unwrap();
            client.read_exact(&mut [0; 16]).await.unwrap();
            tokio::time::sleep(LIMIT * 2).await;
        }
    }
}
