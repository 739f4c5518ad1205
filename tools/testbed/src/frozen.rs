//! The frozen machine of `fixtures/`, and the output that was recorded for it.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::Folder;

/// The variable that makes new golden files, if it is set.
const UPDATE: &str = "UPDATE_GOLDEN";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A folder with the files of the frozen machine, removed with the tests.
#[derive(Debug)]
pub struct Frozen(Folder);

impl Frozen {
    /// Unpacks the archives of `fixtures/` into a new folder.
    ///
    /// # Panics
    ///
    /// If an archive is malformed, or a file cannot be written.
    #[must_use]
    #[track_caller]
    pub fn unpack() -> Self {
        let reads = cfg!(debug_assertions).then_some(());
        reads.expect("a build without debug assertions reads no frozen machine");
        let folder = Folder::in_memory("frozen");
        for entry in fs::read_dir(fixtures()).expect("fixtures/ exists") {
            let archive = entry.expect("fixtures/ can be listed").path();
            if archive.extension() == Some(OsStr::new("txt")) {
                unpack(&fs::read(&archive).expect("it can be read"), &folder);
            }
        }
        Self(folder)
    }

    /// The folder with `proc`, `sys` and `etc`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A command that reads the frozen machine, and has no other environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("FASTPROC_FROZEN", &*self.0)
            .env("FASTPROC_SOCKET", self.0.join("no/socket"))
            .env("TZ", "<+01>-1")
            .current_dir(&*self.0);
        command
    }
}

/// Unpacks an archive: `Path:`, then `Lines:` with the text, `SymlinkTo:` or `Directory:`. Bytes that are not printable
/// ASCII are written as `\xff`, and a backslash as `\\`.
fn unpack(archive: &[u8], folder: &Path) {
    let mut lines = archive.split_inclusive(|&byte| byte == b'\n');
    while let Some(line) = lines.next() {
        let line = line.trim_ascii_end();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let name = line.strip_prefix(b"Path: ").expect("a path comes first");
        let path = folder.join(OsStr::from_bytes(&unescaped(name)));
        let parent = path.parent().expect("it is below the folder");
        fs::create_dir_all(parent).expect("the folder is writable");
        let what = lines
            .next()
            .expect("an entry has two lines")
            .trim_ascii_end();
        if let Some(target) = what.strip_prefix(b"SymlinkTo: ") {
            symlink(OsStr::from_bytes(&unescaped(target)), &path).expect("it is new");
        } else if let Some(count) = what.strip_prefix(b"Lines: ") {
            let count = String::from_utf8_lossy(count);
            let (count, has_end) = match count.strip_suffix(" without end") {
                Some(count) => (count, false),
                None => (&*count, true),
            };
            let count = count.parse().expect("a number of lines");
            let mut text: Vec<u8> = lines.by_ref().take(count).flat_map(unescaped).collect();
            if !has_end {
                text.pop();
            }
            fs::write(&path, text).expect("the folder is writable");
        } else {
            assert_eq!(what, b"Directory:", "{}", name.escape_ascii());
            fs::create_dir_all(&path).expect("the folder is writable");
        }
    }
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'x') => rest.by_ref().take(2).fold(0, |value, digit| {
                    let digit = (digit as char).to_digit(16).expect("a hexadecimal digit");
                    value * 16 + digit as u8
                }),
                other => other.expect("a backslash is escaped"),
            },
            byte => byte,
        });
    }
    bytes
}

/// Metrics whose values are those of the running program, not of the machine.
const RUNNING: [&str; 6] = [
    "fastproc_build_info",
    "fastproc_costly_cpu_seconds_total",
    "fastproc_scan_duration_seconds",
    "node_exporter_build_info",
    "node_timex_",
    "process_",
];
const TOOK: &str = "node_scrape_collector_duration_seconds";

/// A line without what differs from run to run.
fn masked(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    if let Some((before, after)) = text.split_once("\"took_ns\":") {
        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        return format!("{before}\"took_ns\":0{after}").into();
    }
    let end = match () {
        () if text.starts_with(TOOK) => text.rfind(' '),
        () if RUNNING.iter().any(|name| text.starts_with(name)) => text.find(['{', ' ']),
        () => None,
    };
    end.map_or_else(
        || line.to_vec(),
        |end| format!("{} (of this run)\n", &text[..end]).into(),
    )
}

/// The output of a command as a text: what it was asked, how it ended, and what it wrote.
///
/// # Panics
///
/// If it cannot be started.
#[must_use]
#[track_caller]
pub fn transcript(command: &mut Command) -> Vec<u8> {
    let arguments = command.get_args().map(OsStr::to_string_lossy);
    let arguments: Vec<_> = arguments.collect();
    let mut text = format!("$ fastproc {}\n", arguments.join(" ")).into_bytes();
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    text.extend(
        stdout
            .split_inclusive(|&byte| byte == b'\n')
            .flat_map(masked),
    );
    if !stderr.is_empty() {
        text.extend(b"standard error:\n");
        text.extend(stderr);
    }
    if !status.success() {
        text.extend(format!("{status}\n").bytes());
    }
    text.push(b'\n');
    text
}

/// Compares what these command lines write with a golden file. Blanks separate arguments, except between quotes. One that
/// takes two snapshots has a machine of its own, because it makes it go on in between.
///
/// # Panics
///
/// As [`golden`].
#[track_caller]
pub fn check(program: &str, name: &str, lines: &[&str]) {
    let shared = Frozen::unpack();
    let mut outputs = Vec::new();
    for line in lines {
        let parts = line.split('\'').enumerate();
        let arguments = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let own = ["--interval", "--once-to-stdout-delay"]
            .iter()
            .any(|flag| line.contains(flag));
        let own = own.then(Frozen::unpack);
        let machine = own.as_ref().unwrap_or(&shared);
        outputs.extend(transcript(machine.command(program).args(arguments)));
    }
    golden(name, &outputs);
}

/// Compares a text with the golden file of this name. With `UPDATE_GOLDEN=1` it becomes that file.
///
/// # Panics
///
/// If they differ; the message has the differing lines.
#[track_caller]
pub fn golden(name: &str, text: &[u8]) {
    let path = fixtures().join("golden").join(name);
    if env::var_os(UPDATE).is_some() {
        fs::create_dir_all(path.parent().expect("it has one")).expect("fixtures/ is writable");
        fs::write(&path, text).expect("fixtures/ is writable");
        return;
    }
    if fs::read(&path).is_ok_and(|expected| expected == text) {
        return;
    }
    let folder = Folder::new("golden");
    let found = folder.join("found");
    fs::write(&found, text).expect("the folder is writable");
    let diff = Command::new("diff")
        .args(["-a", "-U2"])
        .args([&path, &found])
        .output();
    let diff = diff.map_or_else(
        |error| format!("diff: {error}"),
        |diff| String::from_utf8_lossy(&diff.stdout).into_owned(),
    );
    panic!(
        "{} is not what the program writes. If it should be, run: make golden\n{diff}",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_hold_any_bytes_links_and_texts_without_an_end() {
        let folder = Folder::new("archive");
        let archive = b"# A comment\nPath: a/b\\x20c\nLines: 2 without end\n\\xff\\\\x\n\\x00\n\
            Path: a/link\nSymlinkTo: b c\nPath: d\nDirectory:\nPath: empty\nLines: 0\n";
        unpack(archive, &folder);
        let read = |name| fs::read(folder.join(name)).expect("it was unpacked");
        assert_eq!(read("a/link"), b"\xff\\x\n\0");
        assert_eq!(read("empty"), b"");
        assert!(folder.join("d").is_dir());
    }
}
