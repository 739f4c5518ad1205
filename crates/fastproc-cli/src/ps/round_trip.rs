//! A filter accepts as a literal what a column shows, in any format, and finds the row by it.

use fastproc::{Baseline, Collector, Fields};
use fastproc_columns::{FIELDS, Field, Filter, Lookup, Row, Value};
use fastproc_testbed::{Options, Testbed};
use serde_json::Value as Json;

use crate::format::json::Member;

/// The forms of a value, and the name of its column in each.
fn printed(field: &Field, row: &Row<'_>, lookup: &mut Lookup) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("columns are escaped");
    let mut table = Vec::new();
    field.write_for_table(row, lookup, &mut table);
    let value = field.value(row, lookup);
    if matches!(value, Value::Unknown) {
        return Vec::new();
    }
    let mut csv = Vec::new();
    value.write_for_csv(field.unit, &mut csv);
    let unit = field.unit;
    let json = serde_json::to_string(&Member { value, unit }).expect("JSON");
    let has_arguments = !matches!(value, Value::NoArguments(_));
    let cut = matches!(value, Value::Arguments(line) if line.cut);
    let mut printed = Vec::new();
    // A table shows - for unknown values, and may cut the end of a line.
    if table != b"-" && !cut {
        printed.push((field.name.to_owned(), text(table)));
    }
    if has_arguments && !cut {
        printed.push((field.key(), text(csv)));
        printed.push((field.key(), of_json(&json)));
    }
    printed
}

/// A text as it is between the quotes of JSON, or the elements of an array as in csv.
fn of_json(json: &str) -> String {
    match serde_json::from_str(json).expect("JSON") {
        Json::String(_) => json[1..json.len() - 1].replace("\\\"", "\""),
        Json::Object(object) => object["escaped"].as_str().expect("a text").to_owned(),
        Json::Array(elements) => {
            let is_text = elements.iter().any(|element| !element.is_number());
            let elements: Vec<_> = elements
                .iter()
                .map(|element| of_json(&element.to_string()))
                .collect();
            elements.join(if is_text { " " } else { "," })
        }
        _ => json.to_owned(),
    }
}

/// For a row of each odd process, over an interval, so that rates are known.
#[test]
fn printed_values_parse_as_filter_literals() {
    let testbed = Testbed::open(&Options::default()).expect("the testbed opens");
    let mut collector = Collector::builder()
        .fields(Fields::all())
        .open()
        .expect("a source");
    let mut lookup = Lookup::new(collector.host(), true).expect("/proc");
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("a snapshot"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let snapshot = collector.snapshot().expect("a snapshot");
    lookup.set_clock(&snapshot);
    let pids: Vec<u32> = testbed
        .processes()
        .iter()
        .map(|process| process.pid)
        .collect();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for change in before.changes(&snapshot) {
        let pid = change.process.pid();
        if !pids.contains(&pid) {
            continue;
        }
        let row = Row {
            change: Some(change),
            ..Row::new(change.process)
        };
        for field in FIELDS {
            // A value that is read from /proc for each row may change at any time.
            let is_moving = ["oom_score", "wchan", "pss", "uss"].contains(&field.name);
            let test = |lookup: &mut Lookup| -> Vec<String> {
                let printed = printed(field, &row, lookup);
                let wrong = printed.into_iter().filter_map(|(name, text)| {
                    compared += 1;
                    let quoted = text.replace('"', "\\\"");
                    let filter = format!("{name} == \"{quoted}\"");
                    match filter.parse::<Filter>() {
                        Ok(parsed) if parsed.admits(&row, lookup) => None,
                        Ok(_) => Some(format!("{pid}: {filter} does not match its row")),
                        Err(error) => Some(error.to_string()),
                    }
                });
                wrong.collect()
            };
            let mut test = test;
            let mut tries = if is_moving { 100 } else { 0 };
            let mut found = test(&mut lookup);
            while !found.is_empty() && tries > 0 {
                found = test(&mut lookup);
                tries -= 1;
            }
            wrong.extend(found);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(40)]
    );
    assert!(compared > 10_000, "only {compared} values were compared");
}
