//! What threads waited for: rows of `waits`, counted.

use std::{cmp::Reverse, collections::HashMap, io::Write};

use fastproc_history::{
    read::{Error, History},
    table::WAITS,
};
use serde_json::json;

use crate::failure::Failure;

/// State, kernel function, system call and name.
type What = (String, Option<String>, Option<i64>, String);

/// Writes how often threads waited for what, in a time in microseconds since 1970. Returns whether there is anything.
pub fn write(
    history: &mut History,
    time: (i64, i64),
    as_json: bool,
    to: &mut impl Write,
) -> Result<bool, Failure> {
    if time.1 <= time.0 {
        return Err(Error::Backwards.into());
    }
    let mut counts: HashMap<What, u64> = HashMap::new();
    let columns = ["state", "wait_channel", "system_call", "comm"];
    history.read(&WAITS, time, &columns, |rows| {
        for row in 0..rows.count {
            let text = |name: &str| Some(rows.texts(name).get(row)?.as_ref()?.to_string());
            let call = rows.numbers("system_call").get(row).copied().flatten();
            let [state, comm] = ["state", "comm"].map(|name| text(name).unwrap_or_default());
            *counts
                .entry((state, text("wait_channel"), call, comm))
                .or_default() += 1;
        }
    })?;
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|(one, times), (other, more)| {
        (Reverse(times), one).cmp(&(Reverse(more), other))
    });
    if as_json {
        let rows = counts.iter().map(|((state, channel, call, comm), times)| {
            json!({"times": times, "state": state, "wait_channel": channel, "system_call": call, "comm": comm})
        });
        let rows: Vec<_> = rows.collect();
        writeln!(to, "{}", json!({ "waits": rows }))?;
        return Ok(!counts.is_empty());
    }
    if !counts.is_empty() {
        writeln!(to, "{:>9} STATE SYSCALL {:<32} COMM", "TIMES", "WCHAN")?;
    }
    for ((state, channel, call, comm), times) in &counts {
        let call = call.map_or_else(|| "-".into(), |call| call.to_string());
        let channel = channel.as_deref().unwrap_or("-");
        let line = format!("{times:>9} {state:<5} {call:>7} {channel:<32} {comm}");
        // Names are chosen by users.
        writeln!(to, "{}", fastproc::log_line(&line))?;
    }
    Ok(!counts.is_empty())
}
