//! Helpers of several tests.

use std::{
    collections::BTreeSet,
    env, fs,
    os::{fd::AsFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::Command,
    thread::{self, JoinHandle},
};

use fastproc_service::{Service, Settings, bind};
use fastproc_testbed::{Folder, GUARD};

/// Warnings that no line of C may cause.
pub const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"];

/// `nobody` of every distribution.
pub const NOBODY: u32 = 65534;

/// Builds the library in this folder from the archive that cargo built for this test.
pub fn build(folder: &Path) {
    let test = env::current_exe().expect("/proc shows this program");
    let built = test.parent().expect("it is in deps/");
    let archives = fs::read_dir(built)
        .expect("the folder is read")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let is_ours = name.starts_with("libfastproc_c-") && path.extension()? == "a";
            is_ours.then(|| Some((path.metadata().ok()?.modified().ok()?, path)))?
        });
    let (_, archive) = archives.max().expect("cargo builds it for this test");
    run(Command::new("./link").arg(archive).arg(folder));
}

/// Returns a new folder with the library, installed as by a package.
pub fn install(name: &str) -> Folder {
    let prefix = Folder::new(name);
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    build(&lib);
    fs::remove_file(lib.join("fastproc-uninstalled.pc")).expect("the file is removed");
    fs::create_dir_all(&include).expect("the folder is made");
    fs::rename(lib.join("fastproc.h"), include.join("fastproc.h")).expect("the file is renamed");
    prefix
}

/// Compiles a program against the library installed there, with the flags of pkg-config.
pub fn compile(prefix: &Path, source: &Path) -> PathBuf {
    let flags = run(Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", prefix.join("lib"))
        .arg(format!("--define-variable=prefix={}", prefix.display()))
        .args(["--cflags", "--libs", "fastproc"]));
    let program = prefix.join(source.file_stem().expect("it has a name"));
    run(Command::new("cc")
        .arg("-std=c99")
        .args(WARNINGS)
        .arg(source)
        .args(flags.split_whitespace())
        .arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()))
        .arg("-o")
        .arg(&program));
    program
}

/// The functions that the header declares.
pub fn functions() -> BTreeSet<String> {
    let header = fs::read_to_string("include/fastproc.h").expect("the file is read");
    let lines = header.lines();
    let lines = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    lines
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect()
}

/// The output of a command, which must not fail.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{words}");
    text
}

/// A service, which runs until it is dropped.
pub struct Served {
    pub socket: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("socket");
        let listener = bind(&socket).expect("nobody listens there");
        let mut settings = Settings::default();
        settings.texts_timeout = GUARD;
        settings.cpu_of_user = 1000.0;
        let service = Service::open(listener, &settings).expect("it reads");
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let thread = thread::spawn(move || service.run(stopped.as_fd()).expect("it serves"));
        Self {
            socket,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended");
        }
    }
}
