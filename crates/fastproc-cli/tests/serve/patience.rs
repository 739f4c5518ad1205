//! Clients that are slow, many, or hostile.

use std::net::Shutdown;

use rustix::process::Signal;

use crate::{client::Client, server::Server, wait::until};

/// Half of a request.
const HALF: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\nX-Slow: ";
const WHOLE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
/// Asks for another number of scrapes in the test that looks for growth.
const SCRAPES: &str = "FASTPROC_TEST_SCRAPES";

#[test]
fn slow_clients_hold_nobody_up() {
    let server = Server::start(&["--min-interval", "200ms"]);
    let mut slow: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    for (at, client) in slow.iter_mut().enumerate() {
        match at % 3 {
            // Says nothing at all.
            0 => {}
            1 => client.send(HALF).expect("it listens"),
            // Asks for more than any buffer holds, and never reads. It may be refused to say all of it.
            _ => client.flood(WHOLE, 400),
        }
    }
    // Others are answered meanwhile, on connections of their own and on one that they keep.
    let mut kept = server.connect();
    for _ in 0..20 {
        assert_eq!(server.get("/metrics", &[]).status, 200);
        assert_eq!(kept.get("/metrics", &[]).status, 200);
        assert_eq!(kept.get("/-/healthy", &[]).status, 200);
    }
    // And the slow ones' time ends: their connections are closed from the other side.
    for client in slow.iter_mut().skip(1).step_by(3) {
        client.wait_for_end();
    }
}

#[test]
fn connections_past_the_limit_are_closed_and_the_place_of_one_that_ends_is_free() {
    let server = Server::start(&["--max-connections", "4"]);
    // A place is free some time after its connection has ended.
    let take = || {
        let mut client = Client::try_connect(&server.address).ok()?;
        let answer = client.try_get("/-/healthy", &[]).ok()?;
        (answer.status == 200).then_some(client)
    };
    let mut held: Vec<Client> = (0..4).map(|_| until("there is a place", take)).collect();
    assert!(take().is_none(), "there is a place too many");
    drop(held.pop());
    held.push(until("there is a place again", take));
    for client in &mut held {
        assert_eq!(client.get("/-/healthy", &[]).status, 200);
    }
}

#[test]
fn many_scrapes_leave_nothing_behind() {
    let server = Server::start(&[]);
    // Reading /proc takes many times as long.
    let by_proc = server.scrape().labels("fastproc_source_info")["source"] == "procfs";
    let scrapes = std::env::var(SCRAPES).map_or(if by_proc { 150 } else { 1500 }, |number| {
        number.parse().expect("a number")
    });
    let mut kept = server.connect();
    let mut round = |count: usize| {
        for at in 0..count {
            let accept = ["Accept: */*", "Accept: application/openmetrics-text"][at % 2];
            let encoding = ["Accept-Encoding: identity", "Accept-Encoding: gzip"][at / 2 % 2];
            let response = if at % 8 < 6 {
                kept.get("/metrics", &[accept, encoding])
            } else {
                server.get("/metrics", &[accept, encoding])
            };
            assert_eq!(response.status, 200);
        }
    };
    round(scrapes / 5);
    let (resident, descriptors) = (server.resident_kib(), server.descriptors());
    round(scrapes - scrapes / 5);
    // Connections that this side has closed are noticed in their time.
    until("all connections but one have ended", || {
        (server.descriptors() <= descriptors).then_some(())
    });
    let grown = server.resident_kib().saturating_sub(resident);
    assert!(
        grown < 2048,
        "resident memory grew by {grown} KiB, from {resident} KiB, in {scrapes} scrapes"
    );
}

#[test]
fn what_is_too_large_is_refused() {
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

    // A body is not waited for, however long it is said to be.
    for framing in [
        "Content-Length: 1000000000000",
        "Transfer-Encoding: chunked",
    ] {
        let mut client = server.connect();
        let request = format!("POST /metrics HTTP/1.1\r\nHost: here\r\n{framing}\r\n\r\n");
        client.send(request.as_bytes()).expect("it listens");
        let response = client.response().expect("an answer");
        assert_eq!(
            (response.status, response.header("connection")),
            (413, Some("close"))
        );
        client.wait_for_end();
    }
    // What is no HTTP is no reason to end.
    let mut client = server.connect();
    client
        .send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        .expect("it listens");
    client.wait_for_end();
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
}

/// A client that went away while its scrape was made costs nobody anything.
#[test]
fn clients_that_go_away_are_forgotten() {
    let server = Server::start(&[]);
    server.scrape();
    let descriptors = server.descriptors();
    for _ in 0..50 {
        let mut client = server.connect();
        client.send(WHOLE).expect("it listens");
        client.shut(Shutdown::Both);
    }
    until("their connections have ended", || {
        (server.descriptors() <= descriptors).then_some(())
    });
    server.scrape();
}

#[test]
fn sigterm_ends_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&["--source", "procfs"]);
        let address = server.address.clone();
        // One that waits, one that has said half of what it wants, and one that never spoke.
        let (mut kept, mut half, mut silent) =
            (server.connect(), server.connect(), server.connect());
        assert_eq!(kept.get("/metrics", &[]).status, 200);
        half.send(HALF).expect("it listens");
        let (status, said) = server.end(signal);
        assert_eq!(status.code(), Some(0), "{said}");
        for client in [&mut kept, &mut half, &mut silent] {
            client.wait_for_end();
        }
        assert!(
            Client::try_connect(&address).is_err(),
            "somebody still listens"
        );
    }
}
