//! Changes of a sleeping process by the kernel: it freezes the process, moves its memory, merges its pages.

use std::{fs, path::Path};

use fastproc::Fields;
use fastproc_testbed::{Cgroup, gate, needs};

use super::{LEAN, SLEEPS, compare, compare_kept};

/// The start of a script with a version 1 cgroup of this controller.
fn cgroup_of_version_1(controller: &str) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    let point = fields.find_map(|mut line| {
        let (point, kind) = (line.nth(1)?, line.next()?);
        let has = line.next()?.split(',').any(|option| option == controller);
        (kind == "cgroup" && has).then_some(point)
    })?;
    Some(format!(
        r"
cgroup = tempfile.mkdtemp(prefix='fastproc-test-', dir='{point}')
import atexit
def remove():
    for _ in range(1000):
        try: return os.rmdir(cgroup)
        except OSError: time.sleep(0.01)
atexit.register(remove)
def put(file, text): open(cgroup + '/' + file, 'w').write(text)
def get(path): return open(path).read()
"
    ))
}

/// A process in a sleep that the kernel may freeze has the state of a frozen one at once, without a run.
#[test]
fn a_process_frozen_in_its_sleep_is_noticed() {
    needs!(gate::bpf());
    let Some(begin) = cgroup_of_version_1("freezer") else {
        return gate::skipped("it needs the control groups of version 1 (freezer)");
    };
    let begin = format!(
        r"{begin}
wait_for_ever = lambda: time.sleep(600)
pid = start()
put('cgroup.procs', str(pid))"
    );
    let change = r"
    put('freezer.state', 'FROZEN')
    while get(cgroup + '/freezer.state') != 'FROZEN\n': time.sleep(0.001)
    atexit.register(lambda: put('freezer.state', 'THAWED'))";
    compare(LEAN, &begin, change, true);
}

/// It wakes, and stops in its cgroup of version 2.
#[test]
fn a_process_frozen_by_its_cgroup_is_noticed() {
    needs!(gate::bpf());
    let Some(cgroup) = Cgroup::new("kept") else {
        return;
    };
    let folder = cgroup.folder();
    let folder = folder.display();
    let begin = format!("pid = start(); open('{folder}/cgroup.procs', 'w').write(str(pid))");
    let change = format!(
        r"
    open('{folder}/cgroup.freeze', 'w').write('1')
    while 'frozen 1' not in open('{folder}/cgroup.events').read(): time.sleep(0.001)"
    );
    compare(LEAN, &begin, &change, true);
}

#[test]
fn a_record_is_read_again_when_its_cpuset_changes() {
    needs!(gate::bpf());
    let Some(begin) = cgroup_of_version_1("cpuset") else {
        return gate::skipped("it needs the control groups of version 1 (cpuset)");
    };
    let begin = format!(
        r"{begin}
put('cpuset.mems', get(os.path.dirname(cgroup) + '/cpuset.mems'))
put('cpuset.cpus', str(min(os.sched_getaffinity(0))))
{SLEEPS}"
    );
    let many = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    let change = " put('cgroup.procs', str(pid))";
    compare(Fields::all(), &begin, change, many);
}

/// Pages of a file are reclaimed from it: `MADV_PAGEOUT` does the same as the kernel if memory is short.
#[test]
fn a_record_is_read_again_when_its_pages_are_taken() {
    needs!(gate::bpf());
    let begin = r"
PAGES = 256
file = tempfile.NamedTemporaryFile(dir='/var/tmp')
file.write(b'x' * 4096 * PAGES)
file.flush()
os.fsync(file.fileno())
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
where, told = os.pipe()
def body():
    global memory, part
    memory = mmap.mmap(file.fileno(), PAGES * 4096, flags=mmap.MAP_PRIVATE)
    part = ctypes.c_char.from_buffer(memory)
    for at in range(0, PAGES * 4096, 4096): memory[at]
    os.write(told, ctypes.addressof(part).to_bytes(8, 'little'))
pid = start(body)
where = int.from_bytes(os.read(where, 8), 'little')
def resident(): return int(open(f'/proc/{pid}/statm').read().split()[1])";
    let change = r"
    before = resident()
    vector = Vector(where, PAGES * 4096)
    while resident() > before - PAGES // 2:
        call(libc.syscall(440, os.pidfd_open(pid), ctypes.byref(vector), 1, 21, 0))
        time.sleep(0.01)";
    compare(LEAN, begin, change, true);
}

