//! `fastproc files` and `fastproc sockets`, about this process.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::MetadataExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    process::{Command, Stdio},
};

use fastproc_testbed::{Folder, gate, needs, wait_until};
use serde_json::Value;

use crate::common::{output, run};

/// The sources that work here.
fn sources() -> &'static [&'static str] {
    if gate::bpf() {
        &["bpf", "procfs"]
    } else {
        &["procfs"]
    }
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let arguments = [arguments, &["--format", "ndjson"]].concat();
    let rows = output(&arguments);
    let rows = rows.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>()
        .expect("each line is an object")
}

#[test]
fn files_answers_its_questions() {
    let folder = Folder::new("cli-files");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let mut kept = File::create(path("kept")).expect("the folder is new");
    kept.write_all(b"12345").expect("there is room");
    let deleted = File::create(path("deleted")).expect("the folder is new");
    deleted.set_len(1 << 20).expect("there is room");
    fs::remove_file(path("deleted")).expect("the file exists");
    let pid = std::process::id().to_string();
    for source in sources() {
        let source = format!("--source={source}");
        let of_pid = format!("pid == {pid}");
        let filter = format!("{of_pid} && deleted && size >= 1M && kind == file");
        let found = rows(&["files", &source, "--filter", &filter, "--sort", "-size"]);
        let names: Vec<_> = found
            .iter()
            .filter_map(|row| row["name"].as_str())
            .collect();
        assert_eq!(
            names,
            [format!("{} (deleted)", path("deleted"))],
            "{source}"
        );
        assert_eq!(found[0]["size_bytes"], 1 << 20);

        let below = folder.to_string_lossy();
        let found = rows(&["files", &source, "--path", &below, "--filter", &of_pid]);
        assert_eq!(found.len(), 2, "{source}: {found:?}");
        let row = found.iter().find(|row| row["name"] == path("kept"));
        let row = row.expect("it is open");
        assert_eq!((&row["mode"], &row["pos_bytes"]), (&"w".into(), &5.into()));
        assert_eq!(row["pid"].to_string(), pid);

        // This process opens more in other tests.
        let child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let mut child = child.expect("cat is everywhere");
        let of_child = child.id().to_string();
        wait_until("cat to run", || {
            fs::read(format!("/proc/{of_child}/comm")).is_ok_and(|name| name == b"cat\n")
        });
        let filter = format!("pid == {of_child}");
        let counted = rows(&["files", &source, "--count", "--filter", &filter]);
        let listed = rows(&["files", &source, &of_child, "--filter", "held_as == fd"]);
        let fds = counted[0]["fds"].as_u64().expect("it is known");
        assert_eq!(fds, listed.len() as u64, "{source}");
        drop(child.stdin.take());
        child.wait().expect("cat ends with its input");

        let lines = output(&["files", &source, &pid, "-F", "pfano"]);
        let of_file = format!("\naw\no0t5\nn{}\n", path("kept"));
        assert!(lines.starts_with(&format!("p{pid}\nf")), "{lines}");
        assert!(lines.contains(&of_file), "{source}: {lines}");
    }
}

/// A removed file has a successor, and another process mounts its own file system over the folder.
#[test]
fn a_path_is_a_file_and_not_a_name() {
    let folder = Folder::new("cli-files-path");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let create = |name: &str| File::create(path(name)).expect("there is room");
    let removed = create("a");
    fs::remove_file(path("a")).expect("the file exists");
    let new = create("a");
    let inode = |file: &File| file.metadata().expect("it is open").ino();
    let pid = std::process::id();
    let own = format!("pid == {pid}");
    let below = folder.to_string_lossy();
    let inodes = |source: &str, path: &str, filter: &str| -> Vec<Option<u64>> {
        let found = rows(&["files", source, "--path", path, "--filter", filter]);
        found.iter().map(|row| row["inode"].as_u64()).collect()
    };
    for source in sources() {
        let source = format!("--source={source}");
        let expected = [Some(inode(&new))];
        assert_eq!(inodes(&source, &path("a"), &own), expected, "{source}");
        let mut found = inodes(&source, &below, &own);
        found.sort_unstable();
        let mut expected = [&removed, &new].map(|file| Some(inode(file)));
        expected.sort_unstable();
        assert_eq!(found, expected, "{source}");
    }
    needs!(gate::root(), gate::programs(&["unshare", "mount"]));
    let script = r#"mount -t tmpfs none "$0" && exec 3>"$0/a" 4>"$0/b" && rm "$0/b" && exec cat"#;
    let mut other = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, &below])
        .stdin(Stdio::piped())
        .spawn()
        .expect("unshare is there");
    let of_other = other.id();
    wait_until("cat to run", || {
        fs::read(format!("/proc/{of_other}/comm")).is_ok_and(|name| name == b"cat\n")
    });
    let of_other = format!("pid == {of_other}");
    for source in sources() {
        let source = format!("--source={source}");
        for path in [&path("a"), &*below] {
            let found = run(&["files", &source, "--path", path, "--filter", &of_other]);
            assert_eq!(found.status.code(), Some(1), "{source} {path}");
        }
    }
    drop(other.stdin.take());
    other.wait().expect("cat ends with its input");
}

