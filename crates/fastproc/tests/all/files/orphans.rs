//! Sockets without a descriptor, which only the kernel's tables have.

use std::{
    net::{TcpListener, TcpStream},
    os::{linux::net::SocketAddrExt, unix::net},
};

use fastproc::files::{Address, Fields, Files, Source};
use fastproc_testbed::{gate, needs, own_process};

use super::SOURCES;

/// A row of a socket.
type Row = (&'static str, &'static str, [String; 2], [Option<u32>; 3]);

fn rows(source: Source, port: u16, name: &[u8]) -> Vec<Row> {
    let builder = Files::builder()
        .source(Some(source))
        .fields(Fields::SOCKETS);
    let mut files = builder.orphans(true).open().expect("it opens");
    let snapshot = files.snapshot().expect("a snapshot");
    let orphans = snapshot.orphans().filter(|socket| {
        let ends = [socket.local(), socket.peer()];
        let is_wanted = |end: &Address<'_>| match end {
            Address::Inet(_, number) => *number == port,
            Address::Abstract(found) => *found == name,
            _ => false,
        };
        ends.iter().flatten().any(is_wanted)
    });
    let rows = orphans.map(|socket| {
        // The text does not tell the user and the other end of a unix socket.
        let is_inet = socket.netid() == "tcp";
        let ends = [socket.local(), socket.peer().filter(|_| is_inet)];
        let ends = ends.map(|end| end.map(|end| end.to_string()).unwrap_or_default());
        let uid = socket.uid().filter(|_| is_inet);
        let numbers = [socket.receive_queue(), socket.send_queue(), uid];
        assert_eq!(socket.inode(), 0);
        (socket.netid(), socket.state_name(), ends, numbers)
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_unstable();
    if source == Source::Bpf {
        assert!(files.lists_by_bpf(), "the programs were not loaded");
    }
    rows
}

#[test]
fn sockets_without_a_descriptor_are_those_of_the_text() {
    needs!(gate::bpf());
    // Other tests open and close sockets.
    needs!(own_process(
        sockets_without_a_descriptor_are_those_of_the_text
    ));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("the socket accepts");
    // The end that closes first waits.
    let waits = connect();
    let (accepted, _) = listener.accept().expect("a client");
    drop(waits);
    drop(accepted);
    let not_accepted = connect();
    let name = format!("fastproc-orphans-{}", std::process::id());
    let address = net::SocketAddr::from_abstract_name(&name).expect("it is short");
    let unix = net::UnixListener::bind_addr(&address).expect("the name is new");
    let client = net::UnixStream::connect_addr(&address).expect("the socket accepts");
    let [by_bpf, by_text] = SOURCES.map(|source| rows(source, port, name.as_bytes()));
    assert_eq!(by_bpf, by_text);
    let states: Vec<_> = by_bpf
        .iter()
        .map(|(netid, state, ..)| (*netid, *state))
        .collect();
    let expected = [("tcp", "ESTAB"), ("tcp", "TIME-WAIT"), ("u_str", "ESTAB")];
    assert_eq!(states, expected);
    drop((not_accepted, unix, client));
}
