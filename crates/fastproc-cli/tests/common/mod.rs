//! What the tests of the command share.
#![allow(dead_code, reason = "each test program takes a part of it")]

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

/// The command, as a user without any settings of their own calls it.
pub fn fastproc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastproc"));
    command
        .args(arguments)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR");
    command
}

/// What it writes when all goes well.
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

/// The bytes of a text in JSON: a string, or what `{"escaped": …}` stands for.
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Object(object) => unescape(object["escaped"].as_str().expect("a string")),
        other => panic!("no text: {other}"),
    }
}

/// Undoes the escapes that the help describes.
#[track_caller]
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let character = match character {
            '\\' => match rest.next().expect("something is escaped") {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                'x' => {
                    let digits: String = rest.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).expect("two digits"));
                    continue;
                }
                'u' => {
                    let digits: String = rest.by_ref().take_while(|&c| c != '}').skip(1).collect();
                    let number = u32::from_str_radix(&digits, 16).expect("digits");
                    char::from_u32(number).expect("a character")
                }
                other => panic!("no escape: {other:?} in {text:?}"),
            },
            plain => plain,
        };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes
}

/// A copy of a program that everybody may execute. By another process: while a descriptor for writing is open in this
/// one, any other test's child may inherit it, and a file that is open for writing cannot be executed.
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

/// A folder with a copy of the command, `fastproc`, that everybody may execute. It is as large as all else that tests write, so
/// those that run at the same time share it.
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

/// Odd processes: one testbed for all tests of a program, with which they end.
pub fn testbed() -> &'static Testbed {
    static TESTBED: OnceLock<Testbed> = OnceLock::new();
    TESTBED.get_or_init(|| Testbed::open(&Options::default()).expect("the testbed opens"))
}

/// Their pids, for the command.
pub fn pids_of_testbed() -> String {
    let processes = testbed().processes().iter();
    let pids: Vec<_> = processes.map(|process| process.pid.to_string()).collect();
    pids.join(",")
}

/// What differed in many looks, by its name.
///
/// The kernel may show a value, another and the first again. So what differed in one look alone is noted and counted.
#[derive(Default)]
pub struct Differences(BTreeMap<String, Vec<String>>);

impl Differences {
    /// So often nothing differs twice that is right, and a fault in half of the looks shows again, but for one time in 300.
    pub const LOOKS: usize = 12;
    /// What differs once, in a test. None does on a quiet machine.
    const ONCE: usize = 3;

    pub fn add(&mut self, name: String, seen: String) {
        self.0.entry(name).or_default().push(seen);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes what differed in another look.
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
    /// After so long without its line another process is started: the event of the first may be lost.
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

    /// The next one.
    #[track_caller]
    pub fn line(&self, what: &str) -> String {
        let line = self.0.recv_timeout(GUARD);
        line.unwrap_or_else(|error| panic!("{what}: no line: {error}"))
    }

    /// So many lines of csv of one process: the pid is the field at `place`. Starts processes until one has as many: on a busy
    /// machine events may be lost.
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
                // Others are told of, too: those of the tests beside.
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

/// A row that `command`, `fastproc ps --exited`, shows while processes come and go by `end`: the share of a CPU and the life of
/// those that have ended are known. One of them may have been seen by a snapshot right before its end, and have no share since.
pub fn shown_of_ended(command: &mut Command, mut end: impl FnMut()) -> Value {
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
