//! Accepts connections up to a limit, and bounds the time of each.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::{JoinSet, yield_now},
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    ScraperHandle, WebConfig,
    configuration::Reload,
    connections::{Client, Connections},
    plain,
    site::Site,
    timed::{Activity, Phase, TICK, Timed},
};

/// Limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. A further one replaces one without a request.
    pub connections: usize,
    /// Time from one request to the next. Longer than the interval of scrapes, so that a client can keep its
    /// connection.
    pub idle_time: Duration,
    /// Time for a handshake, and for the header of a request.
    pub header_time: Duration,
    /// Time to read an answer.
    pub answer_time: Duration,
    /// Bytes of a header.
    pub header_bytes: usize,
    /// Time for connections to end at shutdown.
    pub shutdown_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            idle_time: Duration::from_secs(15 * 60),
            header_time: Duration::from_secs(10),
            answer_time: Duration::from_secs(30),
            header_bytes: 16 * 1024,
            shutdown_time: Duration::from_secs(5),
        }
    }
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The runtime cannot be started.
    #[error("cannot start serving")]
    Start(#[source] io::Error),
}

/// A server that listens, but does not answer yet.
#[derive(Debug)]
pub struct Server {
    /// Non-blocking sockets.
    pub listeners: Vec<TcpListener>,
    /// How clients are served.
    pub config: WebConfig,
    /// Limits for them.
    pub limits: Limits,
    /// Where the metrics are.
    pub metrics_path: String,
    /// How the configuration is reloaded.
    pub reload: Reload,
}

impl Server {
    /// Answers until SIGTERM or SIGINT, and returns when the connections have ended. `started` is called once these
    /// signals and SIGHUP are handled, and returns whether a reload was requested before.
    pub fn run(
        self,
        scraper: ScraperHandle,
        started: impl FnOnce() -> bool,
    ) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Only for passwords, one at a time.
            .max_blocking_threads(1)
            .build()
            .map_err(ServeError::Start)?;
        let result = runtime.block_on(self.serve(scraper, started));
        runtime.shutdown_background();
        result
    }

    async fn serve(
        self,
        scraper: ScraperHandle,
        started: impl FnOnce() -> bool,
    ) -> Result<(), ServeError> {
        let mut listeners = Listeners::new(self.listeners).map_err(ServeError::Start)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Start)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Start)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(ServeError::Start)?;
        let site = Site::new(scraper, self.metrics_path, self.config, Some(self.reload));
        let site = Arc::new(site);
        site.rulebook().gate.share(self.limits.connections);
        if started() {
            tokio::spawn(Arc::clone(&site).reload());
        }
        let mut table = Connections::new(self.limits.connections);
        let (ending, end) = watch::channel(false);
        let (mut connections, mut arrived) = (JoinSet::new(), 0);
        let mut ticks = interval(TICK);
        // Those that were missed while nobody was connected do not follow each other at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let accepted = tokio::select! {
                accepted = listeners.accept() => accepted,
                _ = ticks.tick(), if !connections.is_empty() => {
                    table.close_overdue(&self.limits);
                    continue;
                }
                Some(ended) = connections.join_next_with_id() => {
                    table.remove(ended.map_or_else(|error| error.id(), |(id, ())| id));
                    continue;
                }
                _ = hangup.recv() => {
                    tokio::spawn(Arc::clone(&site).reload());
                    continue;
                }
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            };
            let Ok((stream, address)) = accepted else {
                // No descriptors are left, or the peer has gone: trying at once would not help.
                sleep(Duration::from_millis(20)).await;
                continue;
            };
            let client = Client::new(address.ip());
            if !table.make_room(client) {
                continue;
            }
            let activity = Activity::new();
            let task = connections.spawn(converse(
                stream,
                Arc::clone(&site),
                self.limits,
                client,
                activity.clone(),
                end.clone(),
            ));
            table.add(client, activity, task);
            // Requests that have arrived are read before many further connections can take the places of theirs: the first
            // time the runtime learns of them, the second time their tasks run.
            arrived += 1;
            if arrived >= self.limits.connections / 8 {
                arrived = 0;
                yield_now().await;
                yield_now().await;
            }
        }
        drop(listeners);
        let _ = ending.send(true);
        // Connections that have not ended by then are closed with the set.
        let _ = timeout(self.limits.shutdown_time, async {
            while connections.join_next().await.is_some() {}
        })
        .await;
        Ok(())
    }
}

/// The listening sockets.
struct Listeners(Vec<tokio::net::TcpListener>);

impl Listeners {
    fn new(listeners: Vec<TcpListener>) -> io::Result<Self> {
        let listeners = listeners.into_iter().map(tokio::net::TcpListener::from_std);
        Ok(Self(listeners.collect::<io::Result<_>>()?))
    }

