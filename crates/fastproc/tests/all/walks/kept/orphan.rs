//! A thread gets the address of a parent that has ended, and its children.

use fastproc_testbed::{gate, needs, wait_until};

use super::{BEGIN, Both, LEAN, Script};

/// The kernel gives freed memory away soon, but not each time: about one in five of these has another parent at the address
/// of the earlier one.
const TRIES: usize = 40;

const SCRIPT: &str = r"
def adopt(told, go):
    '''Has a child of a child, becomes its parent, and leaves it to a thread that starts after that child has ended.'''
    call(libc.prctl(36, 1, 0, 0, 0))  # PR_SET_CHILD_SUBREAPER
    parent = os.fork()
    if parent == 0:
        child = os.fork()
        if child == 0: wait_for_ever()
        os.write(told, str(child).encode())
        wait_for_ever()
    os.read(go, 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    time.sleep(0.03)  # RCU frees its task
    def live():
        main = f'/proc/self/task/{os.getpid()}/stat'
        while ') Z ' not in open(main).read(): time.sleep(0.001)
        os.write(told, b'.')
        os.read(go, 1)
        os._exit(0)
    threading.Thread(target=live).start()
    libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)  # SYS_exit: only this thread
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
for line in sys.stdin:
    read, told = os.pipe()
    wait, go = os.pipe()
    reaper = os.fork()
    if reaper == 0: adopt(told, wait)
    child = int(os.read(read, 16))
    rests(child)
    print(child, flush=True)
    sys.stdin.readline()
    os.write(go, b'.')
    os.read(read, 1)
    print('done', flush=True)
    sys.stdin.readline()
    os.kill(child, signal.SIGKILL)
    os.write(go, b'.')
    os.waitpid(reaper, 0)
    for file in (read, told, wait, go): os.close(file)
";

#[test]
fn the_new_parent_of_an_orphan_is_shown_wherever_it_lies() {
    needs!(gate::bpf());
    let mut script = Script::python(&format!("{BEGIN}\n{SCRIPT}"));
    let mut both = Both::spare(LEAN);
    for _ in 0..TRIES {
        script.tell("begin");
        let pid = script.answer().parse().expect("a pid");
        wait_until("a process that sleeps is kept", || both.keeps(pid));
        script.tell("its parent ends");
        script.answer();
        both.agree(pid, "it has another parent");
        script.tell("end");
    }
    both.leave();
}
