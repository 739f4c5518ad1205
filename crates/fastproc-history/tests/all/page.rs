//! `docs/history-tables.md` matches `src/table.rs`, and `docs/top.md` what a history keeps.

use std::{collections::BTreeSet, env, fmt::Write, fs};

use fastproc_history::{
    read::LACKED,
    table::{self, GREATEST, Kind},
};

const PAGE: &str = "../../docs/history-tables.md";
const BEGINNING: &str = "# Tables of a history

`make fields` writes this page from `crates/fastproc-history/src/table.rs`. [history.md](history.md) says what a history is, and
how to ask it.

A number is a signed integer of 64 bits. A time is a timestamp in microseconds, UTC. A text is UTF-8: a byte of a name that is not is
written `\\xHH`, and a backslash as two. An unknown value is null.

A column's name, type, unit and meaning never change: another meaning gets another name. A new version may add columns, so ask for
columns by name. The folders add `host`, `date` and `hour`.
";

#[test]
fn the_page_of_tables_is_that_of_the_source() {
    let mut made = BEGINNING.to_owned();
    for table in table::all() {
        let (name, meaning, order) = (table.name, table.meaning, table.order.join("`, `"));
        let _ = write!(
            made,
            "\n## {name}\n\n{meaning} Sorted by `{order}`.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n"
        );
        for column in &table.columns {
            let kind = match column.kind {
                Kind::Number => "number",
                Kind::Time => "time",
                Kind::Text => "text",
            };
            let (name, unit, meaning) = (column.name, column.unit, column.meaning);
            let meaning = meaning.replace('|', "\\|");
            let _ = writeln!(made, "| `{name}` | {kind} | {unit} | {meaning} |");
        }
        if name == table::PROCESSES.name {
            made.push_str("\nA thinned file also has the greatest value of the interval:");
            for (of, name) in GREATEST {
                let _ = write!(made, " `{name}` of `{of}`,");
            }
            made.pop();
            made.push_str(".\n");
        }
    }
    if env::var_os("FASTPROC_WRITE_FIELDS").is_some() {
        fs::write(PAGE, &made).expect("the page can be written");
    }
    let kept = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        kept == made,
        "{PAGE} is of another src/table.rs: write it anew by `make fields`"
    );
}

#[test]
fn the_page_of_top_names_the_fields_that_looking_back_lacks() {
    let page = fs::read_to_string("../../docs/top.md").expect("the page");
    let (_, list) = page
        .split_once("by which no filter selects:")
        .expect("it has a list");
    let list = list.split("\n\n").next().unwrap_or_default();
    let named: BTreeSet<_> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, LACKED.iter().copied().collect());
}
