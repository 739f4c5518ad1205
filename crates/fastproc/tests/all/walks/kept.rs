//! A record that a walk keeps equals one that is read again, whatever other processes do to the sleeping process.

mod kernel;
mod orphan;
mod queued;

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use fastproc::{Collector, Fields, Snapshot, SourceKind};
use fastproc_testbed::{
    Brackets, Cgroup, Options, Reborn, Testbed, alone, ended_shell, gate, needs, wait_for,
    wait_until,
};

use super::{Sleepers, WALKS, open, script::Script};

const LEAN: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

/// The start of a script. Its child sleeps; the script changes the child when the test requests it.
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
    # Closed here, it ends with a body that fails. Another clone may share its files.
    if clone == os.fork: os.close(write)
    if not os.read(read, 1): sys.exit('the child has ended')
    return pid
def start_that_waits(act):
    global wake
    read, wake = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)
        os.read(read, 1)
        act()
        wait_for_ever()
    return pid
def switches(pid):
    lines = open(f'/proc/{pid}/status').read().split('\n')
    return [line for line in lines if 'ctxt_switches' in line]
def clone(flags):
    # SYS_clone of x86-64
    return lambda: call(libc.syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0))
";
const END: &str = r"
rests(pid)
print(pid, flush=True)
for line in sys.stdin:
    print(change() or 'done', flush=True)
try: os.kill(pid, signal.SIGKILL)
except ProcessLookupError: pass
";

/// The values of a process by a walk, except the times that the kernel last showed, and the places of its lists.
fn values(snapshot: &Snapshot<'_>, pid: u32) -> Option<String> {
    let process = snapshot.get(pid)?;
    let mut identity = *process.identity();
    // Only the iterator compares it.
    identity.threads_state = 0;
    let cpu = process.cpu().map(|cpu| {
        let mut cpu = *cpu;
        cpu.utime_ns += cpu.stime_ns;
        cpu.stime_ns = 0;
        (cpu.prev_utime_ns, cpu.prev_stime_ns) = (0, 0);
        cpu
    });
    let signals = process.signals().map(|signals| {
        let mut signals = *signals;
        // Every process of root changes the queue of root.
        if process.users().is_some_and(|users| users.uid == 0) {
            signals.queued = 0;
        }
        // What a kept record is proved by is no value of the process: a reader of its files in /proc changes it.
        (signals.switches, signals.run_ns) = (0, 0);
        signals
    });
    let memory = process.memory().map(|memory| {
        let mut memory = *memory;
        // A reader of its files in /proc is a user of its memory for a moment.
        memory.set_mm_users(None);
        memory
    });
    let credentials = process.credentials().map(|credentials| {
        let mut credentials = *credentials;
        credentials.groups_at = 0;
        credentials
    });
    Some(format!(
        "{:?}\n{:?} {cpu:?}\n{memory:?}\n{:?} {:?}\n{signals:?} {:?} {:?}\n{:?} {:?} {credentials:?} {:?}\n{:?} {:?} {:?}",
        identity,
        process.name(),
        process.users(),
        process.scheduling(),
        process.limits(),
        process.memory_details(),
        process.layout(),
        process.io(),
        process.cgroup(),
        process.supplementary_groups().collect::<Vec<_>>(),
        process.nested_ids().collect::<Vec<_>>(),
        process
            .scheduling_details()
            .map(|details| (details.cpus_allowed, details.mems_allowed)),
    ))
}

/// Collectors that keep records, by each walk, and one that reads all.
struct Both {
    fields: Fields,
    keeps: [Collector; 2],
    reads: Collector,
}

/// Those that no test is using: opening them takes longer than most tests.
static SPARE: Mutex<Vec<Both>> = Mutex::new(Vec::new());

/// This many snapshots read each record at least once.
const ALL_READ: u32 = 16;

