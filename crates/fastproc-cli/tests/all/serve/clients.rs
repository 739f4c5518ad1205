//! Clients that are slow, many, or hostile.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use fastproc_testbed::{alone, wait_until};
use rustix::process::Signal;

use crate::serve::{client::Client, folder::Folder, hung::stop, separate::send, server::Server};

/// Half of a request.
const HALF: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\nX-Slow: ";
const WHOLE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
/// Sets another number of scrapes for the test of memory growth.
const SCRAPES: &str = "FASTPROC_TEST_SCRAPES";
/// The parts of those scrapes. Memory is read after each, and the first does not count.
const PARTS: usize = 8;
/// The most memory that a scrape may leave behind in half of the parts. In its first thousand scrapes a server may grow
/// by some hundred KiB, and later not at all.
const LEFT_BYTES: u64 = 700;

/// A connection without a request is closed for one with a request; the others stay.
#[test]
fn the_connection_that_is_idle_for_the_longest_time_gives_way() {
    let server = Server::start(&["--max-connections", "4", "--source", "procfs"]);
    let mut held: Vec<Client> = (0..4)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(client.get("/-/healthy", &[]).status, 200);
            client
        })
        .collect();
    let mut fifth = server.connect();
    assert_eq!(fifth.get("/-/healthy", &[]).status, 200);
    held[0].wait_for_end();
    for client in held.iter_mut().skip(1).chain([&mut fifth]) {
        assert_eq!(client.get("/-/healthy", &[]).status, 200);
    }
}

#[test]
fn a_request_that_has_arrived_is_answered_before_its_connection_gives_way() {
    let server = Server::start(&["--max-connections", "2", "--source", "procfs"]);
    stop(server.exporter());
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        let request = b"GET /-/healthy HTTP/1.1\r\nHost: here\r\n\r\n";
        client.send(request).expect("the kernel takes it");
    }
    send(server.exporter(), Signal::CONT);
    for client in &mut clients {
        assert_eq!(client.response().expect("an answer").status, 200);
    }
}

/// Half of a request and no more; or requests whose answers are not read.
fn stall(client: &mut Client, at: usize) {
    if at.is_multiple_of(2) {
        // The server may have closed it.
        let _ = client.send(HALF);
    } else {
        client.flood(WHOLE, 100);
    }
}

#[test]
fn thousands_of_idle_and_slow_connections_fail_no_scrape() {
    allow_descriptors(4096);
    let server = Server::start(&["--min-interval", "200ms"]);
    let open = |_| Client::try_connect(&server.address).expect("the server listens");
    let mut idle: Vec<Client> = (0..2000).map(open).collect();
    let mut slow: Vec<Client> = (0..200).map(open).collect();
    for (at, client) in slow.iter_mut().enumerate() {
        stall(client, at);
    }
    for round in 0..20 {
        assert_eq!(server.get("/metrics", &[]).status, 200);
        // They come again, as a hostile user would send them.
        for at in 0..100 {
            idle[round * 100 + at] = open(0);
        }
        for at in 0..10 {
            slow[round * 10 + at] = open(0);
            stall(&mut slow[round * 10 + at], at);
        }
    }
}

/// Raises the limit of descriptors for a test with thousands of connections.
fn allow_descriptors(count: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let held = getrlimit(Resource::Nofile);
    if held.current.is_some_and(|soft| soft < count) {
        let limit = Rlimit {
            current: Some(count),
            maximum: held.maximum.map(|hard| hard.max(count)),
        };
        setrlimit(Resource::Nofile, limit).expect("so many descriptors may be open");
    }
}

