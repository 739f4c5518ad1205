//! Formats and compression that clients request.

use std::io::Read;

use fastproc_testbed::wait_until;
use flate2::read::GzDecoder;

use crate::serve::{client::Client, exposition::Metrics, server::Server};

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[test]
fn the_format_is_what_was_asked_for() {
    let server = Server::start(&[]);
    for (accept, expected) in [
        (None, TEXT),
        (
            Some("Accept: application/openmetrics-text; version=1.0.0"),
            OPEN_METRICS,
        ),
    ] {
        let response = server.get("/metrics", accept.as_slice());
        assert_eq!(response.status, 200, "{accept:?}");
        assert_eq!(
            response.header("content-type"),
            Some(expected),
            "{accept:?}"
        );
        let vary = response.header("vary");
        assert_eq!(vary, Some("Accept, Accept-Encoding"));
        let text = response.text();
        assert_eq!(
            text.ends_with("\n# EOF\n"),
            expected == OPEN_METRICS,
            "{accept:?}"
        );
        assert_eq!(
            text.matches("# EOF").count(),
            usize::from(expected == OPEN_METRICS)
        );
        // The strict parser knows the rules of both.
        let metrics = Metrics::parse(text);
        let suffixed = metrics
            .families
            .iter()
            .any(|(name, kind)| kind == "counter" && name.ends_with("_total"));
        assert_eq!(suffixed, expected == TEXT, "{accept:?}");
    }
}

#[test]
fn gzip_is_for_whoever_takes_it_and_holds_the_same() {
    let server = Server::start(&["--min-interval", "1h"]);
    let plain = server.get("/metrics", &[]);
    assert_eq!(plain.header("content-encoding"), None);
    let packed = server.get("/metrics", &["Accept-Encoding: gzip"]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let size = packed.body.len();
    assert!(size * 3 < plain.body.len(), "{size}");
    let mut text = Vec::new();
    GzDecoder::new(&*packed.body)
        .read_to_end(&mut text)
        .expect("it is gzip");
    assert!(text == plain.body, "it tells something else");
}

#[test]
fn scrapes_that_are_close_share_a_snapshot() {
    let shared = Server::start(&["--min-interval", "1h"]);
    let own = Server::start(&["--min-interval", "0"]);
    let snapshots = |server: &Server| {
        let count = server.scrape().get("fastproc_snapshots_total", &[]);
        count.expect("it is counted")
    };
    let first = snapshots(&shared);
    assert!((snapshots(&shared) - first).abs() < 0.5);
    let first = snapshots(&own);
    assert!((snapshots(&own) - first - 1.0).abs() < 0.5);
}

#[test]
fn other_pages_are_there() {
    let server = Server::start(&["--source", "procfs"]);
    let mut client = server.connect();
    let page = client.get("/", &[]);
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(page.text().contains("href=\"/metrics\""));
    assert_eq!(client.get("/-/healthy", &[]).status, 200);
    assert_eq!(client.get("/-/ready", &[]).status, 200);
    assert_eq!(client.get("/nothing", &[]).status, 404);
    client
        .send(b"DELETE /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        .expect("the request is sent");
    let refused = client.response().expect("an answer");
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET, HEAD"))
    );
    client
        .send(b"HEAD /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        .expect("the request is sent");
    client.wait_for_end();
}

/// As HTTP/1.1 requires, and Go's servers do.
#[test]
fn a_request_without_a_host_is_no_request() {
    let server = Server::start(&["--source", "procfs"]);
    for (request, status) in [
        ("GET /-/healthy HTTP/1.1\r\n\r\n", 400),
        ("GET /-/healthy HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /-/healthy HTTP/1.1\r\nHost:\r\n\r\n", 200),
        ("GET /-/healthy HTTP/1.0\r\n\r\n", 200),
    ] {
        let mut client = server.connect();
        client
            .send(request.as_bytes())
            .expect("the request is sent");
        let response = client.response().expect("an answer");
        assert_eq!(response.status, status, "{request}");
    }
}

/// As in `node_exporter`.
#[test]
fn a_request_selects_collectors() {
    let server = Server::start(&["--source=procfs"]);
    for (query, load, time, groups) in [
        ("collect[]=loadavg", true, false, false),
        ("collect%5B%5D=loadavg&collect[]=groups", true, false, true),
        ("exclude[]=loadavg&exclude[]=nosuch", false, true, true),
        ("exclude[]=groups", true, true, false),
    ] {
        let response = server.get(&format!("/metrics?{query}"), &["Accept-Encoding: gzip"]);
        assert_eq!(response.status, 200, "{query}");
        let metrics = Metrics::parse(response.text());
        for (name, expected) in [
            ("node_load1", load),
            ("node_time_seconds", time),
            ("namedprocess_scrape_errors", groups),
            ("fastproc_snapshots_total", true),
        ] {
            let is_there = metrics.get(name, &[]).is_some();
            assert_eq!(is_there, expected, "{name} with {query}");
        }
    }
    for query in ["collect[]=nosuch", "collect[]=stat&exclude[]=cpu"] {
        let response = server.get(&format!("/metrics?{query}"), &[]);
        assert_eq!(response.status, 400, "{query}");
    }
    let open = ["Accept: application/openmetrics-text"];
    let response = server.get("/metrics?collect[]=loadavg", &open);
    assert!(response.text().ends_with("# EOF\n"), "{}", response.text());
}

#[test]
fn every_address_serves_the_path_that_is_named() {
    let server = Server::start(&[
        "--web.listen-address=127.0.0.1:0",
        "--web.listen-address=127.0.0.1:0",
        "-web.telemetry-path=/other",
        "-debug",
        "--source=procfs",
    ]);
    assert!(server.stderr().contains("processes are grouped by"));
    wait_until("it has named both addresses", || {
        server.stderr().matches("serving http://").count() == 2
    });
    let text = server.stderr();
    let addresses = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("serving http://")?;
        Some(rest.split_once('/')?.0)
    });
    for address in addresses {
        let get = |path| Client::connect(address).get(path, &[]);
        assert_eq!(get("/metrics").status, 404, "{address}");
        assert_eq!(get("/other").status, 200, "{address}");
        assert!(get("/").text().contains("<a href=\"/other\">"), "{address}");
    }
}