impl Both {
    fn open(fields: Fields) -> Self {
        let open = |source, keep| {
            Collector::builder()
                .source(Some(source))
                .fields(fields)
                .lone_threads(false)
                .keep_records(keep)
                .open()
                .expect("BPF can be used")
        };
        Self {
            fields,
            keeps: WALKS.map(|source| open(source, true)),
            reads: open(SourceKind::Bpf, false),
        }
    }

    /// Unused ones, or new ones.
    fn spare(fields: Fields) -> Self {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.iter().position(|both| both.fields == fields);
        let found = at.map(|at| spare.swap_remove(at));
        drop(spare);
        found.unwrap_or_else(|| Self::open(fields))
    }

    /// Makes them available to another test.
    fn leave(self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(self);
    }

    /// Snapshots that keep records; none may be wrong.
    fn keep(&mut self) -> [Snapshot<'_>; 2] {
        self.keeps.each_mut().map(|collector| {
            let snapshot = collector.snapshot().expect("it walks");
            assert_eq!(snapshot.stats().disproven, 0);
            snapshot
        })
    }

    /// Whether each keeps the record of this process. If `kept` is false: whether none does.
    fn keep_or_read(&mut self, pid: u32, kept: bool) -> bool {
        self.keep().iter().all(|snapshot| {
            let changed = snapshot.changed().any(|process| process.pid() == pid);
            (!changed && snapshot.get(pid).is_some()) == kept
        })
    }

    fn keeps(&mut self, pid: u32) -> bool {
        self.keep_or_read(pid, true)
    }

    /// The number of records that each keeps.
    fn kept(&mut self) -> [u32; 2] {
        self.keep().map(|snapshot| snapshot.stats().kept)
    }

    /// The values of both, once the process is stable while both read it. Panics if they differ.
    fn agree(&mut self, pid: u32, about: &str) -> Option<String> {
        let Self { keeps, reads, .. } = self;
        let kept = keeps.each_mut().map(|keeps| {
            let mut brackets = Brackets::new();
            let (read, kept) = wait_for("looks between which it does not move", || {
                let read = || values(&reads.snapshot().expect("it walks"), pid);
                let keeps = || values(&keeps.snapshot().expect("it walks"), pid);
                brackets.read(read, keeps)
            });
            assert_eq!(kept, read, "{about}, by {}", keeps.source());
            kept
        });
        kept.into_iter().next().flatten()
    }
}

/// Compares both walks after a change. `shown`: whether the record shows the change.
fn compare(fields: Fields, begin: &str, change: &str, shown: bool) {
    compare_kept(fields, begin, change, shown, true);
}

/// The same for a process whose record is not `kept` even while it sleeps.
fn compare_kept(fields: Fields, begin: &str, change: &str, shown: bool, kept: bool) {
    needs!(gate::bpf());
    let text = format!("{BEGIN}\n{begin}\ndef change():\n{change}\n{END}");
    let mut script = Script::python(&text);
    let pid = script.answer().parse().expect("a pid");
    let mut both = Both::spare(fields);
    if kept {
        wait_until("a process that sleeps is kept", || both.keeps(pid));
    } else {
        assert!(
            (0..5).all(|_| both.keep_or_read(pid, false)),
            "others may change it unseen"
        );
    }
    let before = both.agree(pid, "before");
    script.tell("change");
    let answer = script.answer();
    if answer != "done" {
        both.leave();
        return gate::skipped(&answer);
    }
    both.agree(pid, "right after");
    for _ in 0..ALL_READ {
        both.keep();
    }
    let after = both.agree(pid, "later");
    both.leave();
    // The kernel may reclaim a page of any process meanwhile.
    if shown {
        assert_ne!(before, after);
    }
}

macro_rules! changes {
    ($how:ident: $($(#[$doc:meta])* $name:ident, $fields:expr, $begin:expr, $change:expr, $($is:expr),+;)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                $how($fields, $begin, $change, $($is),+);
            }
        )*
    };
}

