//! CPU time over a window, beside the kernel's own count.

use std::{
    fs,
    io::Write,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use fastproc::{Collector, Fields};
use fastproc_history::{
    folder::Folder as Files,
    read::History,
    recorder::{Bounds, Kept, Lines, Live, Look, Machine, Moment, Session, boot_id},
};
use fastproc_testbed::{Cgroup, Folder, gate, needs, wait_until};

const INTERVAL: Duration = Duration::from_millis(200);
/// Processes that end.
const ENDED: usize = 30;

/// A recorder that looks when it is told to.
struct Recorder {
    collector: Collector,
    machine: Machine,
    texts: Live,
    session: Session,
    cgroup: u64,
    /// Exits of the cgroup.
    exits: usize,
}

impl Recorder {
    fn open(folder: &Folder, cgroup: u64) -> Self {
        let mut collector = Collector::builder()
            .fields(Fields::CPU | Fields::CGROUP)
            .service_socket(None)
            .exits(true)
            .open()
            .expect("root may load BPF");
        assert!(collector.take_exits_refused().is_none());
        let files = Files::create(folder, "here").expect("a folder");
        let bounds = Bounds {
            leave: 0.0,
            ..Bounds::default()
        };
        let now = Moment::now().wall.div_euclid(1_000_000);
        let (kept, taken, told) =
            Kept::take(files, "here".into(), bounds, now).expect("nobody else is there");
        let boot = boot_id().expect("the kernel tells it");
        Self {
            machine: Machine::open(collector.host(), INTERVAL, true).expect("counters"),
            texts: Live::open(collector.host(), Lines::None).expect("the host is read"),
            session: Session::new(kept, &boot, INTERVAL, taken, told).expect("a thread"),
            collector,
            cgroup,
            exits: 0,
        }
    }

    /// Records the next look. Returns its time.
    fn look(&mut self) -> i64 {
        thread::sleep(self.session.until_next(Moment::now()));
        let moment = Moment::now();
        let snapshot = self.collector.snapshot().expect("processes");
        let ended = snapshot.exits().expect("exits are recorded").iter();
        self.exits += ended.filter(|exit| exit.cgroup_id == self.cgroup).count();
        let machine = self.machine.row(&snapshot);
        let look = Look {
            moment,
            snapshot: &snapshot,
            machine: &machine,
            cgroups: &[],
            waits: &[],
        };
        self.session.push(&look, &mut self.texts);
        let interval = INTERVAL.as_micros() as i64;
        moment.wall - moment.wall.rem_euclid(interval)
    }

    /// Looks until nothing has run in the cgroup during a look. Returns its time, and the CPU time of the cgroup then.
    fn look_at_rest(&mut self, cgroup: &Cgroup) -> (i64, u64) {
        loop {
            let before = cgroup.usage_ns();
            let time = self.look();
            if cgroup.usage_ns() == before {
                return (time, before);
            }
        }
    }
}

fn say(shell: &mut Child, line: &str) {
    let input = shell.stdin.as_mut().expect("a pipe");
    input.write_all(line.as_bytes()).expect("the shell waits");
}

#[test]
fn cpu_time_over_a_window_is_that_of_the_kernel_with_ended_processes() {
    needs!(gate::bpf());
    let Some(cgroup) = Cgroup::new("busy") else {
        return;
    };
    let folder = Folder::new("cpu-time");
    let waits = folder.join("waits");
    let id = cgroup.id();
    // It waits for its children when all are at rest: of one that still leaves a CPU, the kernel itself does not add up the
    // last moment, and so neither does wait4(2).
    let script = format!(
        "count() {{ j=0; while [ $j -lt 20000 ]; do j=$((j+1)); done; }}
         touch {}; read line; i=0
         while [ $i -lt {ENDED} ]; do (count) & i=$((i+1)); done
         count; read line; wait; read line",
        waits.display()
    );
    let mut shell = cgroup.command(&script);
    let shell = shell.stdin(Stdio::piped()).spawn();
    let mut shell = shell.expect("there is a shell");
    wait_until("the shell waits", || waits.exists());
    let mut recorder = Recorder::open(&folder, id);
    let (first, before) = recorder.look_at_rest(&cgroup);
    say(&mut shell, "\n");
    wait_until("the children have ended", || {
        recorder.look();
        let living = fs::read_to_string(cgroup.folder().join("cgroup.procs"));
        living.expect("the cgroup exists").lines().count() == 1
    });
    recorder.look_at_rest(&cgroup);
    say(&mut shell, "\n");
    wait_until("all exits are known", || {
        recorder.look();
        recorder.exits >= ENDED
    });
    let (last, after) = recorder.look_at_rest(&cgroup);
    assert!(recorder.session.finish("the test ends"));
    drop(shell.stdin.take());
    shell.wait().expect("a child");

    let mut history = History::open(&folder, None).expect("it is a history");
    let window = history.between(first, last, Fields::CPU | Fields::CGROUP);
    let window = window.expect("both were recorded");
    assert_eq!(window.lost_exits, Some(0));
    let rows = window.rows();
    let ours = rows.iter().filter(|row| match row.exit() {
        Some(exit) => exit.cgroup_id == id,
        None => row.process.cgroup_id() == Some(id),
    });
    let times: Vec<u64> = ours
        .map(|row| {
            let cpu = row.process.cpu().expect("it is recorded");
            cpu.utime_ns + cpu.stime_ns
        })
        .collect();
    assert!(times.len() > ENDED, "{times:?}");
    let (sum, kernel) = (times.iter().sum::<u64>(), after - before);
    assert!(kernel > 100_000_000, "{kernel} ns are too few to compare");
    assert!(
        sum.abs_diff(kernel) * 1000 <= kernel,
        "{sum} ns are recorded, and the kernel counted {kernel} ns"
    );
}
