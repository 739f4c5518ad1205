//! `docs/fields.md` matches `bpf/record.h`.

use std::{env, fmt::Write, fs};

use fastproc::schema::{EXIT, Field, RECORD, Shown, Structure, THREAD, Threads, Unit};
use fastproc_testbed::gate;

const PAGE: &str = "../../docs/fields.md";
const BEGINNING: &str = "# Fields of a record

The build makes this page of `bpf/record.h` (`make fields`), as it makes the structures and accessors in Rust, C and Go.

- **Shown**: *all* readers see it; all see it rounded to clock *ticks*; or only *tracers* do, who could trace the process by the kernel's ptrace access
  check. To others it is unknown.
- **Threads**: the kernel keeps one for the *process*; it is that of the *leader*, the first thread; or it is the *sum* over all threads.
- **Unknown**: the value in the record that says that it is not known. The accessors return `None`, `FASTPROC_UNKNOWN` or `false` for it. Where there is none,
  the value is known if its group is there.
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
