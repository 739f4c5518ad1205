//! What the tests of the command share.
#![allow(dead_code, reason = "each test program takes a part of it")]

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

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

/// The first row that `command`, `fastproc ps --exited`, shows while processes come and go by `end`: the share of a CPU and
/// the life of one that has ended are known.
pub fn shown_of_ended(command: &mut Command, mut end: impl FnMut()) -> Value {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = std::thread::spawn(move || lines.next());
    while !first.is_finished() {
        end();
    }
    let _ = child.kill();
    let _ = child.wait();
    let line = first
        .join()
        .expect("nothing panics")
        .expect("one was shown")
        .expect("text");
    let row: Value = serde_json::from_str(&line).expect("an object");
    for known in ["pcpu", "etime_ns"] {
        assert!(
            row[known].as_f64().is_some_and(|value| value > 0.0),
            "{known}: {row}"
        );
    }
    row
}
