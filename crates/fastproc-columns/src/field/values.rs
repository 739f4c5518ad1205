//! Values of columns that take more than one line of code.

use std::ffi::{CStr, CString};

use fastproc::{DetailError, Process, files::Fields as FileFields};
use nix::sys::signal::Signal;

use crate::{
    number,
    open_files::Open,
    row::{Event, Lookup, Row},
    value::{
        Value::{self, Real, Signed, Unknown, Unsigned},
        policy_name,
    },
};

/// The process has executed no program since it was forked.
const PF_FORKNOEXEC: u32 = 0x40;

pub(super) fn lifetime_share<'x>(row: &Row<'_>, lookup: &Lookup, cpu_ns: u64) -> Value<'x> {
    Real(lookup.share_since(row.start_ns(), cpu_ns) * 100.0)
}

fn nanoseconds(row: &Row<'_>, lookup: &Lookup) -> Option<u64> {
    let Some(exit) = row.exit() else {
        return Some(lookup.now_ns.saturating_sub(row.start_ns()));
    };
    exit.lifetime().map(|lifetime| lifetime.as_nanos() as u64)
}

pub(super) fn lifetime<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    Value::known(nanoseconds(row, lookup), Unsigned)
}

/// The same for a table: of a process that lives, in whole seconds.
pub(super) fn elapsed<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let ns = nanoseconds(row, lookup);
    let Some(ns) = ns.filter(|_| row.exit().is_none()) else {
        return Value::known(ns, Unsigned);
    };
    lookup.text.clear();
    number::write_time(ns - ns % 1_000_000_000, &mut lookup.text);
    let whole = lookup.text.split(|&byte| byte == b'.').next();
    Value::known(whole, Value::Text)
}

pub(super) fn name<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    if let Some(thread) = row.other_thread() {
        let end = thread.comm.iter().position(|&byte| byte == 0);
        return Value::Text(&thread.comm[..end.unwrap_or(thread.comm.len())]);
    }
    lookup.text.clear();
    lookup.text.extend_from_slice(&row.process.name());
    Value::Text(&lookup.text)
}

pub(super) fn command_line<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let Lookup { details, text, .. } = lookup;
    match row.event {
        Some(Event::Exit(exit, line)) => {
            // A process that executed nothing has the line that a snapshot showed, whoever forked it.
            let line = if exit.flags & PF_FORKNOEXEC == 0 {
                line.or_else(|| details.earlier_cmdline(row.process))
            } else {
                details.earlier_cmdline(row.process).or(line)
            };
            return Value::known(line, Value::Arguments);
        }
        Some(Event::Exec(exec)) => return Value::known(exec.cmdline, Value::Arguments),
        None => {}
    }
    match details.cmdline(row.process) {
        Ok(line) if line.bytes.is_empty() => {
            text.clear();
            text.extend_from_slice(&row.process.name());
            Value::NoArguments(text)
        }
        Ok(line) => Value::Arguments(line),
        Err(_) => Unknown,
    }
}

/// Of an event whose line is not known, the name.
pub(super) fn command_line_or_name<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let is_unknown = row.event.is_some() && matches!(command_line(row, lookup), Unknown);
    if !is_unknown {
        return command_line(row, lookup);
    }
    lookup.text.clear();
    lookup.text.extend_from_slice(&row.process.name());
    Value::NoArguments(&lookup.text)
}

pub(super) fn command_line_cut<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    match command_line(row, lookup) {
        Value::Arguments(line) => Value::Truth(line.cut),
        Value::NoArguments(_) => Value::Truth(false),
        _ => Unknown,
    }
}

pub(super) fn status<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let Some(exit) = row.exit() else {
        return Unknown;
    };
    let text = &mut lookup.text;
    text.clear();
    match (exit.code(), exit.signal()) {
        (Some(code), _) => number::write(code as u64, text),
        (None, Some(signal)) => match Signal::try_from(signal) {
            Ok(signal) => {
                let name = signal.as_str();
                text.extend_from_slice(name.strip_prefix("SIG").unwrap_or(name).as_bytes());
            }
            Err(_) => text.extend_from_slice(format!("signal {signal}").as_bytes()),
        },
        (None, None) => return Unknown,
    }
    Value::Text(text)
}

/// The terminal's name, or `?`, as in ps(1).
pub(super) fn terminal<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let process = row.process;
    let name = lookup
        .terminals
        .name(process.pid(), process.identity().tty_nr);
    Value::Text(name.map_or(b"?", str::as_bytes))
}

