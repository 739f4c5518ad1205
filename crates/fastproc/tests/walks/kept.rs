//! What a walk keeps of the one before is what reading it anew gives, whatever others do to a process that sleeps.

use std::path::Path;

use fastproc::{Collector, Fields, Snapshot, SourceKind};
use fastproc_testbed::{Brackets, Reborn, alone, ended_shell, gate, wait_for, wait_until};

use super::{Sleepers, open, script::Script};

const LEAN: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

/// A script whose child sleeps, and which does something to it when it is told to. Its parts follow.
const BEGIN: &str = r"
import ctypes, mmap, os, resource, signal, sys, tempfile, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0: raise OSError(ctypes.get_errno(), 'it failed')
    return result
def wait_for_ever():
    while True: signal.pause()
def rests(pid):
    while open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] not in 'STtZ': time.sleep(0.001)
def start(body=lambda: None, clone=os.fork):
    read, write = os.pipe()
    pid = clone()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)
        body()
        os.write(write, b'.')
        wait_for_ever()
    os.read(read, 1)
    return pid
def clone(flags):
    # SYS_clone of x86-64
    return lambda: call(libc.syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0))
";
const END: &str = r"
rests(pid)
print(pid, flush=True)
for line in sys.stdin:
    change()
    print('done', flush=True)
try: os.kill(pid, signal.SIGKILL)
except ProcessLookupError: pass
";

/// What a walk says of a process, but for what the kernel last showed to anybody and where its lists lie.
fn values(snapshot: &Snapshot<'_>, pid: u32) -> Option<String> {
    let process = snapshot.get(pid)?;
    let cpu = process.cpu().map(|cpu| {
        let mut cpu = *cpu;
        cpu.utime_ns += cpu.stime_ns;
        cpu.stime_ns = 0;
        (cpu.prev_utime_ns, cpu.prev_stime_ns) = (0, 0);
        cpu
    });
    let credentials = process.credentials().map(|credentials| {
        let mut credentials = *credentials;
        credentials.groups_at = 0;
        credentials
    });
    Some(format!(
        "{:?}\n{:?} {cpu:?}\n{:?}\n{:?} {:?}\n{:?} {:?} {:?}\n{:?} {:?} {credentials:?} {:?}",
        process.identity(),
        process.name(),
        process.memory(),
        process.users(),
        process.scheduling(),
        process.signals(),
        process.limits(),
        process.memory_details(),
        process.layout(),
        process.io(),
        process.cgroup(),
    ))
}

/// A collector that keeps records, and one that reads each anew.
struct Both {
    keeps: Collector,
    reads: Collector,
}

impl Both {
    fn open(fields: Fields) -> Self {
        let open = |keep| {
            Collector::builder()
                .source(Some(SourceKind::Bpf))
                .fields(fields)
                .lone_threads(false)
                .keep_records(keep)
                .open()
                .expect("BPF can be used")
        };
        Self {
            keeps: open(true),
            reads: open(false),
        }
    }

    /// Whether the record of this process is kept.
    fn keeps(&mut self, pid: u32) -> bool {
        let snapshot = self.keeps.snapshot().expect("it walks");
        assert_eq!(snapshot.stats().disproven, 0);
        let kept = !snapshot.changed().any(|process| process.pid() == pid);
        kept && snapshot.get(pid).is_some()
    }

    /// What both say, as soon as it stands still while both look. Panics if they differ.
    fn agree(&mut self, pid: u32, about: &str) -> Option<String> {
        let mut brackets = Brackets::new();
        let (read, kept) = wait_for("looks between which it does not move", || {
            let read = || values(&self.reads.snapshot().expect("it walks"), pid);
            let keeps = || values(&self.keeps.snapshot().expect("it walks"), pid);
            brackets.read(read, keeps)
        });
        assert_eq!(kept, read, "{about}");
        kept
    }
}

/// Compares both walks after each change. `shown`: whether something of it is in the record.
fn compare(fields: Fields, begin: &str, change: &str, shown: bool) {
    if !gate::bpf() {
        return;
    }
    let text = format!("{BEGIN}\n{begin}\ndef change():\n{change}\n{END}");
    let mut script = Script::python(&text);
    let pid = script.answer().parse().expect("a pid");
    let mut both = Both::open(fields);
    wait_until("a process that sleeps is kept", || both.keeps(pid));
    let before = both.agree(pid, "before");
    script.tell("change");
    assert_eq!(script.answer(), "done");
    let mut after = both.agree(pid, "right after");
    for _ in 0..4 {
        after = both.agree(pid, "later");
    }
    assert_eq!(before != after, shown, "{before:?}\n{after:?}");
}

macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident, $fields:expr, $begin:expr, $change:expr, $shown:expr;)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                compare($fields, $begin, $change, $shown);
            }
        )*
    };
}

const SLEEPS: &str = "pid = start()";
const HANDLES: &str = "pid = start(lambda: signal.signal(signal.SIGUSR1, lambda *_: None))";

