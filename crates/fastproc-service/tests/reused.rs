//! A buffer in which only changed records are written again holds the same as one that is written completely.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use common::Served;
use fastproc::{Collector, Fields, Snapshot, SourceKind};
use fastproc_testbed::{Brackets, gate, wait_for};

/// A process that sleeps until it receives a line, and then runs.
struct Cat(Child);

impl Cat {
    fn start() -> Self {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut cat = Self(cat.spawn().expect("there is cat(1)"));
        cat.run();
        cat
    }

    fn run(&mut self) {
        let Child { stdin, stdout, .. } = &mut self.0;
        writeln!(stdin.as_mut().expect("it is piped"), "run").expect("it reads");
        let mut line = String::new();
        let mut output = BufReader::new(stdout.as_mut().expect("it is piped"));
        output.read_line(&mut line).expect("it writes");
    }
}

impl Drop for Cat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a snapshot shows of these processes.
fn values(snapshot: &Snapshot<'_>, cats: &[Cat]) -> String {
    let text = |cat: &Cat| {
        let process = snapshot.get(cat.0.id())?;
        let cpu = process.cpu()?;
        let counters = (cpu.sum_exec_ns(), cpu.minflt, cpu.nvcsw, cpu.nivcsw);
        let memory = process.memory()?;
        let sizes = (memory.vsize, memory.rss_anon, memory.rss_file);
        Some(format!("{:?} {counters:?} {sizes:?}", process.identity()))
    };
    let texts: Vec<_> = cats.iter().map(text).collect();
    format!("{texts:#?}")
}

#[test]
fn a_reader_that_stays_is_handed_what_a_walk_reads() {
    if !gate::bpf() {
        return;
    }
    let served = Served::start("reused", Some(SourceKind::Bpf));
    let mut stays = served.builder().fields(Fields::TOP).open().expect("served");
    let walks = Collector::builder().source(Some(SourceKind::Bpf));
    let walks = walks.fields(Fields::TOP).keep_records(false);
    let mut walks = walks.open().expect("BPF can be used");
    let mut cats: Vec<_> = (0..20).map(|_| Cat::start()).collect();
    for round in 0..40 {
        match round % 5 {
            0..3 => cats[round % 20].run(),
            3 => cats.push(Cat::start()),
            _ => drop(cats.remove(round % 20)),
        }
        let mut brackets = Brackets::new();
        let (walked, handed) = wait_for("looks between which none of them runs", || {
            let walk = || values(&walks.snapshot().expect("it walks"), &cats);
            let hand = || values(&stays.snapshot().expect("it answers"), &cats);
            brackets.read(walk, hand)
        });
        assert_eq!(handed, walked, "in round {round}");
    }
}
