//! The three texts of a process: the kernel's, opened each time or by kept descriptors, and rendered from a record.
//!
//! `cargo bench -p fastproc --bench text` prints the time for all three of this process.

use std::{fs::File, io::Read as _, os::unix::fs::FileExt as _};

use divan::{Bencher, black_box};
use fastproc::{Collector, SourceKind, access::Access, text::Files};

const PATHS: [&str; 3] = ["/proc/self/stat", "/proc/self/statm", "/proc/self/status"];

fn main() {
    divan::main();
}

#[divan::bench]
fn open_read_close(bencher: Bencher<'_, '_>) {
    let mut memory = [0; 8192];
    bencher.bench_local(|| {
        for path in PATHS {
            let mut file = File::open(path).expect("this process has it");
            black_box(file.read(&mut memory).expect("it can be read"));
        }
    });
}

#[divan::bench]
fn pread(bencher: Bencher<'_, '_>) {
    let files = PATHS.map(|path| File::open(path).expect("this process has it"));
    let mut memory = [0; 8192];
    bencher.bench_local(|| {
        for file in &files {
            black_box(file.read_at(&mut memory, 0).expect("it can be read"));
        }
    });
}

#[divan::bench]
fn rendered(bencher: Bencher<'_, '_>) {
    let mut collector = Collector::builder()
        .source(Some(SourceKind::Procfs))
        .fields(Files::FIELDS)
        .open()
        .expect("/proc can be read");
    let mut files =
        Files::open(collector.host(), collector.calibration()).expect("the format is known");
    let snapshot = collector.snapshot().expect("/proc can be read");
    let process = snapshot
        .get(std::process::id())
        .expect("this process is there");
    let kernel = std::fs::read("/proc/self/status").expect("this process has it");
    bencher.bench_local(|| {
        let mut bytes = files.stat(process, Access::Granted)?.len();
        bytes += files.statm(process)?.len();
        bytes += files.status(process, Some(&kernel))?.len();
        Ok::<_, fastproc::text::RenderError>(black_box(bytes))
    });
}
