//! Writes the table of processes of a made-up minute, for tests that other engines read it: `sample FILE`

use std::{error::Error, fs};

use fastproc_history::{
    file::Writer,
    rows::{Cells, Rows},
    table::PROCESSES,
};

/// 2026-03-01T10:00:00Z
const BEGIN: i64 = 1_772_359_200;

/// Ten processes, each with a row in each second.
fn rows() -> Rows {
    let mut rows = Rows::new(&PROCESSES);
    for (pid, second) in (100..110).flat_map(|pid| (0..60).map(move |second| (pid, second))) {
        rows.count += 1;
        for (column, cells) in PROCESSES.columns.iter().zip(&mut rows.columns) {
            match (cells, column.name) {
                (Cells::Numbers(cells), name) => cells.push(match name {
                    "time" => Some((BEGIN + second) * 1_000_000),
                    "gone" => None,
                    "pid" | "start_ns" => Some(pid),
                    _ => Some(pid * second),
                }),
                (Cells::Texts(cells), "name") => cells.push(None),
                (Cells::Texts(cells), _) => {
                    cells.push(Some(format!("na\u{ef}ve-{}", pid - 100).into()));
                }
            }
        }
    }
    rows
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a file")?;
    let mut writer = Writer::new(fs::File::create(path)?, &PROCESSES)?;
    writer.group(&rows())?;
    Ok(writer.finish()?.sync_all()?)
}
