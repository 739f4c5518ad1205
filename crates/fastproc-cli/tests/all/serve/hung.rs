//! Collecting may block, for example on a file system whose server is gone.

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

use fastproc_testbed::{Folder, HungFuse, Running, gate, needs, wait_for_state, wait_until};
use rustix::process::Signal;

use crate::serve::{
    FASTPROC,
    separate::{is_gone, send},
    server::{Server, status},
};

/// As Prometheus announces a timeout.
const HURRY: &str = "X-Prometheus-Scrape-Timeout-Seconds: 0.1";

/// Becomes another user. Then one thread reads its own memory that is mapped from a file, with a lock for which another
/// thread waits. Readers of its command line wait behind that.
const HANG: &str = r#"
import ctypes, os, sys, threading
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PROT_READ, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 32
place = mmap(None, 4096, PROT_READ, MAP_PRIVATE, os.open(sys.argv[1], os.O_RDONLY), 0)
memory = os.open("/proc/self/mem", os.O_RDONLY)
os.setgroups([])
os.setresgid(54640, 54640, 54640)
os.setresuid(54640, 54640, 54640)
print(flush=True)
sys.stdin.readline()
threading.Thread(target=os.pread, args=(memory, 1, place)).start()
sys.stdin.readline()
mmap(None, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
"#;

/// Rules for command lines read the memory of every process.
#[test]
fn a_hanging_command_line_leaves_out_one_process() {
    needs!(gate::root(), gate::programs(&["python3"]));
    let Some(mut hung) = HungFuse::open_file() else {
        return;
    };
    let mut hostile = Command::new("python3");
    let hostile = hostile.args(["-c", HANG]).arg(hung.path());
    let mut hostile = Running::start(hostile.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let told = hostile.stdout.as_mut().expect("a pipe");
    told.read_exact(&mut [0]).expect("it has the file");
    hung.hang();
    let mut tell = hostile.stdin.take().expect("a pipe");
    tell.write_all(b"\n").expect("it reads");
    hung.wait_until_asked();
    tell.write_all(b"\n").expect("it reads");
    wait_for_state(hostile.id(), 'D');
    let mut reader = Command::new("cat");
    let reader = reader.arg(format!("/proc/{}/cmdline", hostile.id()));
    let reader = Running::start(reader.stdout(Stdio::null()).stderr(Stdio::null()));
    // Whoever reads waits, too.
    wait_for_state(reader.id(), 'D');
    let server = Server::start(&["--source=procfs", "--min-interval=0"]);
    let own = [("groupname", "fastproc")];
    wait_until("the others have names", || {
        let metrics = server.scrape();
        metrics.get("namedprocess_namegroup_num_procs", &own) >= Some(1.0)
    });
    // It still waits.
    wait_for_state(reader.id(), 'D');
    hung.end();
}

/// Stops a process, and waits until all its threads have stopped.
pub fn stop(pid: u32) {
    send(pid, Signal::STOP);
    wait_until("all threads to stop", || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("/proc shows the process");
        let mut stats = tasks.map(|task| fs::read_to_string(task?.path().join("stat")));
        stats.all(|stat| stat.is_ok_and(|stat| stat.contains(") T ")))
    });
}

/// Runs this in a thread whose mount namespace has a file system that hangs, in the folder that it passes.
fn beside_hung_file_system(scrapes: impl FnOnce(&mut HungFuse, &str) + Send) {
    let Some(mut hung) = HungFuse::open() else {
        return;
    };
    hung.hang();
    let folder = Folder::new("hung");
    let ended = thread::scope(|scope| {
        let scrapes = || {
            let mounted = hung.mount_for_this_thread(&folder);
            mounted.expect("root may mount");
            scrapes(&mut hung, &folder.display().to_string());
        };
        scope.spawn(scrapes).join()
    });
    hung.end();
    ended.expect("all scrapes are right");
}

#[test]
fn a_file_system_that_hangs_takes_its_collector_along_and_nothing_else() {
    needs!(gate::root());
    beside_hung_file_system(|hung, folder| {
        let server = Server::start(&[
            "--source=procfs",
            "--procnames=none",
            "--collector.textfile",
            "--collector.loadavg",
            &format!("--collector.textfile.directory={folder}"),
            "--end-within=1s",
        ]);
        hung.wait_until_asked();
        for _ in 0..2 {
            let metrics = server.scrape();
            let success = |collector| {
                let labels = [("collector", collector)];
                metrics.get("node_scrape_collector_success", &labels)
            };
            assert_eq!(success("textfile"), Some(0.0));
            assert_eq!(success("loadavg"), Some(1.0));
            assert!(metrics.get("node_load1", &[]).is_some());
        }
        let exporter = server.exporter();
        let (status, stderr) = server.end(Signal::TERM);
        assert_eq!(status.code(), Some(0), "{stderr}");
        wait_until("the exporter has ended", || is_gone(exporter));
    });
}

#[test]
fn a_file_system_that_hangs_has_no_figures_and_all_others_have() {
    needs!(gate::root(), gate::programs(&["unshare"]));
    beside_hung_file_system(|_, point| {
        let mut command = Command::new("unshare");
        // The list of mounts is that of process 1, which it is.
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", FASTPROC]);
        let server = Server::start_by(
            &mut command,
            &[
                "--source=procfs",
                "--procnames=none",
                "--collector.filesystem",
                "--user=root",
                "--end-within=1s",
            ],
        );
        for _ in 0..2 {
            let metrics = server.scrape();
            let of = |name, point| metrics.get(name, &[("mountpoint", point)]);
            assert!(of("node_filesystem_size_bytes", "/") > Some(0.0));
            assert_eq!(of("node_filesystem_device_error", "/"), Some(0.0));
            assert_eq!(of("node_filesystem_size_bytes", point), None);
            assert_eq!(of("node_filesystem_device_error", point), Some(1.0));
        }
    });
}

#[test]
fn a_stopped_collector_gives_503_and_delays_nothing_else() {
    let server = Server::start(&["--source=procfs", "--procnames=none"]);
    let exporter = server.exporter();
    stop(server.pid());
    for _ in 0..3 {
        let answer = server.get("/metrics", &[HURRY]);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(server.get("/-/healthy", &[]).status, 200);
    }
    send(server.pid(), Signal::CONT);
    server.scrape();
    // Once more, and now the serving process is asked to end.
    stop(server.pid());
    assert_eq!(server.get("/metrics", &[HURRY]).status, 503);
    send(exporter, Signal::TERM);
    wait_until("the exporter has ended", || is_gone(exporter));
    send(server.pid(), Signal::CONT);
    let (status, stderr) = server.wait();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("has ended unexpectedly"), "{stderr}");
}

/// The kernel delivers a signal to any thread that does not block it, and a thread that waits for a file system cannot
/// handle it.
#[test]
fn signals_do_not_go_to_the_thread_that_collects() {
    const ENDING: u64 = 1 << (Signal::TERM.as_raw() - 1) | 1 << (Signal::INT.as_raw() - 1);
    let server = Server::start(&["--source=procfs", "--procnames=none"]);
    let pid = server.pid();
    let blocks = |task: &str| {
        let blocked = status(&format!("/proc/{pid}/task/{task}/status"), "SigBlk");
        u64::from_str_radix(&blocked, 16).expect("a mask") & ENDING
    };
    assert_eq!(blocks(&pid.to_string()), ENDING);
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("/proc shows the process");
    let mut names = tasks.map(|task| task.expect("/proc shows the process").file_name());
    let takes = names.any(|name| blocks(name.to_str().expect("a number")) == 0);
    assert!(takes, "another thread takes them");
}
