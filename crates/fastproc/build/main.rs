//! Provides the BPF objects, which are embedded in the library, and generates the library's constants and structures
//! from the headers that it shares with the programs.

mod groups;
mod header;
mod objects;
mod rust;
mod words;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use header::View;
use rust::Style;

/// The shared headers, each with the prefix of its names, and the view of its record, if it has one.
const SHARED: [(&str, Style); 7] = [
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
        "files.h",
        Style {
            prefix: "files_",
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

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (name, style) in &SHARED {
        let path = bpf.join(name);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let header = header::Header::parse(&path.to_string_lossy(), &text);
        let write = |name: &str, text: String| {
            fs::write(out.join(name).with_extension("rs"), text)
                .expect("OUT_DIR can be written to");
        };
        let id = fnv(text.as_bytes());
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
        // The records of processes have a description instead, `fastproc::schema`.
        if ["cgroup_record.h", "files.h"].contains(name) {
            text += &["pub(crate) const LAYOUT: u64 = ", &id.to_string(), ";\n"].concat();
        }
        write(name, text);
    }
    let list = fs::read_to_string(bpf.join("tasks/words.h")).expect("bpf/ has the list of words");
    fs::write(out.join("word_functions.h"), words::write(&list))
        .expect("OUT_DIR can be written to");
    objects::provide(bpf, &out);
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