/// Processes that start and exit until this is dropped.
struct Forks {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forks {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let body = move || {
            while !told.load(Ordering::Relaxed) {
                let status = Command::new("true").status();
                assert!(status.expect("true is everywhere").success());
            }
        };
        Self {
            over,
            thread: Some(std::thread::spawn(body)),
        }
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn many_scrapes_leave_nothing_behind() {
    // Thousands of processes of other tests would need memory, too.
    let _alone = alone();
    // Processes of other tests add no group and no thread name.
    let folder = Folder::new();
    let config = "process_names: [{name: all, cmdline: ['.*']}]";
    let config = folder.write("config.yml", config);
    let server = Server::start(&["--config", &config, "--host", "--threads=false"]);
    // Reading /proc takes many times as long.
    let by_proc = server.scrape().labels("fastproc_source_info")["source"] == "procfs";
    let scrapes = std::env::var(SCRAPES).map_or(if by_proc { 160 } else { 2400 }, |number| {
        number.parse().expect("a number")
    });
    let part = scrapes / PARTS;
    let mut kept = server.connect();
    let round = |kept: &mut Client| {
        for at in 0..part {
            let accept = ["Accept: */*", "Accept: application/openmetrics-text"][at % 2];
            let encoding = ["Accept-Encoding: identity", "Accept-Encoding: gzip"][at / 2 % 2];
            let response = if at % 8 < 6 {
                kept.get("/metrics", &[accept, encoding])
            } else {
                server.get("/metrics", &[accept, encoding])
            };
            assert_eq!(response.status, 200);
        }
        server.anonymous_kib()
    };
    let forks = Forks::start();
    // Once it is answered, it has been accepted.
    assert_eq!(kept.get("/-/healthy", &[]).status, 200);
    let sockets = server.sockets();
    let anonymous: Vec<u64> = (0..PARTS).map(|_| round(&mut kept)).collect();
    drop(forks);
    // Connections that the client has closed are noticed within their time.
    wait_until("all connections but one have ended", || {
        server.sockets() <= sockets
    });
    println!("anonymous memory after each {part} scrapes: {anonymous:?} KiB");
    // What a scrape leaks, all scrapes leak, so all parts grow by it. Tables and the allocator's own memory grow only
    // in some parts, until they are large enough, and memory may be given back in one or two parts. Neither changes
    // this value.
    let pairs = anonymous.windows(2);
    let mut grown: Vec<u64> = pairs.map(|pair| pair[1].saturating_sub(pair[0])).collect();
    grown.sort_unstable();
    let third = grown[grown.len() / 3];
    assert!(
        third * 1024 < LEFT_BYTES * part as u64,
        "anonymous memory grows with each {part} scrapes: {anonymous:?} KiB"
    );
}

#[test]
fn requests_that_are_too_large_are_refused() {
    let server = Server::start(&["--source", "procfs"]);
    let mut client = server.connect();
    let _ = client.send(
        format!(
            "GET / HTTP/1.1\r\nHost: here\r\nX-Large: {}\r\n\r\n",
            "x".repeat(64 * 1024)
        )
        .as_bytes(),
    );
    assert!(matches!(
        client.response().map(|answer| answer.status),
        Ok(431) | Err(_)
    ));
    let mut client = server.connect();
    let _ = client.send(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 * 1024)).as_bytes());
    assert!(!matches!(
        client.response().map(|answer| answer.status),
        Ok(200)
    ));
    let many = "X-Many: y\r\n".repeat(500);
    let mut client = server.connect();
    let _ = client.send(format!("GET / HTTP/1.1\r\nHost: here\r\n{many}\r\n").as_bytes());
    assert!(matches!(
        client.response().map(|answer| answer.status),
        Ok(431) | Err(_)
    ));

    // The server does not wait for a body, whatever its announced length.
    for framing in [
        "Content-Length: 1000000000000",
        "Transfer-Encoding: chunked",
    ] {
        let mut client = server.connect();
        let request = format!("POST /metrics HTTP/1.1\r\nHost: here\r\n{framing}\r\n\r\n");
        client
            .send(request.as_bytes())
            .expect("the request is sent");
        let response = client.response().expect("an answer");
        assert_eq!(
            (response.status, response.header("connection")),
            (413, Some("close"))
        );
        client.wait_for_end();
    }
    // Data that are not HTTP do not end the server.
    let mut client = server.connect();
    client
        .send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        .expect("the request is sent");
    client.wait_for_end();
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
}

#[test]
fn sigterm_ends_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&["--source", "procfs"]);
        let address = server.address.clone();
        // One waits, one has sent half of a request, and one has never sent anything.
        let (mut kept, mut half, mut silent) =
            (server.connect(), server.connect(), server.connect());
        assert_eq!(kept.get("/metrics", &[]).status, 200);
        half.send(HALF).expect("the request is sent");
        let (status, stderr) = server.end(signal);
        assert_eq!(status.code(), Some(0), "{stderr}");
        for client in [&mut kept, &mut half, &mut silent] {
            client.wait_for_end();
        }
        assert!(
            Client::try_connect(&address).is_err(),
            "somebody still listens"
        );
    }
}
