//! Generates an accessor for each member of a record from `bpf/record.h` and `bpf/cgroup_record.h`, which describe them.

// The parser of that header, shared with the library.
#[path = "../../fastproc/build/header.rs"]
#[allow(dead_code, reason = "some of it is for the library alone")]
pub(crate) mod header;

use std::{env, fmt::Write, fs, path::PathBuf};

use header::{Header, Member, Shown, Structure};

const HEADER: &str = "../../bpf/record.h";
const CGROUP_HEADER: &str = "../../bpf/cgroup_record.h";

/// The members of `fastproc::Change`: changes of a process or thread between two snapshots.
const CHANGES: &[(&str, &str, &str, bool)] = &[
    (
        "born",
        "bool",
        "Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.",
        false,
    ),
    (
        "cpu_ns",
        "u64",
        "CPU time used since the earlier snapshot, or since its start. Nanoseconds.",
        false,
    ),
    (
        "cpu_share",
        "f64",
        "CPU time used per time passed: 1.0 is one whole CPU.",
        false,
    ),
    ("user_share", "f64", "The part of it in user mode.", false),
    (
        "system_share",
        "f64",
        "The part of it in kernel mode.",
        false,
    ),
    (
        "minflt_per_second",
        "f64",
        "Page faults that needed no I/O, per second.",
        false,
    ),
    (
        "majflt_per_second",
        "f64",
        "Page faults that needed I/O, per second.",
        false,
    ),
    (
        "read_bytes_per_second",
        "f64",
        "Bytes fetched from storage, per second.",
        true,
    ),
    (
        "write_bytes_per_second",
        "f64",
        "Bytes sent to storage, per second.",
        true,
    ),
];

fn main() {
    println!("cargo::rerun-if-changed={HEADER}");
    println!("cargo::rerun-if-changed=../fastproc/build/header.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed={CGROUP_HEADER}");
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Header::parse(path, &text)
    };
    let header = read(HEADER);
    header.require_tags(HEADER, &header::View::PROCESS);
    let out = accessors(&header) + &cgroup_accessors(&read(CGROUP_HEADER));
    let path = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(path.join("accessors.rs"), out).expect("OUT_DIR can be written to");
}

pub(crate) fn accessors(header: &Header) -> String {
    let mut out = String::new();
    write_groups(header, "fp_record", ["FP_", "FASTPROC_"], &mut out);
    for member in &find(header, "fp_record").members {
        let group = find(header, type_of(member));
        for part in &group.members {
            write_accessor(Of::Process(&member.name), part, &mut out);
        }
    }
    for member in &find(header, "fp_thread_record").members {
        match member.type_name.strip_prefix("struct ") {
            Some(group) => {
                for part in &find(header, group).members {
                    write_accessor(Of::Thread(Some(&member.name)), part, &mut out);
                }
            }
            None => write_accessor(Of::Thread(None), member, &mut out),
        }
    }
    for change in CHANGES {
        write_change(change, "", &mut out);
        write_change(change, "thread_", &mut out);
    }
    out
}

/// The accessors of a cgroup.
pub(crate) fn cgroup_accessors(header: &Header) -> String {
    let mut out = String::new();
    let prefixes = ["FP_CGROUP_", "FASTPROC_CGROUPS_"];
    write_groups(header, "fp_cgroup_record", prefixes, &mut out);
    for member in &find(header, "fp_cgroup_record").members {
        for part in &find(header, type_of(member)).members {
            // Functions in `src/cgroup_exports.rs` return what is in arrays.
            if part.length.is_none() {
                write_accessor(Of::Cgroup(&member.name), part, &mut out);
            }
        }
    }
    out
}

