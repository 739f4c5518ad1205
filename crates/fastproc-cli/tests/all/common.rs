//! Shared by the tests of the command.
use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, OnceLock, Weak, mpsc},
    thread,
    time::{Duration, Instant},
};

use fastproc_testbed::{Folder, GUARD, Options, Testbed, gate, wait_until};
use serde_json::Value;

/// The command, without any settings of the user.
pub fn fastproc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastproc"));
    command
        .args(arguments)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR");
    command
}

/// The output of a successful call.
#[track_caller]
pub fn output(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

pub fn run(arguments: &[&str]) -> Output {
    fastproc(arguments).output().expect("it can be started")
}

/// Rows of `--format ndjson`.
#[track_caller]
pub fn rows(arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["ps", "--format", "ndjson"], arguments].concat();
    output(&arguments)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect()
}

/// Copies a program that every user may execute. Another process copies it: if this one did, the child of another test
/// might inherit the descriptor for writing, and a file that is open for writing cannot be executed.
#[track_caller]
pub fn install(program: impl AsRef<OsStr>, copy: &Path) {
    let status = Command::new("install")
        .args(["-m", "755"])
        .arg(program)
        .arg(copy)
        .status()
        .expect("install(1) is there");
    assert!(status.success(), "{} cannot be made", copy.display());
}

/// A folder with a copy of the command, `fastproc`, that every user may execute. It is as large as everything else that
/// tests write, so concurrent tests share it.
pub fn for_everyone() -> Arc<Folder> {
    static SHARED: Mutex<Weak<Folder>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().expect("no test failed meanwhile");
    shared.upgrade().unwrap_or_else(|| {
        let folder = Arc::new(Folder::new("command"));
        install(env!("CARGO_BIN_EXE_fastproc"), &folder.join("fastproc"));
        *shared = Arc::downgrade(&folder);
        folder
    })
}

/// Unusual processes: one testbed for all tests of a program, which ends with them.
pub fn testbed() -> &'static Testbed {
    static TESTBED: OnceLock<Testbed> = OnceLock::new();
    TESTBED.get_or_init(|| Testbed::open(&Options::default()).expect("the testbed opens"))
}

/// The pids of the testbed, for the command.
pub fn pids_of_testbed() -> String {
    let processes = testbed().processes().iter();
    let pids: Vec<_> = processes.map(|process| process.pid.to_string()).collect();
    pids.join(",")
}

/// Differences of several comparisons, by name.
///
/// The kernel may show a value, another one and the first again. So a name that differs in only one comparison is noted
/// and counted.
#[derive(Default)]
pub struct Differences(BTreeMap<String, Vec<String>>);

impl Differences {
    /// With this many comparisons a correct value does not differ twice, and a fault in half of them is missed once in
    /// 300 times.
    pub const LOOKS: usize = 12;
    /// How many names may differ once in a test. None does on a quiet machine.
    const ONCE: usize = 3;

    pub fn add(&mut self, name: String, seen: String) {
        self.0.entry(name).or_default().push(seen);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the differences of another comparison.
    pub fn join(&mut self, other: Self) {
        for (name, seen) in other.0 {
            self.0.entry(name).or_default().extend(seen);
        }
    }

    #[track_caller]
    pub fn finish(self) {
        let (once, again): (Vec<_>, Vec<_>) = self.0.iter().partition(|(_, seen)| seen.len() == 1);
        for (name, seen) in &once {
            gate::repeated(&format!("{name}: {}", seen[0]));
        }
        assert!(again.is_empty(), "{again:#?}");
        assert!(once.len() <= Self::ONCE, "each differed once: {once:#?}");
    }
}

/// The lines that a child writes.
pub struct Lines(mpsc::Receiver<String>);

impl Lines {
    /// After this time without its line another process is started, since the event of the first may be lost.
    const PATIENCE: Duration = Duration::from_secs(10);

    pub fn new(output: impl Read + Send + 'static) -> Self {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self(told)
    }

    /// The next line.
    #[track_caller]
    pub fn line(&self, what: &str) -> String {
        let line = self.0.recv_timeout(GUARD);
        line.unwrap_or_else(|error| panic!("{what}: no line: {error}"))
    }

    /// The first `N` csv lines of one process, whose pid is the field at `place`. Starts processes until one has as
    /// many: on a busy machine events may be lost.
    #[track_caller]
    pub fn of_one<const N: usize>(
        &self,
        place: usize,
        mut start: impl FnMut() -> u32,
    ) -> (u32, [String; N]) {
        let began = Instant::now();
        let mut seen: HashMap<u32, Vec<String>> = HashMap::new();
        loop {
            seen.insert(start(), Vec::new());
            while let Ok(line) = self.0.recv_timeout(Self::PATIENCE) {
                let pid = line.split(',').nth(place).and_then(|pid| pid.parse().ok());
                // Processes of concurrent tests are reported, too.
                let Some(lines) = pid.and_then(|pid| seen.get_mut(&pid)) else {
                    continue;
                };
                lines.push(line);
                if let Ok(lines) = lines.clone().try_into() {
                    return (pid.expect("it has lines"), lines);
                }
            }
            assert!(began.elapsed() < GUARD, "of nobody {N} lines: {seen:?}");
            gate::repeated("an event did not come, and another process was started");
        }
    }
}

/// A row of `command`, `fastproc ps`, with these fields, while processes start and exit by `end`: of an exited process with
/// a known CPU share and lifetime. A snapshot may have had one of them just before it exited, and then it has no share.
pub fn shown_of_ended(
    command: &mut Command,
    fields: &str,
    filter: &str,
    mut end: impl FnMut(),
) -> Value {
    // Processes start and exit all the time; each lives for less than a tenth of a second.
    let arguments = "--interval 0.3 --exited --count 10000 --format ndjson --fields";
    let command = command.args(arguments.split(' '));
    let command = command.args([fields, "--filter", filter]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let rows = thread::spawn(move || {
        let row = || serde_json::from_str(&lines.next()?.ok()?).ok();
        std::iter::from_fn(row).take(5).collect::<Vec<Value>>()
    });
    wait_until("processes that ended are shown", || {
        end();
        rows.is_finished()
    });
    let _ = child.kill();
    let _ = child.wait();
    let rows = rows.join().expect("nothing panics");
    let is_known = |row: &&Value| {
        let mut both = ["pcpu", "etime_ns"].into_iter();
        both.all(|known| row[known].as_f64().is_some_and(|value| value > 0.0))
    };
    let known: Vec<_> = rows.iter().filter(is_known).collect();
    assert!(known.len() >= 4, "{rows:?}");
    known[0].clone()
}