const SLEEPS: &str = "pid = start()";
/// Lets the child of `start_that_waits` continue.
const WAKES: &str = r"
    before = switches(pid)
    os.write(wake, b'.')
    while switches(pid) == before: time.sleep(0.001)
    rests(pid)";
const HANDLES: &str = "pid = start(lambda: signal.signal(signal.SIGUSR1, lambda *_: None))";

changes! {
    compare:
    a_signal_that_it_handles, LEAN, HANDLES, " os.kill(pid, signal.SIGUSR1); time.sleep(0.01); rests(pid)", true;
    it_is_stopped, LEAN, SLEEPS, " os.kill(pid, signal.SIGSTOP); rests(pid)", true;
    /// wait4(2) takes the status of a stopped child from it.
    it_is_stopped_and_its_parent_learns_of_it, LEAN, SLEEPS,
        " os.kill(pid, signal.SIGSTOP); os.waitpid(pid, os.WUNTRACED)", true;
    its_group_changes_before_it_executes_a_program, LEAN, SLEEPS, " os.setpgid(pid, pid)", true;
    /// The thread that forked it sleeps; another one changes it.
    another_thread_of_its_parent_changes_its_group, LEAN, r"
forked = threading.Event()
def fork():
    global pid
    pid = start()
    forked.set()
    time.sleep(600)
threading.Thread(target=fork, daemon=True).start()
forked.wait()", " os.setpgid(pid, pid)", true;
    /// The child itself does it, when another process wakes it.
    it_begins_a_session, LEAN, "pid = start_that_waits(os.setsid)", WAKES, true;
    it_leads_a_group, LEAN,
        "pid = start_that_waits(lambda: os.setpgid(0, 0))", WAKES, true;
    /// Its parent moves it into the group of another child, which then exits.
    it_joins_a_group_whose_leader_ends, LEAN, r"
leader = start(lambda: os.setpgid(0, 0))
pid = start()", r"
    os.setpgid(pid, leader)
    os.kill(leader, signal.SIGKILL); os.waitpid(leader, 0)", true;
    /// The leader of its session exits: the kernel hangs up the terminal, and signals the group if that is now
    /// orphaned.
    the_leader_of_its_session_ends, LEAN, r"
read, write = os.pipe()
def body():
    os.setsid()
    child = os.fork()
    if child == 0: wait_for_ever()
    os.write(write, str(child).encode())
leader = start(body)
pid = int(os.read(read, 16))", " os.kill(leader, signal.SIGKILL); os.waitpid(leader, 0)", true;
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
    /// The peak of its resident set is reset.
    its_peak_is_set_back, LEAN, r"
def body():
    memory = mmap.mmap(-1, 1 << 23)
    for at in range(0, 1 << 23, 4096): memory[at] = 1
    memory.close()
pid = start(body)", " open(f'/proc/{pid}/clear_refs', 'w').write('5')", true;
    /// Another process writes to its pages, which makes them resident.
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
    a_signal_that_it_blocks, Fields::all(),
        "pid = start(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]))",
        " os.kill(pid, signal.SIGUSR1)", true;
    /// With more than 64 possible CPUs, that of the last one is in another word.
    its_cpus_change, Fields::all(), SLEEPS,
        " os.sched_setaffinity(pid, os.sched_getaffinity(pid) - {max(os.sched_getaffinity(pid))})",
        std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    its_limit_of_memory_changes, Fields::all(), SLEEPS,
        " resource.prlimit(pid, resource.RLIMIT_RSS, (1 << 30, 1 << 30))", true;
    its_limit_of_signals_changes, Fields::all(), SLEEPS,
        " resource.prlimit(pid, 11, (77, 77))", true;
    what_a_dump_of_it_has_changes, Fields::all(), SLEEPS,
        " open(f'/proc/{pid}/coredump_filter', 'w').write('0x7f')", true;
    /// The queue of signals belongs to the user.
    another_process_of_its_user_has_a_signal, Fields::all(), r"
os.setuid(60123)
other = start(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN]))
pid = start()", " os.kill(other, signal.SIGRTMIN)", true;
    /// Another process calls setns(2), and then has a child in its pid namespace.
    another_enters_its_namespaces, Fields::all(), r"
