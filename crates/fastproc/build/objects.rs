//! Provides the objects of `bpf/*.bpf.c`: compiled with clang, or taken from `prebuilt/`, which a published crate
//! contains.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The architectures for which a published crate contains objects.
const PUBLISHED: [&str; 2] = ["x86_64", "aarch64"];

/// Puts the objects for the target into `out`.
///
/// A published crate contains them, so that building it needs no clang. They are used only if they were made from these
/// sources; with `CLANG=…` all are compiled.
pub fn provide(bpf: &Path, out: &Path) {
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-env-changed=FASTPROC_PREBUILT");
    // libbpf's own headers (bpf_helpers.h, bpf_core_read.h), as vendored by libbpf-sys.
    let include = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let include = Path::new(&include);
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the architecture");
    let sources = sources(bpf);
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let digest = digest(bpf, &sources);

    if let Some(folder) = env::var_os("FASTPROC_PREBUILT") {
        publish(&sources, &digest, include, Path::new(&folder));
    }
    let prebuilt = Path::new("prebuilt").join(&arch);
    // For a missing folder cargo would run this again at every build.
    if prebuilt.exists() {
        println!("cargo::rerun-if-changed={}", prebuilt.display());
    }
    if env::var_os("CLANG").is_none() && is_of(&prebuilt, &digest) {
        for source in programs(&sources) {
            let object = object(source, out);
            let made = object.file_name().map(|name| prebuilt.join(name));
            let made = made.expect("an object has a name");
            if let Err(error) = fs::copy(&made, &object) {
                stop(&format!("{}: {error}", made.display()));
            }
        }
        return;
    }
    for source in programs(&sources) {
        compile(&arch, source, include, out);
    }
}

/// Makes the objects for a published crate in `folder`. Files beside them say from which sources and by which compiler.
fn publish(sources: &[PathBuf], digest: &str, include: &Path, folder: &Path) {
    for arch in PUBLISHED {
        let folder = folder.join(arch);
        fs::create_dir_all(&folder).expect("the folder can be made");
        for source in programs(sources) {
            compile(arch, source, include, &folder);
        }
        fs::write(folder.join("sources"), digest).expect("the folder can be written to");
        fs::write(folder.join("clang"), version()).expect("the folder can be written to");
    }
}

/// Whether the objects in this folder were made from the sources with this digest.
pub fn is_of(prebuilt: &Path, digest: &str) -> bool {
    fs::read_to_string(prebuilt.join("sources")).is_ok_and(|made_of| made_of == digest)
}

/// All sources, in the order of their paths.
pub fn sources(bpf: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![bpf.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("the folder bpf/ stands beside this file");
        for entry in entries {
            let path = entry.expect("bpf/ can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The sources of programs.
fn programs(sources: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    let is_program = |path: &&PathBuf| path.to_str().is_some_and(|name| name.ends_with(".bpf.c"));
    sources.iter().filter(is_program)
}

fn object(source: &Path, out: &Path) -> PathBuf {
    out.join(source.file_name().expect("a listed file has a name"))
        .with_extension("o")
}

/// FNV-1a over the sources and their names, as a line. It detects accidental changes, not attacks.
pub fn digest(bpf: &Path, sources: &[PathBuf]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for source in sources {
        let text = fs::read(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let name = source.strip_prefix(bpf).unwrap_or(source).to_string_lossy();
        for byte in name.bytes().chain([0]).chain(text).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    format!("{hash:016x}\n")
}

fn clang() -> String {
    env::var("CLANG").unwrap_or_else(|_| "clang".into())
}

/// The first line of `clang --version`.
fn version() -> String {
    let output = Command::new(clang()).arg("--version").output();
    let output = output.unwrap_or_else(|error| stop(&format!("cannot run {}: {error}", clang())));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().unwrap_or_default().to_owned() + "\n"
}

fn compile(arch: &str, source: &Path, include: &Path, out: &Path) {
    let (clang, object) = (clang(), object(source, out));
    let here = env::current_dir().expect("cargo starts this in the package's folder");
    let made = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let arch = match arch {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        "s390x" => "s390",
        "powerpc64" => "powerpc",
        other => stop(&format!("no BPF target is known for {other}")),
    };
    let status = Command::new(&clang)
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
        // Objects must not name folders of the machine that made them.
        .arg(format!("-ffile-prefix-map={}=libbpf", include.display()))
        .arg(format!("-ffile-prefix-map={}=.", here.display()))
        .arg(format!("-ffile-prefix-map={made}=made"))
        .arg("-I")
        .arg(include)
        .arg("-I")
        .arg(&made)
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

/// Stops the build with a message, without a panic's trace around it.
fn stop(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
