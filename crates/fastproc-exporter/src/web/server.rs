//! Connections: accepted up to a limit, each with its times.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{ScraperHandle, WebConfig, answer::Site, auth::Gate, patience::Patient};

/// What one client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. Further ones are closed.
    pub connections: usize,
    /// Time for a handshake, and for the header of a request. A connection that asks nothing for so long is closed.
    pub header_time: Duration,
    /// Time to take an answer.
    pub answer_time: Duration,
    /// Bytes of a header.
    pub header_bytes: usize,
    /// Time for connections to end when the server does.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            header_time: Duration::from_secs(10),
            answer_time: Duration::from_secs(30),
            header_bytes: 16 * 1024,
            farewell: Duration::from_secs(5),
        }
    }
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The runtime cannot be started.
    #[error("cannot start serving")]
    Start(#[source] io::Error),
}

/// A server that listens, and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    config: WebConfig,
    limits: Limits,
}

impl Server {
    /// Listens at an address, or with `:PORT` at all of them. Privileges that only this takes can be given up afterwards.
    pub fn bind(address: &str, config: WebConfig, limits: Limits) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen {
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
        Ok(Self {
            listener,
            config,
            limits,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until SIGTERM or SIGINT, and returns when the connections have ended.
    pub fn run(self, scraper: ScraperHandle) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // For passwords alone, one at a time.
            .max_blocking_threads(1)
            .build()
            .map_err(ServeError::Start)?;
        let result = runtime.block_on(self.serve(scraper));
        runtime.shutdown_background();
        result
    }

    async fn serve(self, scraper: ScraperHandle) -> Result<(), ServeError> {
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Start)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Start)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Start)?;
        let site = Arc::new(Site {
            scraper,
            gate: Gate::new(self.config.users),
            headers: self.config.headers,
        });
        let tls = self.config.tls.map(TlsAcceptor::from);
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let (ending, end) = watch::channel(false);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            };
            let Ok((stream, _)) = accepted else {
                // No descriptors are left, or the peer has gone: nothing gets better by trying at once.
                sleep(Duration::from_millis(20)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                continue;
            };
            let connection = converse(
                stream,
                tls.clone(),
                Arc::clone(&site),
                self.limits,
                end.clone(),
            );
            connections.spawn(async move {
                connection.await;
                drop(place);
            });
        }
        drop(listener);
        let _ = ending.send(true);
        // What has not ended then is closed with the set.
        let _ = timeout(self.limits.farewell, async {
            while connections.join_next().await.is_some() {}
        })
        .await;
        Ok(())
    }
}

/// All that is said on one connection. Errors are the peer's.
async fn converse(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    site: Arc<Site>,
    limits: Limits,
    end: watch::Receiver<bool>,
) {
    // An answer is written in one piece.
    let _ = stream.set_nodelay(true);
    match tls {
        None => talk(stream, site, limits, end).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.header_time, tls.accept(stream)).await {
                talk(stream, site, limits, end).await;
            }
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    site: Arc<Site>,
    limits: Limits,
    mut end: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    let stream = TokioIo::new(Patient::new(stream, limits.answer_time));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = end.wait_for(|end| *end) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
