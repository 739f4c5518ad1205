//! The exporter by itself, with a test in place of the collecting process. `tests/serve` of fastproc-cli tests both.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
};

use fastproc_metrics::{
    exposition::Format,
    link::{Link, Page, Question, Scrape, lend, take},
    naming::Item,
};

/// Starts it as `fastproc serve` does. Returns the process and the other end of its link.
fn start(arguments: &[&str]) -> (Child, Link) {
    let (link, other) = Link::pair().expect("a socket pair");
    let child = Command::new(env!("CARGO_BIN_EXE_fastproc-exporter"))
        .args([
            "--collected=2",
            "--web.telemetry-path=/metrics",
            "--max-connections=4",
        ])
        .args(arguments)
        .stdin(Stdio::from(OwnedFd::from(other)))
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    (child, link)
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it is ours");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

#[test]
fn it_serves_the_text_that_it_is_handed_until_nobody_hands_it_any() {
    let (child, link) = start(&["--config=/nowhere/groups.yml"]);
    let asked = link.receive().expect("a message").expect("it asks");
    assert_eq!(Question::of(&asked), Some(Question::Groups));
    let file = lend(b"process_names: [{name: a, comm: [b]}]\n").expect("memory");
    link.send([0; 4], Some(file.as_fd())).expect("it waits");
    let asked = link.receive().expect("a message").expect("it asks");
    assert_eq!(Question::of(&asked), Some(Question::Configured));
    let items = take(asked.descriptor.expect("rules")).expect("a text");
    let items = Item::from_bytes(&items).expect("items");
    assert_eq!((items.len(), items[0].name.as_str()), (1, "a"));

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("it listens");
    let (scrapes, other) = Link::pair().expect("a socket pair");
    for descriptor in [listener.as_fd(), other.as_fd()] {
        link.send([0; 4], Some(descriptor)).expect("it waits");
    }
    drop((listener, other));
    let first = scrapes.receive().expect("a message").expect("it asks");
    let first = Scrape::of(first.words);
    assert_eq!((first.collects, first.format), (true, None));
    scrapes.send([0; 4], None).expect("it waits");

    let page = Page::new().expect("memory");
    for (text, shown) in [
        ("a_metric 1\n", true),
        ("a_metric 22222\n", false),
        ("b 3\n", false),
    ] {
        let mut client = TcpStream::connect(address).expect("it listens");
        let request = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        client.write_all(request.as_bytes()).expect("it reads");
        let asked = scrapes.receive().expect("a message").expect("it asks");
        let asked = Scrape::of(asked.words);
        assert_eq!(
            (asked.collects, asked.format),
            (true, Some(Format::Prometheus))
        );
        page.write(text.as_bytes()).expect("memory");
        let shown = shown.then(|| page.shown());
        scrapes
            .send([text.len() as u64, 0, 0, 0], shown)
            .expect("it waits");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{text}")), "{answer}");
    }

    let mut client = TcpStream::connect(address).expect("it listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    client.write_all(request.as_bytes()).expect("it reads");
    drop((scrapes, link));
    assert_eq!(ended(child), (Some(0), String::new()));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (child, link) = start(&["--config=/nowhere/groups.yml"]);
    link.receive().expect("a message").expect("it asks");
    link.send([13, 0, 0, 0], None).expect("it waits");
    let (status, stderr) = ended(child);
    assert_eq!(status, Some(2));
    assert_eq!(
        stderr,
        "fastproc: cannot read /nowhere/groups.yml: Permission denied (os error 13)\n"
    );
}

#[test]
fn another_version_of_what_starts_it_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_fastproc-exporter"))
        .arg("--collected=0")
        .output()
        .expect("it can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("different versions"), "{stderr}");
}
