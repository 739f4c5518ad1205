//! A connection whose peer must send requests and read answers in time.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// How long each phase of a connection may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeouts {
    /// From one request to the next.
    pub idle: Duration,
    /// From the first byte of a request, or from the opening of the connection, to the end of the header.
    pub header: Duration,
    /// From the first byte of an answer to the last.
    pub answer: Duration,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It was answered, and has not sent another request.
    Idle,
    /// Its request is incomplete.
    Asking,
    /// It reads its answer.
    Answering,
    /// Its request waits until its password is checked. `is_doubted`: its client has shown a wrong one lately.
    Checking { is_doubted: bool },
    /// Its request waits for this server.
    Waiting,
}

/// The phase of a connection and its beginning: shared by the connection, its requests and the table of connections.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// Whether a request has no answer yet.
    waiting: bool,
    /// Whether one of its requests had a right password.
    admitted: bool,
}

impl State {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }
}

impl Activity {
    /// For a connection that has just been accepted.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            phase: Phase::Asking,
            since: Instant::now(),
            waiting: false,
            admitted: false,
        })))
    }

    pub(super) fn get(&self) -> (Phase, Instant) {
        let state = self.state();
        (state.phase, state.since)
    }

    /// A request is complete.
    pub(super) fn asked(&self) {
        let mut state = self.state();
        state.waiting = true;
        state.enter(Phase::Waiting);
    }

    /// Its password is about to be checked.
    pub(super) fn checks(&self, is_doubted: bool) {
        let mut state = self.state();
        if !state.admitted {
            state.enter(Phase::Checking { is_doubted });
        }
    }

    /// Its password was right.
    pub(super) fn admit(&self) {
        let mut state = self.state();
        state.admitted = true;
        state.enter(Phase::Waiting);
    }

    /// Its answer was read, and it has sent nothing since.
    #[cfg(test)]
    pub(super) fn rest(&self) {
        self.state().enter(Phase::Idle);
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.state().admitted
    }

    /// Its answer is ready to be sent.
    pub(super) fn answered(&self) {
        self.state().waiting = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wraps a connection. Reads and writes fail once a phase has lasted too long.
pub(super) struct Timed<T> {
    inner: T,
    timeouts: Timeouts,
    activity: Activity,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T> Timed<T> {
    pub(super) fn new(inner: T, timeouts: Timeouts, activity: Activity) -> Self {
        Self {
            inner,
            timeouts,
            activity,
            timer: None,
        }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let (phase, since) = self.activity.get();
        let deadline = since
            + match phase {
                Phase::Idle => self.timeouts.idle,
                Phase::Asking => self.timeouts.header,
                Phase::Answering => self.timeouts.answer,
                Phase::Checking { .. } | Phase::Waiting => return Ok(()),
            };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    fn begin_writing(&mut self) {
        let mut state = self.activity.state();
        if state.phase != Phase::Answering {
            state.enter(Phase::Answering);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() > before {
            let mut state = self.activity.state();
            if state.phase == Phase::Idle {
                state.enter(Phase::Asking);
            }
        }
        // A trickle of bytes does not extend the time.
        self.check(context)?;
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.begin_writing();
        self.check(context)?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.begin_writing();
        self.check(context)?;
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes the connection when it has written all of its own memory: the answer is sent.
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if flushed.is_pending() {
            self.check(context)?;
            return flushed;
        }
        let mut state = self.activity.state();
        if state.phase == Phase::Answering {
            let phase = if state.waiting {
                Phase::Waiting
            } else {
                Phase::Idle
            };
            state.enter(phase);
        }
        drop(state);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        idle: Duration::from_secs(300),
        header: Duration::from_secs(10),
        answer: Duration::from_secs(30),
    };

    fn pair() -> (Timed<DuplexStream>, DuplexStream) {
        let (server, client) = duplex(16);
        (Timed::new(server, TIMEOUTS, Activity::new()), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_dropped() {
        let (mut server, _client) = pair();
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// A few bytes now and then do not extend the time.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_too_slowly_is_dropped() {
        let (mut server, mut client) = pair();
        tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(TIMEOUTS.answer / 10).await;
            }
        });
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_too_slowly_is_dropped() {
        let (mut server, mut client) = pair();
        tokio::spawn(async move {
            while client.write_u8(b'x').await.is_ok() {
                tokio::time::sleep(TIMEOUTS.header / 10).await;
            }
        });
        let started = Instant::now();
        let error = server.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() < TIMEOUTS.header * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_time_and_a_connection_may_be_idle_between_them() {
        let (mut server, mut client) = pair();
        for _ in 0..5 {
            client.write_all(b"?").await.unwrap();
            assert_eq!(server.read_u8().await.unwrap(), b'?');
            server.activity.asked();
            tokio::time::sleep(TIMEOUTS.answer * 2).await;
            server.activity.answered();
            server.write_all(&[0; 16]).await.unwrap();
            server.flush().await.unwrap();
            client.read_exact(&mut [0; 16]).await.unwrap();
            assert_eq!(server.activity.get().0, Phase::Idle);
            let nothing = tokio::time::timeout(TIMEOUTS.idle / 2, server.read_u8()).await;
            assert!(nothing.is_err(), "it was given up: {nothing:?}");
        }
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