    /// Accepts the next connection. No socket waits for another one with many connections.
    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (at, accepted) = poll_fn(|context| {
            let mut listeners = self.0.iter().enumerate();
            let accepted =
                listeners.find_map(|(at, listener)| match listener.poll_accept(context) {
                    Poll::Ready(accepted) => Some((at, accepted)),
                    Poll::Pending => None,
                });
            accepted.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        self.0.rotate_left(at + 1);
        accepted
    }
}

/// Serves all requests of one connection. Errors are the peer's fault.
async fn converse(
    mut stream: TcpStream,
    site: Arc<Site>,
    limits: Limits,
    client: Client,
    activity: Activity,
    end: watch::Receiver<bool>,
) {
    // An answer is written in one piece.
    let _ = stream.set_nodelay(true);
    match site.rulebook().tls.clone() {
        None => talk(stream, site, limits, client, activity, end).await,
        Some(_) if plain::is_request(&stream).await => {
            let _ = plain::refuse(&mut stream, limits).await;
        }
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                activity.enter(Phase::Asking);
                talk(stream, site, limits, client, activity, end).await;
            }
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    site: Arc<Site>,
    limits: Limits,
    client: Client,
    activity: Activity,
    mut end: watch::Receiver<bool>,
) {
    let timed = Timed {
        inner: stream,
        activity: activity.clone(),
    };
    let service = service_fn(move |request| {
        let (site, activity) = (Arc::clone(&site), activity.clone());
        async move {
            activity.enter(Phase::Waiting);
            let response = site.answer(request, client, &activity).await;
            activity.enter(Phase::Answering);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(limits.header_bytes)
        .serve_connection(TokioIo::new(timed), service);
    let mut connection = std::pin::pin!(connection);
    // Until the peer has gone or, after the end, until a pending request is answered. Errors are the peer's fault.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = end.wait_for(|end| *end) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::Instant,
    };

    use super::*;

    /// A connection to a server that has no snapshot, through a buffer of so many bytes.
    fn connect(config: WebConfig, buffer: usize) -> DuplexStream {
        let (server, client) = duplex(buffer);
        tokio::spawn(async move {
            let site = Site::new(ScraperHandle::closed(), "/metrics".into(), config, None);
            let here = Client::new(std::net::Ipv4Addr::LOCALHOST.into());
            let (limits, activity) = (Limits::default(), Activity::new());
            let (_ending, end) = watch::channel(false);
            let (mut table, mut tasks) = (Connections::new(1), JoinSet::new());
            let shared = activity.clone();
            let task = tasks.spawn(talk(server, Arc::new(site), limits, here, shared, end));
            table.add(here, activity, task);
            let mut ticks = interval(TICK);
            while tokio::select! { _ = tasks.join_next() => false, _ = ticks.tick() => true } {
                table.close_overdue(&limits);
            }
        });
        client
    }

    const REQUEST: &[u8] = b"GET /-/healthy HTTP/1.1\r\nHost: here\r\n\r\n";

    /// Prometheus scrapes once a minute, and should not have to connect each time.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_from_one_scrape_to_the_next() {
        let mut client = connect(WebConfig::default(), 64 * 1024);
        for _ in 0..3 {
            client.write_all(REQUEST).await.unwrap();
            let mut answer = [0; 15];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
            sleep(Duration::from_secs(60)).await;
            let mut rest = [0; 4096];
            assert!(client.read(&mut rest).await.unwrap() > 0);
        }
        // It is not kept forever.
        let started = Instant::now();
        let _ = client.read_to_end(&mut Vec::new()).await;
        assert!(started.elapsed() <= Limits::default().idle_time);
    }

    /// A few bytes now and then do not extend the time.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_or_reads_too_slowly_is_dropped() {
        let Limits {
            header_time,
            answer_time,
            ..
        } = Limits::default();
        let mut client = connect(WebConfig::default(), 16);
        client.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
        let started = Instant::now();
        while client.write_u8(b'x').await.is_ok() {
            sleep(header_time / 10).await;
        }
        let elapsed = started.elapsed();
        assert!(elapsed <= header_time && elapsed + 2 * TICK >= header_time);
        for pause in [answer_time * 2, answer_time / 10] {
            let mut client = connect(WebConfig::default(), 16);
            client.write_all(REQUEST).await.unwrap();
            let mut read = 0;
            while client.read_u8().await.is_ok() {
                read += 1;
                sleep(pause).await;
            }
            assert!((1..=30).contains(&read), "{read} bytes of the answer");
        }
    }

    /// The answer to a request, in lower case.
    async fn answer(config: WebConfig, request: &str) -> String {
        let mut client = connect(config, 64 * 1024);
        let request = format!("{request} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer.to_lowercase()
    }

    #[tokio::test]
    async fn refuses_what_is_not_ready_not_allowed_or_without_a_password() {
        let ready = answer(WebConfig::default(), "GET /-/ready").await;
        assert!(ready.starts_with("http/1.1 503"), "{ready}");
        let reload = answer(WebConfig::default(), "POST /-/reload").await;
        assert!(reload.starts_with("http/1.1 403"), "{reload}");
        let mut config = WebConfig::default();
        config.users.insert("a".into(), "x".into());
        let header = ("x-frame-options".parse(), "deny".parse());
        config.headers.push((header.0.unwrap(), header.1.unwrap()));
        let denied = answer(config, "GET /metrics").await;
        assert!(denied.starts_with("http/1.1 401"), "{denied}");
        for header in ["www-authenticate: basic realm=", "x-frame-options: deny"] {
            assert!(denied.contains(header), "{denied}");
        }
    }
}
