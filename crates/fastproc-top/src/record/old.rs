//! The layout in the description of the first recordings.

use std::{collections::HashMap, fmt::Write};

use fastproc::schema::{self, Structure};

/// Converts a description of a layout to the form of [`schema::layout`]. The first recordings had a line with path,
/// offset and size for each field: a field of the same name and size counts as the same.
pub fn described(text: &str) -> String {
    if text.starts_with("structure\t") {
        return text.to_owned();
    }
    let mut described = String::new();
    let mut known = HashMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [name, size] => {
                let (name, structure) = match name {
                    "record" => ("process", schema::RECORD),
                    "thread" => ("thread", schema::THREAD),
                    "exit" => ("exit", schema::EXIT),
                    other => (other, schema::RECORD),
                };
                known = today(name, structure);
                // Writing to a string cannot fail.
                let _ = writeln!(described, "structure\t{name}\t{size}");
            }
            [path, offset, size] => {
                if let Some((today, _)) = known.get(path).filter(|(_, today)| *today == size) {
                    let _ = writeln!(described, "field\t{path}\t{offset}\t{today}");
                }
            }
            _ => {}
        }
    }
    described
}

/// The type, unit and group of each field, and its size.
fn today(name: &str, structure: &Structure) -> HashMap<String, (String, String)> {
    let start = format!("structure\t{name}\t");
    let lines = schema::layout().lines();
    let lines = lines.skip_while(|line| !line.starts_with(&start)).skip(1);
    let lines = lines.take_while(|line| line.starts_with("field\t"));
    let fields = lines.zip(structure.fields()).filter_map(|(line, field)| {
        let described = line.splitn(4, '\t').nth(3)?;
        Some((
            field.path,
            (described.to_owned(), field.type_of.size().to_string()),
        ))
    });
    fields.collect()
}