/// The letters of ps(1), in the order of ps(1).
pub(super) fn state_as_in_ps<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let process = row.process;
    let (Some(scheduling), Some(memory)) = (process.scheduling(), process.memory()) else {
        return Unknown;
    };
    let nice = row.thread.map_or(scheduling.nice, |thread| thread.nice);
    let identity = process.identity();
    let marks = [
        (nice < 0, b'<'),
        (nice > 0, b'N'),
        (memory.locked > 0, b'L'),
        (identity.session == identity.tgid, b's'),
        (identity.num_threads > 1, b'l'),
        (
            identity.tpgid > 0 && identity.tpgid as u32 == identity.pgrp,
            b'+',
        ),
    ];
    lookup.text.clear();
    lookup.text.push(row.state().letter());
    lookup.text.extend(
        marks
            .iter()
            .filter(|(holds, _)| *holds)
            .map(|&(_, mark)| mark),
    );
    Value::Text(&lookup.text)
}

pub(super) fn scheduling_class<'x>(row: &'x Row<'_>, _: &'x mut Lookup) -> Value<'x> {
    Value::known(policy(row), |policy| {
        Value::Text(policy_name(policy.into()).as_bytes())
    })
}

pub(super) fn policy(row: &Row<'_>) -> Option<u32> {
    let of_process = row.process.scheduling().map(|scheduling| scheduling.policy);
    row.thread.map(|thread| thread.policy).or(of_process)
}

pub(super) fn nice(row: &Row<'_>) -> Option<i32> {
    let of_process = row.process.scheduling().map(|scheduling| scheduling.nice);
    row.thread.map(|thread| thread.nice).or(of_process)
}

pub(super) fn flags(row: &Row<'_>) -> u32 {
    let of_process = row.process.identity().flags;
    row.thread.map_or(of_process, |thread| thread.flags)
}

/// As in ps(1): whole seconds of the calendar at boot, plus whole seconds after it.
pub(super) fn started<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    Signed(lookup.boot_seconds + (row.start_ns() / 1_000_000_000) as i64)
}

/// A file of `/proc/PID`, read now.
fn file<'x>(row: &Row<'_>, lookup: &'x mut Lookup, path: &CStr) -> Result<&'x [u8], DetailError> {
    lookup.details.file(row.process, path)
}

pub(super) fn waiting_in<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let of_thread = row
        .other_thread()
        .and_then(|thread| CString::new(format!("task/{}/wchan", thread.tid)).ok());
    let Lookup { details, text, .. } = lookup;
    text.clear();
    match details.file(row.process, of_thread.as_deref().unwrap_or(c"wchan")) {
        Ok(function) => text.extend_from_slice(function),
        Err(_) => return Unknown,
    }
    match text.as_slice() {
        // The kernel prints 0 to users without access, too.
        b"0" if details.may_trace(row.process) => Value::Text(b"-"),
        b"" | b"0" => Unknown,
        function => Value::Text(function),
    }
}

/// The sum of these lines of `/proc/PID/smaps_rollup`, which are in KiB.
pub(super) fn rolled_up<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup, names: &[&str]) -> Value<'x> {
    let Ok(text) = file(row, lookup, c"smaps_rollup") else {
        return Unknown;
    };
    let mut sum = None;
    for line in String::from_utf8_lossy(text).lines() {
        let mut words = line.split_whitespace();
        let name = words.next().and_then(|word| word.strip_suffix(':'));
        if name.is_some_and(|name| names.contains(&name)) {
            let kibibytes = words.next().and_then(|word| word.parse::<u64>().ok());
            sum = kibibytes.map(|kibibytes| sum.unwrap_or(0) + kibibytes * 1024);
        }
    }
    Value::known(sum, Unsigned)
}

/// The number that a file consists of.
pub(super) fn number_in<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup, path: &CStr) -> Value<'x> {
    let text = file(row, lookup, path).ok();
    let number = text.and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
    Value::known(number, Signed)
}

/// A number of descriptors.
pub(super) fn opened<'x>(
    row: &'x Row<'_>,
    lookup: &'x mut Lookup,
    number: fn(&Open) -> Option<u32>,
) -> Value<'x> {
    let open = lookup.open_files.get(row.process, FileFields::empty());
    Value::known(open.and_then(number), Into::into)
}

