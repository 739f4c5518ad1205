//! The walk itself meets each of many processes once.

use std::collections::HashSet;

use fastproc::{Fields, Process};
use fastproc_testbed::{alone, gate, needs};

use super::{SECTIONS, open_in_sections, script::Script};

/// Thousands of processes that wait for a line, and exit at the end of input. It prints their pids.
const MANY: &str = "
exec 3<&0
count=0
while [ $count -lt 3000 ]; do
    read -r line <&3 &
    echo $!
    count=$((count + 1))
done
echo all
wait
";

/// Processes that a walk misses are read from `/proc`, so snapshots are complete: the source of each process shows it.
#[test]
fn thousands_of_processes_need_no_reading_from_proc() {
    needs!(gate::bpf());
    let _alone = alone();
    let mut script = Script::shell(MANY);
    let mut pids: HashSet<u32> = HashSet::new();
    while let Ok(pid) = script.answer().parse() {
        pids.insert(pid);
    }
    assert_eq!(pids.len(), 3000);
    for sections in SECTIONS {
        let mut collector = open_in_sections(sections, Fields::empty());
        // The second snapshot has arrays that are large enough, and is compared with the first.
        for look in 0..2 {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let met = snapshot.iter().map(Process::pid);
            let met: Vec<u32> = met.filter(|pid| pids.contains(pid)).collect();
            assert!(met.is_sorted_by(|one, next| one < next), "{sections:?}");
            assert_eq!(met.len(), pids.len(), "{sections:?}, look {look}");
            let by_others: Vec<u32> = snapshot
                .iter()
                .filter(|process| snapshot.source_of(*process) != sections.0)
                .map(Process::pid)
                .filter(|pid| pids.contains(pid))
                .collect();
            assert!(
                by_others.is_empty(),
                "{sections:?}, look {look}: {by_others:?}"
            );
        }
    }
}