#[test]
fn sockets_answers_its_questions() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let mut client =
        std::net::TcpStream::connect(("127.0.0.1", port)).expect("the socket accepts connections");
    let (mut server, _) = listener.accept().expect("a client connects");
    server.write_all(b"abc").expect("it is connected");
    let pid = std::process::id();
    let own = format!("pid == {pid}");
    let udp = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    let unconnected = udp.local_addr().expect("it is bound").port();
    let name = format!("fastproc-files-{pid}");
    let address = SocketAddr::from_abstract_name(&name).expect("it is short");
    let _unix = UnixDatagram::bind_addr(&address).expect("the name is free");
    for source in sources() {
        let source = format!("--source={source}");
        let number = port.to_string();
        // A child of another test has it, too, until it executes its program.
        let of_port = ["sockets", &source, "--port", &number, "--filter", &own];
        let listening = rows(&[&of_port[..], &["--listen"]].concat());
        assert_eq!(listening.len(), 1, "{source}: {listening:?}");
        let row = &listening[0];
        assert_eq!(
            (&row["netid"], &row["state"]),
            (&"tcp".into(), &"LISTEN".into())
        );
        assert_eq!(
            (&row["local"], &row["peer"]),
            (&format!("127.0.0.1:{port}").into(), &Value::Null)
        );
        assert_eq!(row["pid"], pid);
        assert_eq!(row["send_q"], Value::Null);
        let both = rows(&[&of_port[..], &["--sort", "-recv_q"]].concat());
        assert_eq!(both.len(), 3, "{source}: {both:?}");
        assert_eq!(
            (&both[0]["recv_q"], &both[0]["state"]),
            (&3.into(), &"ESTAB".into())
        );
        let client = client.local_addr().expect("it is connected").to_string();
        assert_eq!(both[0]["local"], client);

        let lines = output(&["files", &source, &pid.to_string(), "-F", "tnPTD"]);
        for expected in [
            format!("\ntIPv4\nPTCP\nn127.0.0.1:{port}\nTST=LISTEN\n"),
            format!("\ntIPv4\nPTCP\nn{client}->127.0.0.1:{port}\nTST=ESTABLISHED\nTQR=3\nTQS=0\n"),
            format!("\ntIPv4\nPUDP\nn*:{unconnected}\nTQR=0\nTQS=0\n"),
            format!("\ntunix\nn@{name} type=DGRAM\nTST=UNCONNECTED\n"),
        ] {
            assert!(lines.contains(&expected), "{source}: {expected} in {lines}");
        }
    }
    // Unread bytes would reset the connection.
    client.read_exact(&mut [0; 3]).expect("they were sent");
    drop(client);
    drop(server);
    // One end waits now, and no process has it.
    let found = rows(&[
        "sockets",
        "--orphans",
        "--filter",
        &format!("local_port == {port} || peer_port == {port}"),
    ]);
    let orphan = found.iter().find(|row| row["state"] == "TIME-WAIT");
    assert_eq!(
        orphan.map(|row| &row["pid"]),
        Some(&Value::Null),
        "{found:?}"
    );
}

#[test]
fn help_begins_with_the_questions() {
    for (command, question) in [
        ("files", "Who holds deleted files?"),
        ("sockets", "Who listens on port 80?"),
    ] {
        for option in ["-h", "--help"] {
            assert!(
                output(&[command, option]).starts_with(question),
                "{command} {option}"
            );
        }
    }
}

#[test]
fn a_process_that_was_named_is_not_left_out_in_silence() {
    // Larger than any pid, and a process of which no socket is open.
    let none = "4194304";
    let child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.expect("cat is everywhere");
    let of_child = child.id().to_string();
    for (command, pid, says) in [
        ("files", none, format!("there is no process {none}")),
        ("sockets", none, format!("there is no process {none}")),
        (
            "sockets",
            &of_child,
            format!("process {of_child} has no sockets"),
        ),
    ] {
        let output = run(&[command, pid, "--json"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(error, format!("fastproc: {says}\n"), "{command} {pid}");
        let quiet = run(&[command, pid, "--json", "--quiet"]);
        assert_eq!(quiet.stderr, b"", "{command} {pid}");
    }
    drop(child.stdin.take());
    child.wait().expect("cat ends with its input");
}

#[test]
fn ps_finds_who_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let pid = std::process::id();
    let listening = format!("listen == {port}");
    let found = rows(&["ps", "--fields", "+sockets,listen", "--filter", &listening]);
    let [row] = &found[..] else {
        panic!("one process listens: {found:?}");
    };
    assert_eq!(row["pid"], pid);
    assert!(
        row["listen"]
            .as_array()
            .expect("a list")
            .contains(&port.into())
    );
    assert!(row["sockets"].as_u64() >= Some(1));
    assert!(
        row["comm"].is_string(),
        "the default columns are there: {row}"
    );
    // One process is read without the others.
    let own = rows(&["ps", "-p", &pid.to_string(), "--fields", "fds,sockets"]);
    assert!(
        own[0]["fds"].as_u64() > own[0]["sockets"].as_u64(),
        "{own:?}"
    );
}
