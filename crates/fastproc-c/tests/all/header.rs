//! The header matches the library, and compilers accept it.

use crate::common;

use std::{collections::BTreeSet, env, fmt::Write, fs, path::Path, process::Command};

use fastproc::{Fields, text::Files};
use fastproc_testbed::{gate, needs};

use self::parser::{Header, Member, Shown, Structure};

/// The parser of the descriptions in `bpf/`, shared with the library.
#[path = "../../../fastproc/build/header.rs"]
#[allow(dead_code, reason = "some of it is for the library alone")]
mod parser;

const HEADER: &str = "include/fastproc.h";

/// What programs compare, and what they pass to `fastproc_open()`.
const BEFORE_RECORDS: &str = "
/* A member marked [unknown] or [guarded], and every member of a group that a record lacks, has these values if it is not known. */
#define FASTPROC_UNKNOWN_U64 UINT64_MAX
#define FASTPROC_UNKNOWN_U32 UINT32_MAX
#define FASTPROC_UNKNOWN_S32 (-1)
#define FASTPROC_UNKNOWN_U8 UINT8_MAX

/* A limit of a cgroup that is not set. */
#define FASTPROC_NO_LIMIT (UINT64_MAX - 1)

/* The flag of kernel threads in identity.flags. */
#define FASTPROC_KERNEL_THREAD 0x00200000

";
const AFTER_RECORDS: &str = "/* The sizes of the structures that the program is compiled with. */
#define FASTPROC_SIZES \\
\t((uint64_t)sizeof(fastproc_record) | (uint64_t)sizeof(fastproc_thread_record) << 16 | \\
\t (uint64_t)sizeof(fastproc_cgroup_record) << 32 | \\
\t (uint64_t)(sizeof(fastproc_cgroup_device) + sizeof(fastproc_snapshot_info) + sizeof(fastproc_change) + \\
		     sizeof(fastproc_file)) << 48)
";

/// The records in C, as their descriptions have them: without tags, with the types of C, and with units in comments.
fn records() -> String {
    let read = |path: &str| Header::parse(path, &fs::read_to_string(path).expect("it is read"));
    let [mut all, cgroups] = ["../../bpf/record.h", "../../bpf/cgroup_record.h"].map(read);
    let mut out = BEFORE_RECORDS.to_owned();
    write_groups(&all, "fp_record", ["FP_", "FASTPROC_"], &mut out);
    for (name, fields) in [("TOP", Fields::TOP), ("THREE_FILES", Files::FIELDS)] {
        let _ = writeln!(out, "#define FASTPROC_{name} {:#x}", fields.bits());
    }
    let prefixes = ["FP_CGROUP_", "FASTPROC_CGROUPS_"];
    write_groups(&cgroups, "fp_cgroup_record", prefixes, &mut out);
    all.constants.extend(cgroups.constants);
    all.structures.extend(cgroups.structures);
    let mut wanted = BTreeSet::new();
    let roots = [
        "fp_record",
        "fp_thread_record",
        "fp_cgroup_record",
        "fp_cgroup_device",
    ];
    for root in roots {
        let members = &all.find(root).expect("it is described").members;
        wanted.extend(members.iter().filter_map(Member::structure));
        wanted.insert(root);
    }
    for structure in &all.structures {
        if wanted.contains(&*structure.name) {
            write_structure(&all, structure, &mut out);
        }
    }
    out + AFTER_RECORDS
}

/// The groups of fields, as bits.
fn write_groups(header: &Header, record: &str, [theirs, ours]: [&str; 2], out: &mut String) {
    let groups = &header.find(record).expect("it is described").members;
    for constant in &header.constants {
        let name = constant.name.strip_prefix(theirs).unwrap_or(&constant.name);
        let mut groups = groups.iter();
        let doc = match groups.find(|group| group.name.to_uppercase() == name) {
            Some(group) => in_c(&group.doc),
            None if name == "THREADS" => "Every thread on its own.".into(),
            None => continue,
        };
        let _ = writeln!(out, "#define {ours}{name} {} /* {doc} */", constant.value);
    }
    out.push('\n');
}

fn write_structure(all: &Header, structure: &Structure, out: &mut String) {
    let name = structure.name.replace("fp_", "fastproc_");
    let _ = writeln!(
        out,
        "/* {} */\ntypedef struct {name} {{",
        in_c(&structure.doc)
    );
    for member in &structure.members {
        let mut doc = in_c(&member.doc);
        match member.type_name.as_str() {
            "fp_ns" => doc += " Nanoseconds.",
            "fp_bytes" => doc += " Bytes.",
            _ => {}
        }
        if member.tags.shown == Some(Shown::Tracers) && !member.is_structure() {
            doc += " [guarded]";
        }
        if member.tags.unknown.is_some() {
            doc += " [unknown]";
        }
        if member.tags.is_inner && !["groups", "state_bits", "masked"].contains(&&*member.name) {
            doc += " [internal]";
        }
        let length = member.length.as_ref().map(|length| {
            let mut constants = all.constants.iter();
            let known = constants.find(|constant| constant.name == *length);
            format!("[{}]", known.map_or(length, |constant| &constant.value))
        });
        let _ = writeln!(
            out,
            "\t{} {}{}; /* {doc} */",
            type_in_c(&member.type_name),
            member.name,
            length.unwrap_or_default()
        );
    }
    let _ = writeln!(out, "}} {name};\n");
}

fn type_in_c(name: &str) -> String {
    match name {
        "u8" | "u32" | "u64" => format!("uint{}_t", &name[1..]),
        "s32" | "s64" => format!("int{}_t", &name[1..]),
        "fp_ns" | "fp_bytes" => "uint64_t".into(),
        _ => name
            .strip_prefix("struct fp_")
            .map_or(name.into(), |of| format!("fastproc_{of}")),
    }
}

/// The documentation without sentences that are about Rust alone.
fn in_c(doc: &str) -> String {
    let sentences = doc.split_inclusive(". ");
    let kept =
        sentences.filter(|sentence| !(sentence.starts_with("See `") && sentence.contains("::")));
    let text: String = kept.collect();
    text.trim()
        .replace("u64::MAX", "UINT64_MAX")
        .replace('`', "")
}

/// The header that the functions, the records and their documentation generate.
fn generated() -> String {
    let mut config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml is read");
    config.after_includes = Some(records());
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in [
        "src/constants.rs",
        "src/structures.rs",
        "src/exports.rs",
        "src/handle.rs",
    ] {
        builder = builder.with_src(Path::new(source));
    }
    let mut text = Vec::new();
    let introduction = fs::read_to_string("include/introduction.h").expect("the file is read");
    let bindings = builder.with_header(introduction.trim()).generate();
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
        "{HEADER} is not what the functions and records make of it: write it anew by `make c-header`"
    );
}

#[test]
fn the_manual_has_every_function() {
    const MANUAL: &str = "fastproc.3";
    let manual = fs::read_to_string(MANUAL).expect("the file is read");
    for name in common::functions() {
        assert!(
            manual.contains(&format!("{name} (")),
            "the manual has no {name}"
        );
    }
    needs!(gate::programs(&["man"]));
    let page = Command::new("man")
        .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", MANUAL])
        .output()
        .expect("it can be run");
    let words = String::from_utf8_lossy(&page.stderr);
    assert!(page.status.success() && words.is_empty(), "{words}");
}

#[test]
fn c_and_cpp_compilers_take_it_without_a_word() {
    needs!(gate::programs(&["cc", "c++"]));
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
