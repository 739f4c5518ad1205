//! The exporter by itself, with a test in place of the collecting process. `tests/all/serve` of fastproc-cli tests both.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
};

use fastproc_metrics::{
    exposition::Format,
    link::{Link, Question, Scrape, VERSION, lend, take},
    naming::Item,
    page::{PAGES, Pages},
};

/// Starts it as `fastproc serve` does. Returns the process and the other end of its link.
fn start(arguments: &[&str]) -> (Child, Link) {
    let (link, other) = Link::pair().expect("a socket pair");
    let child = Command::new(env!("CARGO_BIN_EXE_fastproc-exporter"))
        .args([
            &format!("--collected={VERSION}"),
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

/// Hands over the port and the link for scrapes, and answers the first request.
fn begin(link: &Link) -> (SocketAddr, Link) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("the socket is bound");
    let (scrapes, other) = Link::pair().expect("a socket pair");
    for (remaining, descriptor) in [(1, listener.as_fd()), (0, other.as_fd())] {
        let words = [remaining, 0, 0, 0];
        link.send(words, Some(descriptor)).expect("it waits");
    }
    drop((listener, other));
    let first = scrapes.receive().expect("a message").expect("it asks");
    let first = Scrape::of(first.words);
    assert_eq!((first.collects, first.format), (true, None));
    scrapes.send([0; 4], None).expect("it waits");
    (address, scrapes)
}

fn request(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).expect("the server listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    client.write_all(request.as_bytes()).expect("it reads");
    client
}

/// Answers the next request with this text, in the page that it names.
fn answer(scrapes: &Link, pages: &mut Pages, text: &[u8]) -> Scrape {
    let asked = scrapes.receive().expect("a message").expect("it asks");
    let asked = Scrape::of(asked.words);
    let (page, new) = pages.page(asked.page).expect("memory");
    page.write_at(text, 0).expect("memory");
    let shown = new.then(|| page.shown());
    scrapes
        .send([text.len() as u64, 0, 0, 0], shown)
        .expect("it waits");
    asked
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("the child ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

#[test]
fn the_exporter_serves_its_collectors_text_until_the_collector_ends() {
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

    let (address, scrapes) = begin(&link);
    let mut pages = Pages::default();
    for text in ["a_metric 1\n", "a_metric 22222\n", "b 3\n"] {
        let mut client = request(address);
        let asked = answer(&scrapes, &mut pages, text.as_bytes());
        assert_eq!(
            (asked.collects, asked.format),
            (true, Some(Format::Prometheus))
        );
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{text}")), "{answer}");
    }

    let _client = request(address);
    drop((scrapes, link));
    assert_eq!(ended(child), (Some(0), String::new()));
}

/// More than the buffers of a socket hold.
#[test]
fn a_text_that_is_still_being_sent_is_not_overwritten() {
    let (child, link) = start(&["--max-connections=9"]);
    let asked = link.receive().expect("a message").expect("it asks");
    assert_eq!(Question::of(&asked), Some(Question::Configured));
    let (address, scrapes) = begin(&link);
    let texts: [Vec<u8>; PAGES + 2] = std::array::from_fn(|at| vec![b'a' + at as u8; 16 << 20]);
    let (mut pages, mut clients) = (Pages::default(), Vec::new());
    for (at, text) in texts.iter().enumerate() {
        let mut client = request(address);
        let asked = answer(&scrapes, &mut pages, text);
        assert_eq!(
            asked.page,
            at.min(PAGES - 1),
            "the clients before have read nothing"
        );
        // The answer has begun.
        client.read_exact(&mut [0; 4]).expect("it answers");
        clients.push(client);
    }
    for (mut client, text) in clients.into_iter().zip(&texts) {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("it answers");
        assert!(answer.ends_with(&[b"\r\n\r\n", text.as_slice()].concat()));
    }
    let _client = request(address);
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