/// The subject of an accessor.
#[derive(Clone, Copy)]
enum Of<'a> {
    /// A member of this group of a process.
    Process(&'a str),
    /// A member of a thread, or of this group in it.
    Thread(Option<&'a str>),
    /// A member of this group of a cgroup.
    Cgroup(&'a str),
}

fn find<'a>(header: &'a Header, name: &str) -> &'a Structure {
    let mut structures = header.structures.iter();
    let found = structures.find(|structure| structure.name == name);
    found.unwrap_or_else(|| panic!("{HEADER} has no struct {name}"))
}

fn type_of(member: &Member) -> &str {
    let name = member.type_name.strip_prefix("struct ");
    name.unwrap_or_else(|| panic!("{} is no structure", member.name))
}

/// The groups of fields, as bits.
fn write_groups(header: &Header, record: &str, [theirs, ours]: [&str; 2], out: &mut String) {
    let groups = &find(header, record).members;
    for constant in &header.constants {
        let name = constant.name.strip_prefix(theirs).unwrap_or(&constant.name);
        let group = groups
            .iter()
            .find(|group| group.name.to_uppercase() == name);
        let doc = match group {
            Some(group) => group.doc.as_str(),
            None if name == "THREADS" => "Every thread on its own.",
            None => continue,
        };
        let value = &constant.value;
        let _ = writeln!(out, "/// {doc}\npub const {ours}{name}: u32 = {value};\n");
    }
}

fn write_accessor(of: Of<'_>, member: &Member, out: &mut String) {
    let prefix = match of {
        Of::Process(group) => format!("{group}_"),
        Of::Thread(None) => "thread_".into(),
        Of::Thread(Some(group)) => format!("thread_{group}_"),
        Of::Cgroup(group) => format!("cgroups_{group}_"),
    };
    // Internal members have no accessor. For some of them a function in `src/exports.rs` returns what callers need.
    let shown = member.tags.shown.filter(|_| !member.tags.is_inner);
    let Some(shown) = shown.filter(|&shown| shown != Shown::Nobody) else {
        return;
    };
    let is_guarded = shown == Shown::Tracers;
    let mut doc = in_c(&member.doc);
    match member.type_name.as_str() {
        "fp_ns" => doc += " Nanoseconds.",
        "fp_bytes" => doc += " Bytes.",
        _ => {}
    }
    let needs = match of {
        Of::Process("identity") | Of::Cgroup("identity") => None,
        Of::Process(group) => Some(group.to_uppercase()),
        Of::Cgroup(group) => Some(format!("CGROUPS_{}", group.to_uppercase())),
        Of::Thread(None) => Some("THREADS".into()),
        Of::Thread(Some(group)) => Some(format!("{}, FASTPROC_THREADS", group.to_uppercase())),
    };
    if let Some(needs) = &needs {
        let _ = write!(doc, " [FASTPROC_{needs}]");
    }
    if is_guarded {
        doc += " [guarded]";
    }
    let unit = match member.type_name.as_str() {
        "fp_bytes" if !member.name.ends_with("bytes") => "_bytes",
        _ => "",
    };
    let name = format!("fastproc_{prefix}{}{unit}", member.name);
    let about = match of {
        Of::Process(_) => "process",
        Of::Thread(_) => "thread",
        Of::Cgroup(_) => "cgroup",
    };
    let guard = match of {
        _ if !is_guarded => "Public",
        Of::Process("io") | Of::Thread(Some("io")) => "Io",
        _ => "Guarded",
    };
    if member.type_name == "char" {
        let place = match of {
            Of::Process(group) => format!("{group}.{}", member.name),
            Of::Thread(_) | Of::Cgroup(_) => member.name.clone(),
        };
        write_function(
            out,
            &doc,
            &name,
            "handle: *mut Fastproc, index: usize, text: *mut *const c_char, length: *mut usize",
            &format!(
                "hand_out(handle, text, length, |reader| reader.{about}_characters(index, |{about}| &{about}.{place}))"
            ),
        );
        return;
    }
    let rust = rust_type(&member.type_name);
    let (name_of, may_be_unknown) = (&member.name, member.tags.unknown.is_some());
    let is_layout = matches!(of, Of::Process("layout" | "io"));
    let get = match of {
        Of::Process("identity") if may_be_unknown => {
            format!("|process| process.identity().{name_of}()")
        }
        Of::Process(group) if may_be_unknown => {
            format!("|process| process.{group}().and_then(|group| group.{name_of}())")
        }
        Of::Process(_) if is_guarded && !is_layout => format!("|process| process.{name_of}()"),
        Of::Process("identity") => format!("|process| Some(process.identity().{name_of})"),
        Of::Process(group) => format!("|process| process.{group}().map(|group| group.{name_of})"),
        Of::Cgroup("identity") => format!("|cgroup| Some(cgroup.record().identity.{name_of})"),
        Of::Cgroup(group) if may_be_unknown => {
            format!("|cgroup| cgroup.{group}().and_then(|group| group.{name_of}())")
        }
        Of::Cgroup(group) => format!("|cgroup| cgroup.{group}().map(|group| group.{name_of})"),
        Of::Thread(None) if may_be_unknown => format!("|_, thread| thread.{name_of}()"),
        Of::Thread(None) => format!("|_, thread| Some(thread.{name_of})"),
        Of::Thread(Some(group)) => {
            format!("|process, thread| process.{group}().map(|_| thread.{group}.{name_of})")
        }
    };
    let fields = match of {
        Of::Process("identity") | Of::Cgroup("identity") => "0".into(),
        Of::Thread(Some(group)) => format!("FASTPROC_{} | FASTPROC_THREADS", group.to_uppercase()),
        _ => format!("FASTPROC_{}", needs.unwrap_or_default()),
    };
    let (handle, guard) = match of {
        Of::Cgroup(_) => ("FastprocCgroups", String::new()),
        _ => ("Fastproc", format!("Guard::{guard}, ")),
    };
    write_function(
        out,
        &doc,
        &name,
        &format!("handle: *const {handle}, index: usize, value: *mut {rust}"),
        &format!("get(handle, value, |reader| reader.of_{about}(index, {fields}, {guard}{get}))"),
    );
}

