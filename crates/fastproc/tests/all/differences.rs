//! CPU times that several readers take of one process. Needs root.

use std::process::{Child, Command};

use fastproc::{Collector, Fields, SourceKind, record::TICK_NS};
use fastproc_testbed::gate;

/// A child that is killed with the test.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let child = Command::new(program).args(arguments).spawn();
        Self(child.expect("it can be run"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two collectors and `/proc` alternately read a process that works in user mode and in the kernel. Each part is never
/// less than the kernel showed before, and the sum never less than the other collector showed.
#[test]
fn cpu_time_does_not_go_back_between_independent_readers() {
    if !gate::bpf() {
        return;
    }
    let busy = Running::start("sh", &["-c", "while :; do echo busy > /dev/null; done"]);
    let pid = busy.0.id();
    let open = || {
        Collector::builder()
            .source(Some(SourceKind::Bpf))
            .fields(Fields::CPU)
            .open()
            .expect("BPF can be used")
    };
    let mut readers = [open(), open()];
    let ticks = || -> [u64; 2] {
        let stat =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("/proc shows the process");
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let mut fields = rest.split(' ').skip(11);
        [(); 2].map(|()| {
            fields
                .next()
                .and_then(|ticks| ticks.parse().ok())
                .expect("ticks")
        })
    };
    let mut last_sum = 0;
    for round in 0..400 {
        let least = if round % 3 == 0 { ticks() } else { [0; 2] };
        let snapshot = readers[round % 2].snapshot().expect("a snapshot");
        let process = snapshot.get(pid).expect("the process is shown");
        let cpu = process.cpu().expect("it was asked for");
        let parts = [cpu.utime_ns, cpu.stime_ns];
        let sum = parts[0] + parts[1];
        assert!(sum >= last_sum, "round {round}: {sum} after {last_sum}");
        last_sum = sum;
        for (part, least) in parts.into_iter().zip(least) {
            let shown = part / TICK_NS;
            assert!(shown >= least, "round {round}: {shown} ticks after {least}");
        }
    }
}
