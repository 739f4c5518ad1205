//! `init look SOURCE`: checks that `fastproc ps` shows a reader the same as `/proc`, and no more.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    process::{Command, ExitCode},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::proofs::FASTPROC;

/// Columns of `fastproc ps` that only a user who may trace the process sees, and their names in JSON.
const COLUMNS: [(&str, &str); 3] = [
    ("exe", "exe"),
    ("rchar", "rchar_bytes"),
    ("startstack", "startstack"),
];

/// The result.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Looked {
    /// The source that `fastproc ps` used.
    pub source: String,
    /// Processes that existed all the time.
    pub processes: usize,
    /// Processes of which the kernel hides something from this reader.
    pub hidden: usize,
    /// Those that belong to the reader's own user.
    pub own_hidden: usize,
    /// Values that were shown although the kernel hides them.
    pub leaked: BTreeSet<String>,
    /// Values that were not shown although the kernel shows them.
    pub withheld: BTreeSet<String>,
    /// Why `fastproc ps` did not run.
    pub error: String,
}

/// Reads all processes, and prints a [`Looked`].
pub fn main(source: &str) -> ExitCode {
    let looked = look(source).unwrap_or_else(|error| Looked {
        error: error.to_string(),
        ..Looked::default()
    });
    match serde_json::to_string(&looked) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn look(source: &str) -> io::Result<Looked> {
    let columns: Vec<&str> = COLUMNS.iter().map(|(column, _)| *column).collect();
    let columns = format!("pid,{}", columns.join(","));
    let mut ps = Command::new(FASTPROC);
    ps.args(["ps", "--json", "-o", &columns]);
    if source != "any" {
        ps.args(["--source", source]);
    }
    let output = ps.output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    let shown: Value = serde_json::from_slice(&output.stdout)?;
    let mut looked = Looked {
        source: shown["source"].as_str().unwrap_or_default().to_owned(),
        ..Looked::default()
    };
    let user = rustix::process::geteuid().as_raw();
    let processes = shown["processes"].as_array();
    for process in processes.into_iter().flatten() {
        let Some(pid) = process["pid"].as_u64() else {
            continue;
        };
        // A process always sees itself, even if it is confined.
        if pid == u64::from(std::process::id()) {
            continue;
        }
        let Some(kernel) = shown_by_kernel(pid) else {
            continue;
        };
        looked.processes += 1;
        let mut hides = false;
        for ((_, name), kernel) in COLUMNS.iter().zip(kernel) {
            let is_shown = match &process[*name] {
                Value::Null => false,
                Value::Number(number) => number.as_u64() != Some(0) || kernel == Some(true),
                _ => true,
            };
            hides |= kernel == Some(false);
            let which = match (is_shown, kernel) {
                (true, Some(false)) => &mut looked.leaked,
                (false, Some(true)) => &mut looked.withheld,
                _ => continue,
            };
            which.insert(format!("{name} of {pid}"));
        }
        looked.hidden += usize::from(hides);
        // Root owns the file of a non-dumpable process, so it is hidden from the process's user, too.
        let is_own = fs::metadata(format!("/proc/{pid}/io")).is_ok_and(|of| of.uid() == user);
        looked.own_hidden += usize::from(hides && is_own);
    }
    Ok(looked)
}

/// Whether the kernel shows these columns to this reader; `None` for one that the process lacks. Without a result the
/// process has exited.
fn shown_by_kernel(pid: u64) -> Option<[Option<bool>; COLUMNS.len()]> {
    let is_shown = |result: io::Result<()>| match result {
        Ok(()) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(false),
        // A kernel thread has no program.
        Err(_) => None,
    };
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let exe = is_shown(fs::read_link(file("exe")).map(drop));
    let io = is_shown(fs::read(file("io")).map(drop));
    let stat = fs::read_to_string(file("stat")).ok()?;
    let start_stack = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(25)?;
    // The kernel prints 0 to readers who may not see it, and for a kernel thread.
    let start_stack = match (start_stack, exe) {
        ("0", Some(false)) => Some(false),
        ("0", _) => None,
        _ => Some(true),
    };
    Some([exe, io, start_stack])
}
