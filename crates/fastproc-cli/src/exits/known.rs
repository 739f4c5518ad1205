//! Refuses filters of `fastproc exits` that compare fields that are never known of an exited process.

use fastproc::{Cmdline, Fields, Host, difference::Ended, exits::Exit, record::Io};
use fastproc_columns::{Field, Filter, Lookup, Row, Value};

use crate::Failure;

/// The filter compares what is never known.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not known of an exited process; fastproc exits --help names the fields that are")]
struct Unknown(&'static str);

/// Checks that an exited process can have all fields of the filter.
pub fn check(filter: Option<&Filter>, execs: bool, host: &Host) -> Result<(), Failure> {
    let Some(filter) = filter else {
        return Ok(());
    };
    let mut lookup = Lookup::new(host, true)?;
    // A process that executed a program is still in /proc, where fields of no group are read.
    let mut fields = filter.fields().into_iter();
    let unknown = fields.find(|field| {
        // The fields of a cgroup are found by its id, while it exists.
        let may_be_read = execs && field.needs.is_empty() || field.needs == Fields::CGROUP;
        !may_be_read && !is_known(field, &mut lookup)
    });
    match unknown {
        Some(field) => Err(Unknown(field.name).into()),
        None => Ok(()),
    }
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
    use fastproc_columns::{Unit, field};

    use super::*;

    /// Those that the help names.
    const KNOWN: &str = "pid ppid comm cmdline user ruser group rgroup cgroup_id starttime start ended etime time utime \
                         stime guest_time pcpu cutime cstime cminflt cmajflt minflt majflt nvcsw nivcsw vmhwm read_bytes \
                         write_bytes rchar wchar syscr syscw flags status exit_code final state event cgroup container pod_uid";

    #[test]
    fn a_filter_compares_what_an_exited_process_has() {
        let host = Host::read().expect("a machine");
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
            check(Some(&filter), execs, &host)
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
