//! Writes the table of processes of a made-up quarter of an hour, for tests that other engines read it:
//! `sample FILE [PROCESSES [SECONDS]]`
//!
//! A twentieth of the processes has a row each second, mostly the same ones.

use std::{error::Error, fs};

use fastproc_history::{
    file::Writer,
    rows::{Cells, Rows},
    table::PROCESSES,
};

const SECOND: i64 = 1_000_000;
/// 2026-03-01T10:00:00Z
const BEGIN: i64 = 1_772_359_200;

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as i64) % limit
    }
}

/// What a value grows by, at most, each second that a process runs. `None` for a gauge.
fn growth(column: &str) -> Option<i64> {
    Some(match column {
        "utime_ns" | "stime_ns" | "run_ns" => 20_000_000,
        "run_delay_ns" => 300_000,
        "timeslices" | "voluntary_switches" => 40,
        "involuntary_switches" | "minor_faults" => 6,
        "read_calls_bytes" | "write_calls_bytes" => 9_000,
        "major_faults" | "read_bytes" | "write_bytes" | "children_utime_ns"
        | "children_stime_ns" => 1,
        _ => return None,
    })
}

/// The rows of all processes, by process and time.
fn rows(processes: i64, seconds: i64) -> Rows {
    let mut random = Random(7);
    let mut rows = Rows::new(&PROCESSES);
    for process in 0..processes {
        let often = process % 27 == 0;
        let mut values: Vec<i64> = (0..PROCESSES.columns.len())
            .map(|_| random.below(1 << 20))
            .collect();
        for second in 0..seconds {
            if second > 0 && !(often && random.below(100) < 97) && random.below(75) > 0 {
                continue;
            }
            rows.count += 1;
            for ((column, value), cells) in PROCESSES
                .columns
                .iter()
                .zip(&mut values)
                .zip(&mut rows.columns)
            {
                let constant = match column.name {
                    "time" => Some((BEGIN + second) * SECOND),
                    "boot_time" => Some(1_772_000_000 * SECOND),
                    "pid" => Some(100 + process),
                    "start_ns" => Some(process * 77_777_777),
                    "swap" | "locked" | "nice" | "realtime_priority" | "policy" => Some(0),
                    "priority" => Some(20),
                    "threads" => Some(1 + process % 9),
                    "state_bits" => Some(random.below(8) / 7),
                    "processor" => Some(random.below(8)),
                    _ => None,
                };
                match growth(column.name) {
                    Some(most) => *value += random.below(most + 1),
                    // A gauge moves now and then.
                    None if column.unit == "bytes" && random.below(3) == 0 => {
                        *value = (*value + random.below(64) - 30).max(0);
                    }
                    None => {}
                }
                match cells {
                    Cells::Numbers(cells) => cells.push(match column.name {
                        "gone" => None,
                        _ => constant.or(Some(if column.unit == "bytes" {
                            *value << 12
                        } else {
                            *value
                        })),
                    }),
                    Cells::Texts(cells) => cells.push(match column.name {
                        "boot_id" => Some("c0ffee00-0000-4000-8000-000000000000".into()),
                        "comm" => Some(format!("na\u{ef}ve-{}", process % 300).into()),
                        _ => None,
                    }),
                }
            }
        }
    }
    rows
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("name a file")?;
    let mut number = |usual| {
        let argument = arguments.next();
        let argument = argument.and_then(|argument| argument.into_string().ok());
        argument.map_or(Ok(usual), |argument| argument.parse())
    };
    let mut writer = Writer::new(fs::File::create(path)?, &PROCESSES)?;
    writer.group(&rows(number(4000)?, number(900)?))?;
    Ok(writer.finish()?.sync_all()?)
}
