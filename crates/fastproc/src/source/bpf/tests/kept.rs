//! The words that prove a record unchanged. A user can bring about many of them.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use fastproc_testbed::{alone, gate, needs, wait_for};
use libbpf_rs::{MapCore, MapFlags};

use super::*;
use crate::{
    base::plain::{bytes_of, read},
    source::bpf::run::{PROVE, Place, Proof},
};

/// Without the words of memory: the processes of this test have memory of different sizes.
const FIELDS: Fields = Fields::CPU.union(Fields::USERS);
/// The places of two words in `WORDS_OF_ALWAYS`.
const EXECS: usize = 6;
const PARENT: usize = 7;

/// What the programs remember of a process.
struct Remembered {
    at: u32,
    place: Place,
    proof: Proof,
}

/// Walks until the record of this process can be kept.
fn remember(bpf: &mut Bpf, pid: u32) -> Remembered {
    wait_for("a process that sleeps is kept", || {
        bpf.collect().expect("it walks");
        let at = (bpf.index().iter()).position(|&entry| IndexEntry(entry).pid() == pid)? as u32;
        let [places, proofs] = bpf.tasks.kept.as_ref().expect("it keeps records");
        let bytes = |map: &libbpf_rs::MapHandle| {
            let value = map.lookup(&at.to_ne_bytes(), MapFlags::ANY);
            value.expect("a map").expect("an element")
        };
        let place: Place = read(&bytes(places)).expect("a place");
        let proof = read(&bytes(proofs)).expect("a proof");
        (place.plan == PROVE).then_some(Remembered { at, place, proof })
    })
}

fn comm(bpf: &Bpf, pid: u32) -> Vec<u8> {
    let table = bpf.table();
    let record = table.records.iter().find(|one| one.identity.tgid == pid);
    let comm = record.expect("the process has a record").identity.comm;
    comm.into_iter().take_while(|&byte| byte != 0).collect()
}

/// A thread executes a program, and so does a thread of that: the second gets the memory of the first leader. The user
/// has brought its switches, and all else that can be, to what they were. This test moves the address instead of waiting for the
/// allocator.
#[test]
fn a_task_at_the_address_of_an_earlier_leader_is_read() {
    needs!(gate::bpf());
    let _alone = alone();
    let script = r"
import os, sys, threading
def execute(*program): threading.Thread(target=os.execv, args=(program[0], program)).start()
if sys.argv[1:]: execute('/bin/cat')
else:
    print('ready', flush=True)
    sys.stdin.readline()
    execute('/usr/bin/python3', '-c', os.environ['SCRIPT'], 'again')
";
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .env("SCRIPT", script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is Python");
    let pid = child.id();
    let mut input = child.stdin.take().expect("it is piped");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it says");
    let mut before = open(FIELDS, true);
    let earlier = remember(&mut before, pid);
    assert_eq!(comm(&before, pid), b"python3");

    input.write_all(b"go\n").expect("it reads");
    wait_for("its last program", || {
        let name = fs::read(format!("/proc/{pid}/comm")).expect("/proc shows the process");
        (name == b"cat\n").then_some(())
    });
    let mut proof = remember(&mut open(FIELDS, true), pid);
    let execs = std::mem::replace(&mut proof.proof.words[EXECS], earlier.proof.words[EXECS]);
    proof.place.pool = earlier.place.pool;
    let [places, proofs] = before.tasks.kept.as_ref().expect("it keeps records");
    for (map, value) in [
        (places, bytes_of(&proof.place)),
        (proofs, bytes_of(&proof.proof)),
    ] {
        map.update(&earlier.at.to_ne_bytes(), value, MapFlags::ANY)
            .expect("a map");
    }
    // Every sixteenth record is read without a proof: not this one.
    before.round += u32::from((pid + before.round + 1).is_multiple_of(16));
    before.collect().expect("it walks");
    assert_eq!(comm(&before, pid), b"cat");
    assert_eq!(execs, earlier.proof.words[EXECS] + 2);
    drop(input);
    child.wait().expect("it ends");
}

/// The parent of an orphan may be at the address of the one before.
#[test]
fn a_parent_is_compared_by_its_number() {
    needs!(gate::bpf());
    let _alone = alone();
    let children = Sleepers::start(1);
    let pid = children.pids().into_iter().next().expect("one");
    let proof = remember(&mut open(FIELDS, true), pid).proof;
    assert_eq!(proof.words[PARENT], u64::from(std::process::id()));
}