changes! {
    nothing, LEAN, SLEEPS, " pass", false;
    a_signal_that_it_handles, LEAN, HANDLES, " os.kill(pid, signal.SIGUSR1); time.sleep(0.01); rests(pid)", true;
    it_is_stopped, LEAN, SLEEPS, " os.kill(pid, signal.SIGSTOP); rests(pid)", true;
    /// wait4(2) takes the status of a stopped child from it.
    it_is_stopped_and_its_parent_learns_of_it, LEAN, SLEEPS,
        " os.kill(pid, signal.SIGSTOP); os.waitpid(pid, os.WUNTRACED)", true;
    its_group_changes_before_it_executes_a_program, LEAN, SLEEPS, " os.setpgid(pid, pid)", true;
    it_is_traced, LEAN, SLEEPS, " call(libc.ptrace(0x4206, pid, 0, 0))", true;
    its_nice_value_changes, LEAN, SLEEPS, " os.setpriority(os.PRIO_PROCESS, pid, 7)", true;
    its_policy_changes, LEAN, SLEEPS,
        " os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))", true;
    /// A mapped file of tmpfs loses its pages.
    what_it_has_mapped_is_truncated, LEAN, r"
file = tempfile.TemporaryFile(dir='/dev/shm')
file.truncate(1 << 20)
def body():
    global memory
    memory = mmap.mmap(file.fileno(), 1 << 20)
    for at in range(0, 1 << 20, 4096): memory[at] = 1
pid = start(body)", " file.truncate(0)", true;
    /// The peak of its resident set is set back.
    its_peak_is_set_back, LEAN, r"
def body():
    memory = mmap.mmap(-1, 1 << 23)
    for at in range(0, 1 << 23, 4096): memory[at] = 1
    memory.close()
pid = start(body)", " open(f'/proc/{pid}/clear_refs', 'w').write('5')", true;
    /// Its pages are written to by another, who so brings them.
    another_writes_into_its_memory, LEAN, r"
memory = mmap.mmap(-1, 1 << 20)
where = ctypes.addressof(ctypes.c_char.from_buffer(memory))
pid = start()
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
data = ctypes.create_string_buffer(1 << 20)
def write():
    ours, theirs = Vector(ctypes.addressof(data), 1 << 20), Vector(where, 1 << 20)
    call(libc.process_vm_writev(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))",
        " write()", true;
    its_parent_ends, LEAN, r"
read, write = os.pipe()
def body():
    child = os.fork()
    if child == 0: wait_for_ever()
    os.write(write, str(child).encode())
parent = start(body)
pid = int(os.read(read, 16))", " os.kill(parent, signal.SIGKILL); os.waitpid(parent, 0)", true;
    it_is_killed, LEAN, SLEEPS, " os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)", true;
    it_is_killed_and_not_waited_for, LEAN, SLEEPS, " os.kill(pid, signal.SIGKILL); rests(pid)", true;
    another_process_begins, LEAN, SLEEPS, " start()", false;
}

/// A pid that another process has by now.
#[test]
fn a_pid_that_is_used_again() {
    if !gate::bpf() {
        return;
    }
    let mut both = Both::open(LEAN);
    let sleep = Path::new("/bin/sleep");
    let start = |pid, seconds| Reborn::start(pid, sleep, &[seconds]).expect("root chooses pids");
    wait_for("a pid that nobody takes", || {
        let pid = ended_shell(0, "fastproc");
        let first = start(pid, "600")?;
        wait_until("it is kept", || both.keeps(pid));
        let before = both.agree(pid, "the first");
        drop(first);
        let second = start(pid, "601")?;
        let after = both.agree(pid, "the second");
        assert_ne!(before, after, "it has begun later");
        wait_until("it is kept", || both.keeps(pid));
        both.agree(pid, "the second, kept");
        drop(second);
        Some(())
    });
}

/// Records move up when processes before them have ended, and are kept all the same.
#[test]
fn records_that_move_are_kept() {
    if !gate::bpf() {
        return;
    }
    let _alone = alone();
    let mut sleepers = Sleepers::start(60);
    sleepers.wait_until_asleep();
    let mut both = Both::open(LEAN);
    let last = sleepers.0[59].id();
    wait_until("the last is kept", || both.keeps(last));
    let kept = |both: &mut Both| both.keeps.snapshot().expect("it walks").stats().kept;
    wait_until("most are kept", || kept(&mut both) >= 50);
    for round in 0..40 {
        let mut ended = sleepers.0.remove(if round % 2 == 0 {
            0
        } else {
            sleepers.0.len() / 2
        });
        ended.kill().expect("it sleeps");
        ended.wait().expect("it was killed");
        let new = Sleepers::start(1);
        for pid in sleepers.pids() {
            both.agree(pid, "a sleeper");
        }
        assert!(
            kept(&mut both) as usize >= sleepers.0.len() / 2,
            "in round {round}"
        );
        sleepers.0.extend(new.into_children());
    }
}

/// Who asks for it reads everything anew.
#[test]
fn nothing_is_kept_if_not_wanted() {
    if !gate::bpf() {
        return;
    }
    let mut both = Both::open(LEAN);
    for _ in 0..3 {
        let snapshot = both.reads.snapshot().expect("it walks");
        assert_eq!(snapshot.stats().kept, 0);
        assert_eq!(snapshot.changed().count(), snapshot.len());
    }
    let mut lists = open(SourceKind::Bpf, LEAN | Fields::THREADS);
    for _ in 0..3 {
        let snapshot = lists.snapshot().expect("it walks");
        assert_eq!(snapshot.stats().kept, 0, "each has a record of its thread");
    }
}
