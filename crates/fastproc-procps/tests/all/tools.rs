//! procps's installed top(1) with the substitute. `make test-procps` compares what the tools show with their own library.

use std::{env, fs, path::Path, process::Command};

use fastproc_testbed::{Folder, Running, gate, needs};

/// By procps's own library throughout: no service listens, and there are few processes. All other processes may be
/// idle, so this one's ticks must advance.
#[test]
fn differences_go_on_by_procps_own_library() {
    needs!(gate::programs(&["top"]));
    let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu", "../lib64", ""];
    let mut names = folders
        .iter()
        .flat_map(|folder| [0, 1].map(|number| format!("/usr/lib/{folder}/libproc2.so.{number}")));
    let Some(real) = names.find(|path| Path::new(path).exists()) else {
        return gate::skipped("there is no libproc2 here");
    };
    let folder = Folder::new("procps");
    let mut shim = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/shim/build"));
    let shim = shim.arg(real).arg(&*folder).status();
    assert!(shim.expect("there is a shell").success());
    // As cargo built it for this test.
    let built = env::current_exe().expect("/proc shows this program");
    let built = built.with_file_name("libfastproc_procps.so");
    fs::copy(built, folder.join("libfastproc_procps.so")).expect("cargo has built it");
    let busy = Running::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let pid = busy.id().to_string();
    // Until it has run before the last of three updates; a machine may be too busy once.
    let saw_it_run = (0..20).any(|_| {
        let mut top = Command::new("top");
        top.args(["-b", "-n3", "-d1", "-p", &pid])
            .env("LC_ALL", "C");
        top.env("LD_LIBRARY_PATH", &*folder);
        let top = top.env("FASTPROC_SOCKET", "/nonexistent").output();
        let top = top.expect("procps is installed").stdout;
        let text = String::from_utf8_lossy(&top).into_owned();
        let last = text
            .lines()
            .rfind(|line| line.trim_start().starts_with(&pid));
        let share = last.and_then(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
        share.is_some_and(|share| share > 0.0)
    });
    assert!(saw_it_run, "it never used any time");
}