FLAGS = 0x20000000 | 0x08000000 | 0x04000000 | 0x00020000 | 0x40000000
pid = start(clone=clone(FLAGS))", r"
    other = os.fork()
    if other == 0:
        call(libc.setns(os.pidfd_open(pid), FLAGS))
        inside = os.fork()
        if inside == 0: os._exit(0)
        os.waitpid(inside, 0)
        os._exit(0)
    assert os.waitpid(other, 0)[1] == 0", false;
    /// The child itself, when another process wakes it: it has all capabilities there.
    it_enters_a_namespace_of_another, Fields::all(), r"
other = start(clone=clone(0x10000000))
pid = start_that_waits(lambda: call(libc.setns(os.pidfd_open(other), 0x10000000)))", WAKES, true;
    it_is_stopped_with_all_fields, Fields::all(), SLEEPS,
        " os.kill(pid, signal.SIGSTOP); os.waitpid(pid, os.WUNTRACED)", true;
    /// The ids of such processes take more words than a process usually has.
    it_is_deep_in_namespaces_with_others, Fields::all(), r"
def nest(level):
    if level: start(lambda: nest(level - 1), clone(0x20000000))
    else:
        for _ in range(60): start()
pid = start(lambda: nest(28))
def children(): return open(f'/proc/{pid}/task/{pid}/children').read().split()
while children(): pid = int(children()[-1])", " start()", false;
    /// Its lists of groups and of ids in namespaces are in the pool.
    it_has_lists_and_its_group_changes, Fields::all(), r"
os.setgroups(range(1000, 1040))
pid = start(clone=clone(0x20000000))", " os.setpgid(pid, pid)", true;
}

// Processes that share these with others are not kept.
changes! {
    compare_kept:
    its_files_are_shared, Fields::all(), "pid = start(clone=clone(0x400))",
        r"
    import resource
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # more than this process had when it was started
    os.dup2(0, min(most, 5000) - 1)", true, false;
    its_umask_is_shared, Fields::all(), "pid = start(clone=clone(0x200))",
        " os.umask(0o137)", true, false;
    it_has_a_terminal_that_hangs_up, LEAN, r"
master, slave = os.openpty()
def body():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCONT, signal.SIG_IGN)
    os.setsid()
    import fcntl, termios
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    os.close(master)
pid = start(body)", " os.close(master)", true, false;
    another_thread_sets_its_user, LEAN, r"
read, write = os.pipe()
def later():
    os.read(read, 1)
    os.setuid(65534)
def body(): threading.Thread(target=later, daemon=True).start()
pid = start(body)", r"
    os.write(write, b'.')
    while 'Uid:\t65534' not in open(f'/proc/{pid}/status').read(): time.sleep(0.001)", true, false;
    /// prctl(2) and comm of one thread: the flags of the memory apply to all threads, and a thread may name the leading
    /// one.
    another_thread_names_it_and_forbids_huge_pages, Fields::all(), r"
read, write = os.pipe()
def later():
    os.read(read, 1)
    call(libc.prctl(41, 1, 0, 0, 0))
    open(f'/proc/self/task/{os.getpid()}/comm', 'w').write('renamed')
    time.sleep(600)
def body(): threading.Thread(target=later, daemon=True).start()
pid = start(body)", r"
    os.write(write, b'.')
    while open(f'/proc/{pid}/comm').read() != 'renamed\n': time.sleep(0.001)", true, false;
    /// seccomp(2) of one thread, for all threads.
    another_thread_filters_its_calls, Fields::all(), r"
