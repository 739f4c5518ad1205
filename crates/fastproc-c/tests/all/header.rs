//! The header matches the library, and compilers accept it.

use crate::common;

use std::{env, fmt::Write, fs, path::Path, process::Command};

use fastproc_testbed::gate;

const HEADER: &str = "include/fastproc.h";

/// The header that the functions and their documentation generate.
fn generated() -> String {
    let config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml can be read");
    let sources = [
        "src/constants.rs",
        "src/exports.rs",
        "src/cgroup_exports.rs",
        "src/handle.rs",
    ]
    .map(Path::new);
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(source);
    }
    let accessors = Path::new(env!("OUT_DIR")).join("accessors.rs");
    let mut text = Vec::new();
    let introduction = fs::read_to_string("include/introduction.h").expect("the file is read");
    let bindings = builder
        .with_src(accessors)
        .with_header(introduction.trim())
        .generate();
    bindings
        .expect("the functions can be read")
        .write(&mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn the_header_is_that_of_the_functions() {
    let generated = generated();
    if env::var_os("FASTPROC_WRITE_HEADER").is_some() {
        fs::write(HEADER, &generated).expect("it can be written");
    }
    let kept = fs::read_to_string(HEADER).unwrap_or_default();
    assert!(
        kept == generated,
        "{HEADER} is not what the functions make of it: write it anew by `make c-header`"
    );
}

/// The list of accessors in the manual: in the header each follows its comment.
fn listed(header: &str) -> String {
    let mut list = String::new();
    for part in header.split("/**").skip(1) {
        let Some((comment, rest)) = part.split_once("*/") else {
            continue;
        };
        let declaration = rest.split(';').next().unwrap_or_default();
        let words: Vec<_> = declaration.split_whitespace().collect();
        let declaration = words.join(" ");
        let Some((name, arguments)) = declaration
            .strip_prefix("int ")
            .and_then(|declaration| declaration.split_once('('))
        else {
            continue;
        };
        let index = arguments.split_once("size_t index, ");
        let Some((_, value)) = index.filter(|_| !BY_HAND.contains(&name)) else {
            continue;
        };
        let value = value.trim_end_matches(')').rsplit_once('*');
        let value = match value {
            Some((_, "length")) => "const char **, size_t *".to_owned(),
            Some((value, _)) => format!("{value}*"),
            None => continue,
        };
        let comment: Vec<_> = comment.split(['*', '\n']).map(str::trim).collect();
        let comment = comment
            .join(" ")
            .replace('`', "")
            .replace('\\', "\\e")
            .replace('-', "\\-");
        let _ = write!(
            list,
            ".TP\n.BR {name} \" (\" \"{value}\" )\n\\&{}\n",
            comment.trim()
        );
    }
    list
}

/// Functions that the manual describes itself.
const BY_HAND: &[&str] = &[
    "fastproc_gone_pid",
    "fastproc_gone_start_ns",
    "fastproc_cgroups_path",
    "fastproc_cgroups_memory_stat",
    "fastproc_cgroups_pressure_share",
    "fastproc_cgroups_device_count",
    "fastproc_cgroups_device",
    "fastproc_cgroups_page_size_count",
    "fastproc_cgroups_page_size",
    "fastproc_cgroups_cpu_count",
    "fastproc_cgroups_cpu_time_ns",
];

/// Types, which only the header describes.
const TYPES: &[&str] = &[
    "fastproc_ids",
    "fastproc_cgroups",
    "fastproc_device",
    "fastproc_page_size",
];

#[test]
fn the_manual_has_every_function() {
    const MANUAL: &str = "fastproc.3";
    let manual = fs::read_to_string(MANUAL).expect("the file is read");
    let list = listed(&generated());
    assert!(list.contains("fastproc_memory_vsize_bytes"), "{list}");
    let (before, rest) = manual
        .split_once(".\\\" BEGIN\n")
        .expect("where the list begins");
    let (_, after) = rest.split_once(".\\\" END\n").expect("where it ends");
    let new = format!("{before}.\\\" BEGIN\n{list}.\\\" END\n{after}");
    if env::var_os("FASTPROC_WRITE_HEADER").is_some() {
        fs::write(MANUAL, &new).expect("it can be written");
    }
    let manual = fs::read_to_string(MANUAL).expect("the file is read");
    assert!(
        manual == new,
        "{MANUAL} is old: write it anew by `make c-header`"
    );
    for name in generated().split(|of: char| !(of.is_ascii_alphanumeric() || of == '_')) {
        let is_function = name.starts_with("fastproc_") && !TYPES.contains(&name);
        assert!(
            !is_function || new.contains(name),
            "the manual has no {name}"
        );
    }
    if !gate::programs(&["man"]) {
        return;
    }
    let page = Command::new("man")
        .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", MANUAL])
        .output()
        .expect("it can be run");
    let words = String::from_utf8_lossy(&page.stderr);
    assert!(page.status.success() && words.is_empty(), "{words}");
}

#[test]
fn c_and_cpp_compilers_take_it_without_a_word() {
    if !gate::programs(&["cc", "c++"]) {
        return;
    }
    let folder = fastproc_testbed::Folder::new("header");
    let program = "#include <fastproc.h>\n#include <fastproc.h>\nint main(void) { return fastproc_error() == NULL; }\n";
    let file = folder.join("program.c");
    fs::write(&file, program).expect("it can be written");
    let compilers: [(&str, &[&str]); 4] = [
        ("cc", &["-std=c99", "-x", "c"]),
        ("cc", &["-std=c11", "-x", "c"]),
        ("c++", &["-std=c++98", "-Wno-c++11-long-long", "-x", "c++"]),
        ("c++", &["-std=c++17", "-x", "c++"]),
    ];
    for (compiler, arguments) in compilers {
        let output = Command::new(compiler)
            .args(arguments)
            .args(common::WARNINGS)
            .args(["-fsyntax-only", "-Iinclude"])
            .arg(&file)
            .output()
            .expect("it can be run");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && words.is_empty(),
            "{compiler} {arguments:?}: {words}"
        );
    }
}
