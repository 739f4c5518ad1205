//! Walks while threads replace descriptors as fast as they can, in the same numbers and mostly in the same memory.

use std::{
    fs::{self, File},
    net::UdpSocket,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use fastproc::files::{Address, Fields, Kind, Mode, Source};
use fastproc_testbed::{Folder, alone, gate, needs, own_process};
use rustix::fs::{MemfdFlags, Mode as Permissions, OFlags, memfd_create, open as open_file};

use super::{open, own_pid, process};

/// Files that are opened, and descriptors of each thread.
const FILES: u64 = 50;
const DESCRIPTORS: u64 = 200;

/// The next object of a thread: a file, a socket, or a memory.
fn next(folder: &Path, at: u64) -> OwnedFd {
    match at % 4 {
        0 | 1 => {
            let number = at / 4 % FILES;
            let flags = [OFlags::RDONLY, OFlags::RDWR][number as usize % 2];
            let path = folder.join(format!("f{number}"));
            open_file(path, flags | OFlags::CLOEXEC, Permissions::empty()).expect("the file exists")
        }
        2 => {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
            let port = socket.local_addr().expect("it is bound").port();
            socket.connect(("127.0.0.1", port ^ 1)).expect("an address");
            socket.into()
        }
        _ => memfd_create(format!("m{at}"), MemfdFlags::CLOEXEC).expect("a memory"),
    }
}

fn replace(folder: &Path, stop: &AtomicBool, mut at: u64) {
    let mut held: Vec<OwnedFd> = (0..DESCRIPTORS)
        .map(|more| next(folder, at + more))
        .collect();
    while !stop.load(Relaxed) {
        for place in 0..held.len() {
            at += 1;
            // Closed first, so that the number and the memory are free.
            drop(held.swap_remove(place));
            let new = next(folder, at.wrapping_mul(0x9e37_79b9) >> 7);
            held.push(new);
        }
    }
}

/// What is wrong with a record: its parts belong to different files.
fn wrong(file: fastproc::files::File<'_>, inodes: &[u64]) -> Option<String> {
    let mut name = Vec::new();
    file.write_name(&mut name);
    let name = String::from_utf8_lossy(&name).into_owned();
    let said = format!(
        "{name} {:?} {:?} {:?}",
        file.inode(),
        file.size(),
        file.mode()
    );
    if let Some(socket) = file.socket() {
        let ports = [socket.local(), socket.peer()].map(|end| end.and_then(Address::port));
        let is_right = match ports {
            // Not bound yet, or not connected.
            [_, None] => true,
            [Some(local), Some(peer)] => local ^ 1 == peer,
            [None, Some(_)] => false,
        };
        let named = Some(name) == file.inode().map(|inode| format!("socket:[{inode}]"));
        return (!is_right || !named).then(|| format!("{said} {ports:?}"));
    }
    let (_, last) = name.rsplit_once('/')?;
    if file.kind() != Kind::File {
        return last.starts_with('m').then_some(said);
    }
    if last.starts_with("memfd:m") {
        let is_right = file.mode() == Some(Mode::Both) && file.size() == Some(0);
        return (!is_right).then_some(said);
    }
    let number: usize = last.strip_prefix('f')?.parse().ok()?;
    let mode = [Mode::Read, Mode::Both][number % 2];
    let is_right = file.inode() == Some(inodes[number])
        && file.size() == Some(number as u64 + 1)
        && file.mode() == Some(mode);
    (!is_right).then_some(said)
}

#[test]
fn replaced_descriptors_are_never_mixed() {
    needs!(
        gate::bpf(),
        own_process(replaced_descriptors_are_never_mixed)
    );
    let _alone = alone();
    let folder = Folder::in_memory("files-storm");
    let make = |number: u64| {
        let path = folder.join(format!("f{number}"));
        let file = File::create(&path).expect("the folder is new");
        file.set_len(number + 1).expect("there is room");
        fs::metadata(&path).expect("the file exists").ino()
    };
    let inodes: Vec<u64> = (0..FILES).map(make).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|at| {
            let (stop, folder) = (Arc::clone(&stop), folder.to_path_buf());
            thread::spawn(move || replace(&folder, &stop, at * 1_000_003))
        })
        .collect();
    let seconds = std::env::var("FASTPROC_STORM_SECONDS").ok();
    let seconds = seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(3);
    let started = Instant::now();
    let mut files = open(Source::Bpf, Fields::FILES | Fields::SOCKETS | Fields::PATHS);
    let (mut judged, mut found, mut retried) = (0, Vec::new(), 0);
    while started.elapsed() < Duration::from_secs(seconds) {
        files.snapshot().expect("a snapshot");
        retried += files.retried();
        for file in process(files.last(), own_pid()).files() {
            judged += 1;
            found.extend(wrong(file, &inodes));
        }
    }
    stop.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("the thread does not panic");
    }
    println!(
        "{judged} records, {} wrong, {retried} read again",
        found.len()
    );
    gate::compared(judged, 0);
    assert!(found.is_empty(), "{found:#?}");
    assert!(judged > 1000);
}
