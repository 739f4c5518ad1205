//! Compiles the kernel side, `bpf/*.bpf.c`, with clang; the objects are embedded in the library. And makes the library's
//! side of what the two share from the same headers.

mod groups;
mod header;
mod rust;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use header::View;
use rust::Style;

/// The headers that describe what the programs and the library share; what names begin with; how a record is shown, if it has one.
const SHARED: [(&str, Style); 6] = [
    (
        "record.h",
        Style {
            prefix: "fp_",
            view: Some(View::PROCESS),
        },
    ),
    (
        "run.h",
        Style {
            prefix: "fp_",
            view: None,
        },
    ),
    (
        "cgroup_record.h",
        Style {
            prefix: "fp_cgroup_",
            view: Some(View {
                record: "fp_cgroup_record",
                path: "crate::cgroups::record",
                of: "Cgroup",
                noun: "cgroup",
                files: ["cgroup_fields", "cgroup"],
                hidden: &[],
            }),
        },
    ),
    (
        "cgroup_run.h",
        Style {
            prefix: "cgroup_",
            view: None,
        },
    ),
    (
        "counters.h",
        Style {
            prefix: "counters_",
            view: None,
        },
    ),
    (
        "exits.h",
        Style {
            prefix: "exits_",
            view: None,
        },
    ),
];

fn main() {
    let bpf = Path::new("bpf");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // libbpf's own headers (bpf_helpers.h, bpf_core_read.h), as vendored by libbpf-sys.
    let include = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    for (name, style) in &SHARED {
        let path = bpf.join(name);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let header = header::Header::parse(&path.to_string_lossy(), &text);
        let write = |name: &str, text: String| {
            fs::write(out.join(name).with_extension("rs"), text)
                .expect("OUT_DIR can be written to");
        };
        let mut text = rust::write(&header, style);
        if let Some(view) = &style.view {
            header.require_tags(&path.to_string_lossy(), view);
            if view.has_threads() {
                text += &groups::write_records(&header, style, view);
            }
            let [fields, accessors] = view.files;
            write(fields, groups::write_fields(&header, style, view));
            write(accessors, groups::write_accessors(&header, style, view));
        }
        write(name, text);
    }
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());

    let sources = fs::read_dir(bpf).expect("the folder bpf/ stands beside this file");
    for source in sources {
        let path = source.expect("bpf/ can be listed").path();
        println!("cargo::rerun-if-changed={}", path.display());
        if path.to_str().is_some_and(|name| name.ends_with(".bpf.c")) {
            compile(&clang, &path, Path::new(&include), &out);
        }
    }
}

fn compile(clang: &str, source: &Path, include: &Path, out: &Path) {
    let object = out
        .join(source.file_name().expect("a listed file has a name"))
        .with_extension("o");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        Ok("riscv64") => "riscv",
        Ok("s390x") => "s390",
        Ok("powerpc64") => "powerpc",
        other => stop(&format!("no BPF target is known for {other:?}")),
    };
    let status = Command::new(clang)
        .args([
            "-g",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
        ])
        .args(["-target", "bpf", "-mcpu=v3"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg("-I")
        .arg(include)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => stop(&format!("{clang} failed on {}: {status}", source.display())),
        Err(error) => stop(&format!(
            "cannot run {clang}: {error}. Install clang (Debian: apt-get install clang), or name another by CLANG=…"
        )),
    }
}

/// Ends the build with a message, and without the trace of a panic around it.
fn stop(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
