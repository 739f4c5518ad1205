//! A compromised exporter in place of the right one.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use fastproc_metrics::{link::VERSION, naming::Item};
use fastproc_testbed::{gate, needs};

use crate::serve::{FASTPROC, folder::Folder, server::refused};

/// Begins like the right one. Then it does what its first lines say.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import fcntl, os, socket, struct, sys
COLLECTS, WRITES, REGROUPS = 1, 2, 16
FOLDER = os.path.dirname(sys.argv[0])
assert sys.argv[1] == "--collected=VERSION", sys.argv

def words(*given):
    return struct.pack("4Q", *given, *[0] * (4 - len(given)))

def text(of, seals=2 | 4 | 8):
    memory = os.memfd_create("text", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(memory, of)
    if seals:
        fcntl.fcntl(memory, 1033, seals)
    return memory

def rules(name):
    with open(f"{FOLDER}/{name}", "rb") as file:
        return file.read()

link = socket.socket(fileno=0)

def begin(*descriptors):
    socket.send_fds(link, [words(4)], descriptors)
    if not link.recv(32):
        sys.exit()
    _, [other], _, _ = socket.recv_fds(link, 32, 1)
    return socket.socket(fileno=other)

def ask(scrapes, flags, *descriptors):
    socket.send_fds(scrapes, [words(flags)], descriptors)
    answer = socket.recv_fds(scrapes, 32, 1)[0]
    if not answer:
        sys.exit("it has ended")
    return struct.unpack("4Q", answer)[0]

"#;

/// The messages of `fastproc serve` with this exporter.
#[track_caller]
fn serve(folder: &Folder, acts: &str, arguments: &[&str]) -> String {
    let fastproc = folder.copy(FASTPROC, "fastproc");
    let program = PROGRAM.replace("VERSION", VERSION) + acts;
    let program = folder.write("fastproc-exporter", &program);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("its mode is set");
    let mut command = Command::new(fastproc);
    command.args(["serve", "--listen", "127.0.0.1:0", "--source=procfs"]);
    refused(command.args(["--min-interval", "0"]).args(arguments))
}

#[test]
fn an_exporter_that_breaks_the_rules_of_the_link_ends_it_with_an_error() {
    needs!(gate::programs(&["python3"]));
    let folder = Folder::new();
    for (acts, told) in [
        (
            "scrapes = begin()\nscrapes.send(b'x')\nscrapes.recv(32)\n",
            "cannot be answered: invalid data",
        ),
        (
            "scrapes = begin()\nask(scrapes, COLLECTS | REGROUPS)\n",
            "cannot be answered: rules of groups are announced",
        ),
        (
            "scrapes = begin()\nask(scrapes, COLLECTS, text(b''))\n",
            "cannot be answered: rules of groups are announced",
        ),
        (
            "scrapes = begin()\nask(scrapes, COLLECTS | REGROUPS, text(b''), text(b''), text(b''))\n",
            "cannot be answered: invalid data",
        ),
        (
            "scrapes = begin()\nwhile True: scrapes.send(words(WRITES))\n",
            "cannot be answered: ",
        ),
        (
            "begin(text(b''))\n",
            "rules of groups came, and there is no --config",
        ),
        (
            "scrapes = begin()\nask(scrapes, COLLECTS)\n",
            "fastproc-exporter has ended unexpectedly",
        ),
    ] {
        let stderr = serve(&folder, acts, &[]);
        assert!(stderr.contains(told), "{acts}: {stderr}");
        assert!(!stderr.contains("panicked"), "{acts}: {stderr}");
    }
}

#[test]
fn an_exporter_that_asks_for_ever_new_pages_gets_four() {
    needs!(gate::programs(&["python3"]));
    let folder = Folder::new();
    let acts = "
scrapes = begin()
got = 0
for number in range(900):
    scrapes.send(words(WRITES | number << 5 & ~(COLLECTS | REGROUPS)))
    got += len(socket.recv_fds(scrapes, 32, 1)[1])
print(f'it got {got}.', file=sys.stderr)
";
    let stderr = serve(&folder, acts, &[]);
    assert!(stderr.contains("it got 4."), "{stderr}");
}

#[test]
fn hostile_rules_are_refused_and_it_goes_on() {
    needs!(gate::programs(&["python3"]));
    let folder = Folder::new();
    let named = |name: String| Item {
        name,
        cmdlines: Some(vec![".".into()]),
        ..Item::default()
    };
    let deep = format!("{{{{{}.Comm", "(".repeat(4000));
    let expression = Item {
        cmdlines: Some(vec![r"(\pL{1000}){1000}".into()]),
        ..Item::default()
    };
    let many = vec![Item::default(); 10_001];
    let long = Item {
        name: "{{.Matches}}".repeat(20),
        cmdlines: Some(vec![format!("(?P<{}>.)", "a".repeat(4000))]),
        ..Item::default()
    };
    for (name, items) in [
        ("deep", &[named(deep)][..]),
        ("expression", &[expression]),
        ("many", &many),
        ("long", &[long]),
    ] {
        fs::write(folder.path().join(name), Item::to_bytes(items)).expect("the file is written");
    }
    let acts = "
scrapes = begin()
assert ask(scrapes, COLLECTS | WRITES) > 0
for wrong in [
    text(rules('deep'), 0), os.pipe()[0], text(b'x'), text(b'x' * (1 << 20) + b'x'),
    text(rules('deep')), text(rules('expression')), text(rules('many')),
]:
    assert ask(scrapes, COLLECTS | WRITES | REGROUPS, wrong) > 0
assert ask(scrapes, COLLECTS | WRITES | REGROUPS, text(rules('long'))) > 0
print('all was answered', file=sys.stderr)
";
    let config = folder.write("groups.yml", "process_names: [{comm: [a]}]\n");
    let stderr = serve(&folder, acts, &["--config", &config]);
    assert!(stderr.contains("all was answered"), "{stderr}");
    let refused = stderr.matches("the exporter sent rules of groups that cannot be used");
    assert_eq!(refused.count(), 7, "{stderr}");
    assert!(stderr.contains("makes more than 65536 bytes"), "{stderr}");

    // Without a file of rules none are accepted.
    let acts = "
scrapes = begin()
assert ask(scrapes, COLLECTS | WRITES | REGROUPS, text(rules('long'))) > 0
";
    let stderr = serve(&folder, acts, &[]);
    assert!(stderr.contains("there is no file that has any"), "{stderr}");
}