/// Pages of zeros become the zero page, which is not counted.
#[test]
fn a_record_is_read_again_when_its_pages_are_merged() {
    needs!(gate::bpf());
    if !Path::new("/sys/kernel/mm/ksm/use_zero_pages").exists() {
        return gate::skipped("this kernel merges no pages (CONFIG_KSM)");
    }
    let begin = r"
PAGES = 256
def body():
    global memory
    memory = mmap.mmap(-1, PAGES * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(12)  # MADV_MERGEABLE
    for at in range(0, PAGES * 4096, 4096):
        memory[at] = 1
        memory[at] = 0
pid = start(body)
def resident(): return int(open(f'/proc/{pid}/statm').read().split()[1])
KSM = '/sys/kernel/mm/ksm/'
ASKED = {'use_zero_pages': '1', 'pages_to_scan': '10000', 'sleep_millisecs': '1', 'run': '1'}
usual = {name: open(KSM + name).read() for name in ASKED}
def set_ksm(values):
    for name, value in values.items(): open(KSM + name, 'w').write(value)";
    let change = r"
    before = resident()
    try:
        set_ksm(ASKED)
        while resident() > before - PAGES // 2: time.sleep(0.01)
    finally: set_ksm(usual)";
    compare(LEAN, begin, change, true);
}

/// Its pages become a huge page, of which it had used a single one: `MADV_COLLAPSE` does the same as khugepaged.
#[test]
fn its_pages_become_a_huge_one() {
    needs!(gate::bpf());
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return gate::skipped("this kernel has no transparent huge pages");
    }
    let begin = r"
HUGE = 1 << 21
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
where, told = os.pipe()
def body():
    global memory, part
    memory = mmap.mmap(-1, 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    part = ctypes.c_char.from_buffer(memory)
    start = ctypes.addressof(part)
    start += -start % HUGE
    memory.madvise(15)  # MADV_NOHUGEPAGE: it is no huge page from the beginning
    ctypes.memset(start, 1, 1)
    # khugepaged leaves alone what was not used of late
    open('/proc/self/clear_refs', 'w').write('1')
    memory.madvise(14)  # MADV_HUGEPAGE
    os.write(told, start.to_bytes(8, 'little'))
pid = start(body)
where = int.from_bytes(os.read(where, 8), 'little')
def resident(): return int(open(f'/proc/{pid}/statm').read().split()[1])";
    let change = r"
    before, end = resident(), time.monotonic() + 30
    process, vector = os.pidfd_open(pid), Vector(where, HUGE)
    while resident() < before + 256:
        libc.syscall(440, process, ctypes.byref(vector), 1, 25, 0)
        if time.monotonic() > end: return 'the kernel has no huge page to spare'
        time.sleep(0.01)";
    compare(LEAN, begin, change, true);
}

/// Another process with the same memory, which is not one of its threads, enlarges it.
#[test]
fn a_record_is_read_again_when_its_memory_is_shared() {
    let begin = r"
read, write = os.pipe()
made, said = os.pipe()
stack = mmap.mmap(-1, 1 << 20)
def body():
    top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + (1 << 20)
    # CLONE_VM
    child = call(libc.clone(libc.pause, ctypes.c_void_p(top), 0x100 | signal.SIGCHLD, None))
    os.write(said, str(child).encode())
    os.read(read, 1)
    global memory
    memory = mmap.mmap(-1, 1 << 22)
    for at in range(0, 1 << 22, 4096): memory[at] = 1
    os.write(said, b'.')
    wait_for_ever()
other = os.fork()
if other == 0:
    libc.prctl(1, signal.SIGKILL)
    body()
os.close(said)
pid = int(os.read(made, 16))
import atexit
atexit.register(os.kill, other, signal.SIGKILL)";
    let change = r"
    os.write(write, b'.')
    os.read(made, 1)";
    compare_kept(LEAN, begin, change, true, false);
}

/// It waits, in an uninterruptible sleep, until the child with its memory is killed.
#[test]
fn a_parent_that_waits_for_its_vfork_child_is_noticed() {
    let begin = r"
stack = mmap.mmap(-1, 1 << 20)
def rests(pid):
    while open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] not in 'DS': time.sleep(0.001)
def children(): return open(f'/proc/{pid}/task/{pid}/children').read().split()
pid = os.fork()
if pid == 0:
    libc.prctl(1, signal.SIGKILL)
    top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + (1 << 20)
    # CLONE_VM and CLONE_VFORK
    libc.clone(libc.pause, ctypes.c_void_p(top), 0x4100 | signal.SIGCHLD, None)
    wait_for_ever()
while not children(): time.sleep(0.001)
child = int(children()[0])
import atexit
atexit.register(os.kill, child, signal.SIGKILL)";
    let change = r"
    os.kill(child, signal.SIGKILL)
    atexit.unregister(os.kill)
    while open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'S': time.sleep(0.001)";
    compare_kept(LEAN, begin, change, true, false);
}
