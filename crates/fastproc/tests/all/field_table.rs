//! `docs/dev/fields.md` matches `bpf/record.h`.

use std::{env, fmt::Write, fs};

use fastproc::schema::{EXIT, Field, RECORD, Shown, Structure, THREAD, Threads, Unit};
use fastproc_testbed::gate;

const PAGE: &str = "../../docs/dev/fields.md";
const BEGINNING: &str = "# Fields of a record

This page lists every member of a record. `make fields` writes it from `bpf/record.h`, from which the build also makes the structures in Rust,
C and Go. The first part of a name is the group of fields that a reader requests.

- **Shown**: who sees the value. *all*: every reader. *ticks*: every reader, but the service rounds it down to clock ticks for readers who may not trace the
  process. *tracers*: only readers who may trace the process (the kernel's ptrace access check); to others the value is unknown.
- **Threads**: whose value it is. *process*: the kernel keeps one for the process. *leader*: that of the first thread. *sum*: the sum over all threads.
- **Unknown**: the number that stands for an unknown value. For it the accessors return `None` in Rust and `false` in Go; C sets every bit. If the column
  is empty, the value is known whenever its group is in the record.
";

fn row(field: &Field) -> String {
    let unit = match field.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        _ => "",
    };
    let shown = match field.shown {
        Shown::Public => "all",
        Shown::Ticks | Shown::BootTicks => "ticks",
        Shown::Tracers => "tracers",
        _ => "nobody",
    };
    let threads = match field.threads {
        Some(Threads::Process) => "process",
        Some(Threads::Leader) => "leader",
        Some(Threads::Sum) => "sum",
        _ => "",
    };
    let unknown = match field.unknown {
        None => String::new(),
        Some(0xffff_ffff | u64::MAX) => "-1".into(),
        Some(bits) => bits.to_string(),
    };
    format!(
        "| `{}` | {:?} | {unit} | {shown} | {threads} | {unknown} | {} |\n",
        field.path, field.type_of, field.doc
    )
}

fn section(title: &str, structure: &Structure) -> String {
    let mut text = format!(
        "\n## {title}\n\n| field | type | unit | shown | threads | unknown | meaning |\n|---|---|---|---|---|---|---|\n"
    );
    for field in structure.fields() {
        let _ = write!(text, "{}", row(&field));
    }
    text
}

#[test]
fn the_page_of_fields_is_that_of_the_header() {
    let made = [
        BEGINNING.to_owned(),
        section("A process", RECORD),
        section("A thread", THREAD),
        section("A process that has ended", EXIT),
    ]
    .concat();
    if env::var_os("FASTPROC_WRITE_FIELDS").is_some() {
        fs::write(PAGE, &made).expect("it can be written");
    }
    let kept = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        kept == made,
        "{PAGE} is of another bpf/record.h: write it anew by `make fields`"
    );
    gate::ran();
}
