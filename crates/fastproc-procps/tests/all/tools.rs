//! procps's installed tools, with their own library and with the substitute.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    os::fd::AsFd,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread::{self, JoinHandle},
};

use fastproc::source::service;
use fastproc_service::{Service, Settings, bind};
use fastproc_testbed::{GUARD, Options, Testbed, gate, needs};

/// The library as cargo built it for this test, with procps's names.
fn substitute(name: &str) -> Option<PathBuf> {
    let real = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ]
    .iter()
    .flat_map(|folder| [0, 1].map(|soname| format!("{folder}/libproc2.so.{soname}")))
    .find(|path| Path::new(path).exists())?;
    let test = env::current_exe().expect("/proc shows this program");
    let built = test.with_file_name("libfastproc_procps.so");
    assert!(
        built.exists(),
        "cargo builds {} for this test",
        built.display()
    );
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the target folder can be written to");
    let shim = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/shim/build"))
        .arg(real)
        .arg(&folder)
        .status();
    assert!(shim.expect("there is a shell").success());
    let library = folder.join("libfastproc_procps.so");
    let _ = fs::remove_file(&library);
    fs::hard_link(&built, &library).expect("in the same file system");
    Some(folder)
}

struct Served {
    socket: PathBuf,
    /// How often its status was requested.
    asked: Cell<u64>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(folder: &Path) -> Self {
        let socket = folder.join("socket");
        let listener = bind(&socket).expect("nobody listens there");
        let mut settings = Settings::default();
        settings.texts_timeout = GUARD;
        settings.cpu_of_user = 1000.0;
        let service = Service::open(listener, &settings).expect("it reads by any source");
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let thread = thread::spawn(move || service.run(stopped.as_fd()).expect("it serves"));
        Self {
            socket,
            asked: Cell::new(0),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The number of requests, without this one, and of refusals.
    fn counts(&self) -> [u64; 2] {
        let status = service::status(&self.socket).expect("it answers");
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let asked = self.asked.get() + 1;
        self.asked.set(asked);
        let requests = status["requests_total"].as_u64().expect("a number");
        let refusals = status["refusals_total"].as_object().expect("numbers");
        let refusals = refusals.values().filter_map(serde_json::Value::as_u64);
        [requests - asked, refusals.sum()]
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended");
        }
    }
}

/// Runs a tool with the substitute and the service at a socket, or unchanged.
fn run(words: &[&str], substitute: Option<(&Path, &Path)>) -> Output {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("LC_ALL", "C")
        .env_remove("FASTPROC_TESTBED_ROLE");
    if let Some((folder, socket)) = substitute {
        command
            .env("LD_LIBRARY_PATH", folder)
            .env(service::TIMEOUT_VARIABLE, GUARD.as_millis().to_string())
            .env("FASTPROC_SOCKET", socket);
    }
    command.output().expect("procps is installed")
}

/// A tool's lines for each of these processes, by the first number in them.
fn lines(output: &Output, pids: &BTreeSet<u32>) -> BTreeMap<u32, String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| {
        let number: String = line
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        Some((number.parse().ok()?, line.to_owned()))
    });
    lines.filter(|(pid, _)| pids.contains(pid)).collect()
}

/// `make test-procps` compares every column.
#[test]
fn tools_say_the_same_with_the_service_and_after_its_end() {
    needs!(gate::programs(&["ps", "pgrep", "top"]));
    let Some(folder) = substitute("tools") else {
        gate::skipped("there is no libproc2 here");
        return;
    };
    let odd = Options::only(["idle", "zombie", "stopped", "signals-pending"]);
    let testbed = Testbed::open(&odd).expect("test processes");
    let pids = testbed.processes().iter().map(|process| process.pid);
    let pids: BTreeSet<u32> = pids.collect();
    let looks = [
        &[
            "ps",
            "-eo",
            "pid,ppid,comm,blocked,caught,ignored,pending,args",
        ][..],
        &["pgrep", "-a", "."],
    ];
    let mut served = Served::start(&folder);
    for is_served in [true, false] {
        for words in looks {
            let stock = lines(&run(words, None), &pids);
            assert!(stock.len() > 2, "{words:?}: {stock:?}");
            let counts = is_served.then(|| served.counts());
            let ours = run(words, Some((&folder, &served.socket)));
            // Otherwise procps's own library would be compared with itself: expect a *hello* and at least one snapshot.
            if let Some([requests, refusals]) = counts {
                let [more, refused] = served.counts();
                assert!(more >= requests + 2 && refused == refusals, "{words:?}");
            }
            assert!(ours.stderr.is_empty(), "{words:?}: {ours:?}");
            assert_eq!(lines(&ours, &pids), stock, "{words:?}");
        }
        served.stop();
    }
    fs::remove_dir_all(&folder).expect("it was ours");
}

/// By procps's own library throughout: no service listens, and there are few processes. All other processes may be
/// idle, so this one's ticks must advance.
#[test]
fn differences_go_on_by_procps_own_library() {
    needs!(gate::programs(&["top"]));
    let Some(folder) = substitute("differences") else {
        gate::skipped("there is no libproc2 here");
        return;
    };
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .expect("there is a shell");
    let pid = busy.id().to_string();
    // Until it has run before the last of three updates; a machine may be too busy once.
    let saw_it_run = (0..20).any(|_| {
        let words = ["top", "-b", "-n3", "-d1", "-p", &pid];
        let top = run(&words, Some((&folder, Path::new("/nonexistent"))));
        let text = String::from_utf8_lossy(&top.stdout).into_owned();
        let last = text
            .lines()
            .rfind(|line| line.trim_start().starts_with(&pid));
        let share = last.and_then(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
        share.is_some_and(|share| share > 0.0)
    });
    busy.kill().expect("the child is killed");
    busy.wait().expect("the child ends");
    fs::remove_dir_all(&folder).expect("it was ours");
    assert!(saw_it_run, "it never used any time");
}
