//! Refuses fields in `fastproc exits` that are never known of an exited process.

use fastproc::{Cmdline, Fields, Host, difference::Ended, exits::Exit, record::Io};
use fastproc_columns::{FIELDS, Field, Lookup, Row, Value};

use crate::paragraphs;

/// A field that no exited process has.
#[derive(Debug, thiserror::Error)]
#[error("{name} is not known of an exited process; these fields are:\n{known}")]
pub struct Unknown {
    name: &'static str,
    known: String,
}

/// Checks that an exited process can have all of these fields.
pub fn check(
    mut fields: impl Iterator<Item = &'static Field>,
    execs: bool,
    lookup: &mut Lookup,
) -> Result<(), Unknown> {
    let known = known(execs, lookup);
    let is_known = |field: &Field| known.iter().any(|known| known.name == field.name);
    let Some(unknown) = fields.find(|field| !is_known(field)) else {
        return Ok(());
    };
    let known = known.iter().map(|field| field.name);
    Err(Unknown {
        name: unknown.name,
        known: paragraphs::wrap(" ".into(), known, 2, 78),
    })
}

/// The fields that an exited process can have; all where that cannot be found out.
pub fn listed() -> Vec<&'static Field> {
    let lookup = Host::read().and_then(|host| Lookup::new(&host, true));
    lookup.map_or_else(
        |_| FIELDS.iter().collect(),
        |mut lookup| known(false, &mut lookup),
    )
}

/// The fields that an exited process can have, and with `execs` one that executes a program.
fn known(execs: bool, lookup: &mut Lookup) -> Vec<&'static Field> {
    let may_be_known = |field: &&Field| {
        // A process that executed a program is still in /proc, where fields of no group are read. The fields of a cgroup
        // are found by its id, while it exists.
        let may_be_read = execs && field.needs.is_empty() || field.needs == Fields::CGROUP;
        may_be_read || is_known(field, lookup)
    };
    FIELDS.iter().filter(may_be_known).collect()
}

/// Whether the field has a value for an exit with all that an exit can have.
fn is_known(field: &Field, lookup: &mut Lookup) -> bool {
    // Its process id is 0, which no file in /proc belongs to.
    let mut exit = Exit::default();
    exit.ppid = Some(1);
    exit.end_ns = Some(1);
    exit.status = Some(0);
    exit.io = Some(Io::default());
    let record = exit.to_record();
    let cmdline = Cmdline {
        bytes: b"sh",
        cut: false,
    };
    let row = Row::ended(Ended::whole(&exit).change(&record), Some(cmdline));
    !matches!(field.value(&row, lookup), Value::Unknown)
}

#[cfg(test)]
mod tests {
    use fastproc_columns::{Filter, Unit, field};

    use super::*;

    /// Those that the help names.
    const KNOWN: &str = "pid ppid comm cmdline cmdline_cut user ruser group rgroup cgroup_id starttime start ended etime time utime \
                         stime guest_time pcpu cutime cstime cminflt cmajflt minflt majflt nvcsw nivcsw vmhwm read_bytes \
                         write_bytes rchar wchar syscr syscw flags status exit_code final state event cgroup container pod_uid";

    #[test]
    fn a_filter_compares_what_an_exited_process_has() {
        let checked = |name: &str, execs| {
            let text = match field::find(name).map(|field| field.unit) {
                Ok(Unit::Text) => format!("pid > 1 || {name} =~ x"),
                Ok(Unit::Truth) => name.to_owned(),
                Ok(Unit::Start | Unit::Date) => {
                    format!("{name} > 2026-01-01")
                }
                Ok(Unit::Time) => format!("{name} > 1s"),
                _ => format!("{name} > 1"),
            };
            let filter: Filter = text.parse().unwrap_or_else(|error| panic!("{error}"));
            let host = Host::read().expect("the host is read");
            let mut lookup = Lookup::new(&host, true).expect("its users are read");
            check(filter.fields().into_iter(), execs, &mut lookup)
        };
        for field in KNOWN.split_whitespace().filter(|&field| field != "cmdline") {
            assert!(checked(field, false).is_ok(), "{field}");
        }
        for field in [
            "rss",
            "vsize",
            "session",
            "tty",
            "exe",
            "oom_score",
            "suid",
            "nice",
            "num_threads",
        ] {
            let error = checked(field, false).expect_err(field).to_string();
            assert!(
                error.starts_with(&format!("{field} is not known")),
                "{error}"
            );
        }
        assert!(checked("exe", true).is_ok() && checked("rss", true).is_err());
    }
}
