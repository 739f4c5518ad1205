//! Processes that stand elsewhere: below another root, in other namespaces, with threads that have tables of their own.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{TcpListener, UdpSocket},
    os::fd::AsRawFd,
    os::unix::net::UnixDatagram,
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    thread,
};

use fastproc::files::{Address, Fields, File, Slot, Socket};
use fastproc_testbed::{Folder, again, assert_passed, gate, needs, own_process};
use rustix::thread::UnshareFlags;

use super::{SOURCES, Said, by_number, open, own_pid, process};

/// A process that holds what it has opened until this is dropped.
pub struct Held(Child);

impl Held {
    /// Starts a process, and waits until it has written this line. It must end when its standard input does.
    pub fn start(command: &mut Command, line: &str) -> (Self, String) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map_while(Result::ok);
        let ready = lines.find_map(|found| Some(found.strip_prefix(line)?.to_owned()));
        (Self(child), ready.expect("it has opened all"))
    }

    /// Runs a script of sh(1), whose first parameter is a folder, in a mount namespace of its own.
    fn in_mounts(script: &str, folder: &Folder) -> Self {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec", script])
            .arg(&**folder);
        Self::start(&mut command, "ready").0
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The numbers of open descriptors, as the text has them.
fn descriptors(pid: u32) -> Vec<Slot> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut slots: Vec<Slot> = names.map(Slot::Descriptor).collect();
    slots.sort_unstable();
    slots
}

/// Compares what a process has open with the text, by both sources, and returns the names of its descriptors.
#[track_caller]
fn compared(pid: u32) -> Vec<String> {
    let mut slots = descriptors(pid);
    let numbers = slots.len();
    slots.extend([Slot::CurrentDirectory, Slot::Root, Slot::Program]);
    let said = slots.iter().map(|&slot| Said::read(pid, slot));
    let said: Vec<Said> = said.collect::<Option<_>>().expect("it waits");
    for source in SOURCES {
        let mut files = open(source, Fields::all());
        let found = by_number(process(files.snapshot().expect("a snapshot"), pid));
        assert!(found.keys().eq(&slots), "{source}: {:?}", found.keys());
        for (slot, said) in slots.iter().zip(&said) {
            let differences = said.differences(found[slot]);
            assert!(
                differences.is_empty(),
                "{source}: {slot:?}: {differences:?}"
            );
        }
    }
    let names = said.into_iter().take(numbers);
    let names = names.map(|said| String::from_utf8_lossy(&said.name).into_owned());
    names.collect()
}

#[test]
fn a_root_below_a_bind_mount_is_seen_from_outside() {
    needs!(gate::bpf(), gate::programs(&["unshare", "mount", "chroot"]));
    let folder = Folder::new("files-chroot");
    let held = Held::in_mounts(
        r#"
        cd "$0"
        mkdir root held
        mount --rbind / root
        mount -t tmpfs none "root$0/held"
        exec chroot root sh -ec '
            cd "$0/held"
            echo >file
            echo >gone
            exec 3<file 4<gone 5</etc/passwd 6</ 7<>/dev/null
            rm gone
            echo ready
            read x || exit 0' "$0""#,
        &folder,
    );
    let names = compared(held.pid());
    let root = format!("{}/root", folder.display());
    let below = format!("{root}{}/held", folder.display());
    let expected = [
        format!("{below}/file"),
        format!("{below}/gone (deleted)"),
        format!("{root}/etc/passwd"),
        root.clone(),
        format!("{root}/dev/null"),
    ];
    assert_eq!(names[3..8], expected);
}

/// A folder that was moved out of what is mounted has no path, as a mount that was taken away has no folder above it.
#[test]
fn a_file_that_has_left_its_mount_is_as_the_text_says() {
    needs!(gate::bpf(), gate::programs(&["unshare", "mount"]));
    let folder = Folder::new("files-mounts");
    let held = Held::in_mounts(
        r#"
        cd "$0"
        mkdir -p from/part/moved from/part/kept at covered detached
        echo >from/part/moved/file
        echo >from/part/kept/file
        echo >from/part/kept/gone
        mount --bind from/part at
        exec 3<at/moved/file 4<at/moved 5<at/kept/file 6<at/kept/gone
        mv from/part/moved from/out
        rm from/part/kept/gone
        mount --bind from/part detached
        exec 7<detached/kept/file 8<detached
        umount -l detached
        echo >covered/file
        exec 9<covered/file
        mount -t tmpfs none covered
        echo ready
        read x || exit 0"#,
        &folder,
    );
    let names = compared(held.pid());
    let at = format!("{}/at/kept", folder.display());
    assert_eq!(names[3..5], ["/", "/"]);
    assert_eq!(
        names[5..7],
        [format!("{at}/file"), format!("{at}/gone (deleted)")]
    );
    assert_eq!(names[7..9], ["/kept/file", "/"]);
    assert_eq!(names[9], format!("{}/covered/file", folder.display()));
}

