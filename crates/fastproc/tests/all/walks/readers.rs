//! A reader that reuses its values of unchanged records agrees with one that starts again each time.

use fastproc::{
    Baseline, Collector, Fields, Process, Snapshot, SourceKind, Table,
    difference::{Change, Comparison, PerProcess},
    record::Record,
};
use fastproc_testbed::{Moving, gate, needs};

/// The same snapshot, without the information which records are unchanged.
fn anew<'a>(snapshot: &Snapshot<'_>, records: &'a mut Vec<Record>) -> Snapshot<'a> {
    records.clear();
    records.extend(snapshot.iter().map(|process| *process.record()));
    let table = Table {
        records,
        ..Table::default()
    };
    Snapshot::recorded(table, snapshot.stats())
}

fn values(change: &Change<'_>) -> String {
    let Change {
        process,
        thread,
        born,
        ..
    } = change;
    format!(
        "{} {:?} {born} {:?} {thread:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        process.pid(),
        process.identity(),
        process.cpu(),
        change.cpu_ns,
        change.cpu_share,
        change.user_share,
        change.system_share,
        change.minflt_per_second,
        change.majflt_per_second,
        change.read_bytes_per_second,
        change.write_bytes_per_second,
    )
}

fn open(fields: Fields) -> Collector {
    let builder = Collector::builder().source(Some(SourceKind::Bpf));
    let builder = builder.fields(fields).lone_threads(false);
    builder.open().expect("BPF can be used")
}

#[test]
fn a_reader_that_reuses_what_stayed_says_what_one_says_that_starts_anew() {
    needs!(gate::bpf());
    let mut moving = Moving::start();
    for fields in [Fields::TOP, Fields::TOP | Fields::IO | Fields::SCHEDULING] {
        let mut collector = open(fields);
        let (mut reuses, mut anew_each) = (Baseline::default(), Baseline::default());
        let mut digests = PerProcess::new();
        let (mut made, mut all) = (0, 0);
        let mut records = Vec::new();
        for round in 0..72 {
            if round % 8 < 5 {
                moving.step(round);
            }
            let snapshot = collector.snapshot().expect("it walks");
            // Both readers miss a change, and the next snapshots until its record is kept again.
            if round % 8 >= 4 {
                continue;
            }
            let digest = |process: Process<'_>| {
                let identity = process.identity();
                let runs = process.cpu().map(|cpu| (cpu.nvcsw, cpu.minflt));
                (identity.start_ns, identity.comm, identity.state(), runs)
            };
            let all_anew: Vec<_> = snapshot.iter().map(digest).collect();
            let reused = digests.update(&snapshot, |process| {
                made += 1;
                digest(process)
            });
            assert_eq!(reused, all_anew, "in round {round}");
            all += all_anew.len();
            let copy = anew(&snapshot, &mut records);
            let reused: Vec<_> = reuses.changes(&snapshot).map(|of| values(&of)).collect();
            let beside = Comparison::new(&reuses, &snapshot);
            let single = (0..snapshot.len()).map(|place| values(&beside.change(place)));
            assert!(single.eq(reused.iter().cloned()), "in round {round}");
            let others: Vec<_> = anew_each.changes(&copy).map(|of| values(&of)).collect();
            assert_eq!(reused, others, "in round {round}");
            reuses.set(&snapshot);
            anew_each.set(&copy);
        }
        assert!(made < all / 2, "{made} of {all} were made anew");
    }
}
