//! What each connection does, and since when: the server ends what lasts too long, or is needed least.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::Limits;

/// How often the server looks for connections that have had their time. So much earlier than its limit one may end, never
/// later.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It was answered, and has not sent another request.
    Idle,
    /// Its request is incomplete, or its handshake.
    Asking,
    /// It reads its answer.
    Answering,
    /// Its request waits until its password is checked. `is_doubted`: its client has shown a wrong one lately.
    Checking { is_doubted: bool },
    /// Its request waits for this server.
    Waiting,
}

/// The phase of a connection, and its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub phase: Phase,
    pub since: Instant,
    /// Whether one of its requests had a right password.
    pub is_admitted: bool,
}

impl State {
    /// Whether the client will have had its time for this phase before the server looks again.
    pub(super) fn is_over(self, limits: &Limits) -> bool {
        let most = match self.phase {
            Phase::Idle => limits.idle_time,
            Phase::Asking => limits.header_time,
            Phase::Answering => limits.answer_time,
            Phase::Checking { .. } | Phase::Waiting => return false,
        };
        self.since.elapsed() + TICK >= most
    }

    fn enter(&mut self, phase: Phase) {
        (self.phase, self.since) = (phase, Instant::now());
    }
}

/// The state of a connection: shared by the connection, its requests and the table of connections.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<State>>);

impl Activity {
    /// For a connection that has just been accepted.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            phase: Phase::Asking,
            since: Instant::now(),
            is_admitted: false,
        })))
    }

    pub(super) fn get(&self) -> State {
        *self.state()
    }

    /// Begins a phase.
    pub(super) fn enter(&self, phase: Phase) {
        self.state().enter(phase);
    }

    /// Its password was right.
    pub(super) fn admit(&self) {
        let mut state = self.state();
        state.is_admitted = true;
        state.enter(Phase::Waiting);
    }

    fn follow(&self, before: Phase, phase: Phase) {
        let mut state = self.state();
        if state.phase == before {
            state.enter(phase);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wraps a connection, and notes when a request begins and when an answer is sent.
pub(super) struct Timed<T> {
    pub inner: T,
    pub activity: Activity,
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        // A trickle of bytes does not extend the time.
        if buffer.filled().len() > before {
            self.activity.follow(Phase::Idle, Phase::Asking);
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes the connection when it has written all of its own memory: the answer is sent.
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if flushed.is_ready() {
            self.activity.follow(Phase::Answering, Phase::Idle);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