/// Paths begin at the reader's root directory; what is outside of it has the path from the top of its mount namespace.
#[test]
fn a_reader_below_another_root_sees_paths_from_there() {
    const OUTSIDE: &str = "FASTPROC_FILES_OUTSIDE";
    needs!(gate::bpf(), gate::programs(&["unshare", "mount", "chroot"]));
    if let Ok(outside) = std::env::var(OUTSIDE) {
        let within = fs::File::open("/etc/passwd").expect("the file exists");
        let within = Slot::Descriptor(within.as_raw_fd() as u32);
        let (own, outside) = (own_pid(), outside.parse().expect("a pid"));
        let mut keys = vec![(own, within)];
        keys.extend([8, 9].map(|number| (own, Slot::Descriptor(number))));
        for pid in [own, outside] {
            keys.extend(
                [Slot::Root, Slot::CurrentDirectory, Slot::Program].map(|slot| (pid, slot)),
            );
        }
        for source in SOURCES {
            let mut files = open(source, Fields::all());
            let snapshot = files.snapshot().expect("a snapshot");
            for &(pid, slot) in &keys {
                let said = Said::read(pid, slot).expect("it is open");
                let differences = said.differences(by_number(process(snapshot, pid))[&slot]);
                assert!(
                    differences.is_empty(),
                    "{source}: {slot:?}: {differences:?}"
                );
            }
        }
        return;
    }
    let folder = Folder::new("files-root");
    let test = again(a_reader_below_another_root_sees_paths_from_there);
    let script = r#"
        mkdir "$0/root"
        mount --rbind / "$0/root"
        exec 8</etc/passwd 9<"$0/root/etc/passwd"
        exec chroot "$0/root" "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script]).arg(&*folder);
    command.arg(test.get_program()).args(test.get_args());
    let output = command.env(OUTSIDE, own_pid().to_string()).output();
    assert_passed(&output.expect("unshare(1) is there"));
}

#[test]
fn sockets_of_another_network_namespace_have_its_number() {
    const ROLE: &str = "FASTPROC_FILES_NETWORK";
    needs!(gate::bpf(), gate::programs(&["unshare"]));
    if std::env::var_os(ROLE).is_some() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let _pair = UnixDatagram::pair().expect("a pair");
        let port = |address: std::io::Result<std::net::SocketAddr>| address.expect("bound").port();
        let [tcp, udp] = [port(listener.local_addr()), port(udp.local_addr())];
        println!("\nready {tcp} {udp}");
        let _ = std::io::stdin().read(&mut [0]);
        // Nobody reads what the harness would write.
        std::process::exit(0);
    }
    let test = again(sockets_of_another_network_namespace_have_its_number);
    let mut command = Command::new("unshare");
    command
        .arg("--net")
        .arg(test.get_program())
        .args(test.get_args());
    let (held, ports) = Held::start(command.env(ROLE, "1"), "ready ");
    let namespace =
        |pid: u32| fs::read_link(format!("/proc/{pid}/ns/net")).expect("the process runs");
    assert_ne!(namespace(held.pid()), namespace(own_pid()));
    let (tcp, udp) = ports.split_once(' ').expect("two ports");
    for source in SOURCES {
        let mut files = open(source, Fields::SOCKETS);
        let holder = process(files.snapshot().expect("a snapshot"), held.pid());
        let sockets: Vec<Socket<'_>> = holder.files().filter_map(File::socket).collect();
        for socket in &sockets {
            let number = socket.network_namespace().expect("it is known");
            assert_eq!(
                format!("net:[{number}]"),
                namespace(held.pid()).to_string_lossy()
            );
        }
        let ends = sockets.iter().map(|socket| {
            let local = socket.local().map(|end| end.to_string());
            format!(
                "{} {} {}",
                socket.netid(),
                socket.state_name(),
                local.unwrap_or_default()
            )
        });
        let mut ends: Vec<String> = ends.collect();
        ends.sort_unstable();
        let pair = "u_dgr ESTAB ".to_owned();
        let tcp = format!("tcp LISTEN 127.0.0.1:{tcp}");
        let udp = format!("udp UNCONN 127.0.0.1:{udp}");
        assert_eq!(ends, [tcp, pair.clone(), pair, udp], "{source}");
        let peers = sockets.iter().filter_map(|socket| socket.peer());
        assert!(peers.clone().all(|peer| matches!(peer, Address::Inode(_))));
    }
}

/// `/proc/PID/fd` shows the table of the leader only.
#[test]
fn a_thread_with_a_table_of_its_own_is_not_shown() {
    needs!(
        gate::bpf(),
        own_process(a_thread_with_a_table_of_its_own_is_not_shown)
    );
    let shared = fs::File::open("/dev/null").expect("the file exists");
    let number = shared.as_raw_fd();
    let (ready, has_opened) = channel();
    let (end, ended) = channel::<()>();
    let thread = thread::spawn(move || {
        // SAFETY: the thread has the same descriptors after that, and closes only what it opens.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }.expect("a table");
        let own: Vec<fs::File> = (0..200)
            .map(|_| fs::File::open("/dev/zero").expect("the file exists"))
            .collect();
        ready.send(own.len()).expect("the test waits");
        let _ = ended.recv();
    });
    has_opened.recv().expect("the thread does not panic");
    for source in SOURCES {
        let mut files = open(source, Fields::FILES | Fields::PATHS);
        let holder = process(files.snapshot().expect("a snapshot"), own_pid());
        let names = holder.files().map(|file| {
            let mut name = Vec::new();
            file.write_name(&mut name);
            (file.slot(), name)
        });
        let names: Vec<_> = names.collect();
        assert!(
            !names.iter().any(|(_, name)| name == b"/dev/zero"),
            "{source}"
        );
        let of_leader = (Slot::Descriptor(number as u32), b"/dev/null".to_vec());
        assert!(names.contains(&of_leader), "{source}");
        assert!(!holder.is_of_thread());
    }
    drop(end);
    thread.join().expect("the thread does not panic");
}