read, write = os.pipe()
class Instruction(ctypes.Structure): _fields_ = [('code', ctypes.c_uint16), ('jt', ctypes.c_uint8), ('jf', ctypes.c_uint8), ('k', ctypes.c_uint32)]
class Program(ctypes.Structure): _fields_ = [('count', ctypes.c_uint16), ('first', ctypes.POINTER(Instruction))]
allow = (Instruction * 1)(Instruction(6, 0, 0, 0x7fff0000))
def later():
    os.read(read, 1)
    call(libc.prctl(38, 1, 0, 0, 0))
    call(libc.syscall(317, 1, 1, ctypes.byref(Program(1, allow))))
    time.sleep(600)
def body(): threading.Thread(target=later, daemon=True).start()
pid = start(body)", r"
    os.write(write, b'.')
    while 'Seccomp:\t2' not in open(f'/proc/{pid}/status').read(): time.sleep(0.001)", true, false;
    another_thread_executes_a_program, LEAN, r"
read, write = os.pipe()
def later():
    os.read(read, 1)
    os.execv('/bin/sleep', ['sleep', '600'])
def body(): threading.Thread(target=later, daemon=True).start()
pid = start(body)", r"
    os.write(write, b'.')
    while open(f'/proc/{pid}/comm').read() != 'sleep\n': time.sleep(0.001)
    rests(pid)", true, false;
}

/// Another process moves it into another control group.
#[test]
fn a_record_is_read_again_when_its_control_group_changes() {
    needs!(gate::bpf());
    let Some(cgroup) = Cgroup::new("kept") else {
        return;
    };
    let change = format!(
        " open('{}/cgroup.procs', 'w').write(str(pid))",
        cgroup.folder().display()
    );
    compare(Fields::all(), SLEEPS, &change, true);
}

/// Two walks of all odd processes of the testbed agree.
#[test]
fn odd_processes_are_the_same() {
    needs!(gate::bpf());
    let testbed = Testbed::open(&Options::default()).expect("processes can be started");
    for fields in [LEAN, Fields::all()] {
        let mut both = Both::open(fields);
        for look in 0..4 {
            for process in testbed.processes() {
                let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid));
                if stat.is_ok_and(|stat| stat.contains(") R ")) {
                    continue;
                }
                both.agree(process.pid, &format!("{}, look {look}", process.label));
            }
        }
        let kept = both.kept();
        assert!(kept.iter().all(|&kept| kept > 20), "{kept:?}");
    }
}

/// A pid that another process has now.
#[test]
fn a_pid_that_is_used_again() {
    needs!(gate::bpf());
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

/// Records are kept when earlier processes have exited, in the same place or moved up, and new ones get free places.
#[test]
fn records_that_move_are_kept() {
    needs!(gate::bpf());
    let _alone = alone();
    let mut sleepers = Sleepers::start(60);
    sleepers.wait_until_asleep();
    let mut both = Both::open(LEAN);
    let last = sleepers.0[59].id();
    wait_until("the last is kept", || both.keeps(last));
    let kept = |both: &mut Both| both.kept().into_iter().min();
    wait_until("most are kept", || kept(&mut both) >= Some(50));
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
            kept(&mut both) >= Some(sleepers.0.len() as u32 / 2),
            "in round {round}"
        );
        sleepers.0.extend(new.into_children());
    }
}

/// A collector with `keep_records(false)` reads every record at each snapshot.
#[test]
fn nothing_is_kept_if_not_wanted() {
    needs!(gate::bpf());
    let mut both = Both::open(LEAN);
    for _ in 0..3 {
        let snapshot = both.reads.snapshot().expect("it walks");
        assert_eq!(snapshot.stats().kept, 0);
        assert_eq!(snapshot.changed().count(), snapshot.len());
    }
    for source in WALKS {
        let mut lists = open(source, LEAN | Fields::THREADS);
        for _ in 0..3 {
            let snapshot = lists.snapshot().expect("it walks");
            assert_eq!(snapshot.stats().kept, 0, "each has a record of its thread");
        }
    }
}