fn write_change(
    (member, rust, doc, is_guarded): &(&str, &str, &str, bool),
    of: &str,
    out: &mut String,
) {
    let needs = match *member {
        "born" => "",
        _ if *is_guarded => " [FASTPROC_IO] [guarded]",
        _ => " [FASTPROC_CPU]",
    };
    let guard = if *is_guarded { "Io" } else { "Public" };
    write_function(
        out,
        &format!("{doc}{needs}"),
        &format!("fastproc_{of}change_{member}"),
        &format!("handle: *const Fastproc, index: usize, value: *mut {rust}"),
        &format!(
            "get(handle, value, |reader| reader.{of}change(index, Guard::{guard}, |change| change.{member}))"
        ),
    );
}

fn write_function(out: &mut String, doc: &str, name: &str, arguments: &str, body: &str) {
    let _ = write!(
        out,
        "/// {doc}\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({arguments}) -> c_int {{\n    \
             // SAFETY: what the caller promises of every function.\n    unsafe {{ {body} }}\n}}\n\n"
    );
}

fn rust_type(c: &str) -> &'static str {
    match c {
        "u8" => "u8",
        "u32" => "u32",
        "s32" => "i32",
        "u64" | "fp_ns" | "fp_bytes" => "u64",
        "s64" => "i64",
        _ => panic!("no accessor can be of the type {c}"),
    }
}

/// The documentation without sentences that are about Rust alone.
fn in_c(doc: &str) -> String {
    let sentences = doc.split_inclusive(". ");
    let kept =
        sentences.filter(|sentence| !(sentence.starts_with("See `") && sentence.contains("::")));
    let text: String = kept.collect();
    text.trim().replace("u64::MAX", "UINT64_MAX")
}