pub(super) fn of_gpus<'x>(
    row: &'x Row<'_>,
    lookup: &'x mut Lookup,
    number: fn(&Open) -> Option<Value<'static>>,
) -> Value<'x> {
    let open = lookup.open_files.get(row.process, FileFields::GPUS);
    open.and_then(number).unwrap_or(Unknown)
}

pub(super) fn listening<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let open = lookup.open_files.get(row.process, FileFields::SOCKETS);
    let ports = open.and_then(|open| open.ports.as_deref());
    Value::known(ports, Value::Numbers)
}

pub(super) fn label<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    match file(row, lookup, c"attr/current") {
        Ok(label) if !label.is_empty() => {
            let last = label.iter().rposition(|byte| !matches!(byte, 0 | b'\n'));
            Value::Text(&label[..last.map_or(0, |last| last + 1)])
        }
        _ => Unknown,
    }
}

/// The number in a link such as `ipc:[4026531839]`.
pub(super) fn namespace_id<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup, path: &CStr) -> Value<'x> {
    let link = lookup.details.link(row.process, path).ok();
    let number = link.and_then(|link| {
        let (_, number) = std::str::from_utf8(link).ok()?.split_once(":[")?;
        number.strip_suffix(']')?.parse().ok()
    });
    Value::known(number, Unsigned)
}

pub(super) fn numbers(lookup: &mut Lookup, numbers: impl Iterator<Item = u32>) -> Value<'_> {
    lookup.numbers.clear();
    lookup.numbers.extend(numbers);
    Value::Numbers(&lookup.numbers)
}

/// The id in the pid namespace of `/proc`, and the ids in the nested ones.
pub(super) fn nested<'x>(
    process: Process<'_>,
    lookup: &'x mut Lookup,
    outermost: u32,
    inner: impl Iterator<Item = u32>,
) -> Value<'x> {
    if process.namespaces().is_none() {
        return Unknown;
    }
    numbers(lookup, std::iter::once(outermost).chain(inner))
}

#[cfg(test)]
mod tests {
    use fastproc::{Cmdline, Collector, SourceKind, difference::Ended, exits::Exit};

    use super::*;

    #[test]
    fn an_exit_has_the_command_line_that_the_snapshot_before_showed() {
        let opened = Collector::builder().source(Some(SourceKind::Procfs)).open();
        let mut collector = opened.expect("/proc is there");
        let mut lookup = Lookup::new(collector.host(), true).expect("/proc is there");
        let snapshot = collector.snapshot().expect("a snapshot");
        let own = snapshot
            .get(std::process::id())
            .expect("the process is shown");
        let mut exit = Exit::default();
        exit.pid = own.pid();
        (exit.start_ns, exit.comm) = (own.identity().start_ns, own.identity().comm);
        let shown = |exit: &Exit, recorded: Option<&'static [u8]>, lookup: &mut Lookup| {
            let record = exit.to_record();
            let line = recorded.map(|bytes| Cmdline { bytes, cut: true });
            let row = Row::ended(Ended::whole(exit).change(&record), line);
            match command_line(&row, lookup) {
                Value::Arguments(line) => Some(line.bytes.to_vec()),
                _ => None,
            }
        };
        let line = lookup.details.cmdline(own).expect("readable").bytes;
        let line = Some(line.to_vec());
        lookup.details.renew();
        assert_eq!(
            shown(&exit, None, &mut lookup),
            None,
            "execs are not recorded"
        );
        lookup.details.keep_earlier_cmdlines();
        lookup.details.cmdline(own).expect("readable");
        lookup.details.renew();
        assert_eq!(shown(&exit, None, &mut lookup), line);
        // Its last exec is newer than that snapshot, if it was recorded.
        let executed = Some(b"executed".to_vec());
        assert_eq!(shown(&exit, Some(b"executed"), &mut lookup), executed);
        exit.flags = PF_FORKNOEXEC;
        assert_eq!(shown(&exit, Some(b"of its parent"), &mut lookup), line);
        // Another program, since an exec gives another name.
        exit.comm[0] ^= 1;
        assert_eq!(shown(&exit, None, &mut lookup), None);
        exit.comm[0] ^= 1;
        lookup.details.forget_earlier_cmdlines();
        assert_eq!(shown(&exit, None, &mut lookup), None, "execs were lost");
    }
}
