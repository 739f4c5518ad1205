//! The report of `fastproc doctor` as text: a line for each topic; the first says what to do.

use std::io::{self, Write};

use super::{CountersReport, Privileges, Report, Source};
use crate::colour::Colours;

/// The advice if all is well.
const NOTHING: &str = "nothing";

/// Writes at most a dozen lines.
pub fn print(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let colours = Colours::new();
    let mut line = |name: &str, text: String| {
        let name = colours.heading(&format!("{name:<12}"));
        writeln!(out, "{name}{text}")
    };
    let mut told = Told::default();
    let advice = advice(report);
    let is_needed = advice[0] != NOTHING;
    for (at, advice) in advice.into_iter().enumerate() {
        let advice = if is_needed {
            colours.advice(&advice)
        } else {
            advice
        };
        line(if at == 0 { "to do" } else { "" }, advice)?;
    }
    line(
        "kernel",
        format!("{} ({})", report.kernel, report.architecture),
    )?;
    line("privileges", privileges(&report.privileges))?;
    line("processes", processes(report))?;
    if report.one_shot.source == "procfs" && report.source != "procfs" {
        let text = "a single ps reads /proc: for so few processes that is cheaper than loading BPF programs";
        line("", text.into())?;
    }
    // The service has its own line.
    let refused = |source: &&Source| !source.usable && source.source != "service";
    for source in report.sources.iter().filter(refused) {
        let mut reason = told.why(source.error.as_deref(), ": ");
        if reason.is_empty() {
            reason += ", for the same reason";
        }
        line("", format!("not {}{reason}", source.source))?;
    }
    line("service", service(report))?;
    line("memory", resident_set(report).into())?;
    line("records", records(report))?;
    line("counters", counters(&report.counters, &mut told))?;
    line("exits", exits(report, &mut told))?;
    line("cgroups", cgroups(report, &mut told))?;
    line("delays", delays(report.delay_accounting).into())
}

/// The reasons that are in the report so far.
#[derive(Default)]
struct Told(Vec<String>);

impl Told {
    /// The reason in an error, after this text; nothing if the report has it.
    fn why(&mut self, error: Option<&str>, before: &str) -> String {
        let (reason, _) = parts(error.unwrap_or_default());
        if reason.is_empty() || self.0.iter().any(|told| told == reason) {
            return String::new();
        }
        self.0.push(reason.into());
        format!("{before}{reason}")
    }
}

/// What is wrong, and what helps. The JSON has the full explanation.
fn parts(error: &str) -> (&str, Option<&str>) {
    let line = error.lines().next().unwrap_or_default();
    line.split_once("; ")
        .map_or((line, None), |(reason, advice)| (reason, Some(advice)))
}

fn cgroups(report: &Report, told: &mut Told) -> String {
    let cgroups = &report.cgroups;
    let error = cgroups.error.as_deref();
    let Some(source) = cgroups.source else {
        return "not read".to_owned() + &told.why(error, ": ");
    };
    let mut text = format!("{} from {source}", cgroups.count);
    if !cgroups.absent_controllers.is_empty() {
        let absent = cgroups.absent_controllers.join(", ");
        text = text + "; not on version 2, so not known: " + &absent;
    }
    text + &told.why(error, "; not bpf: ")
}

fn privileges(privileges: &Privileges) -> String {
    let capabilities = [
        ("CAP_BPF", privileges.cap_bpf),
        ("CAP_PERFMON", privileges.cap_perfmon),
        ("CAP_SYS_PTRACE", privileges.cap_sys_ptrace),
        ("CAP_SYS_ADMIN", privileges.cap_sys_admin),
    ];
    let held = capabilities.iter().filter(|(_, held)| *held);
    let held: Vec<&str> = held.map(|(name, _)| *name).collect();
    let held = if held.is_empty() {
        "no capability that fastproc needs".into()
    } else {
        held.join(", ")
    };
    format!("uid {}, {held}", privileges.uid)
}

fn processes(report: &Report) -> String {
    let used = report
        .sources
        .iter()
        .find(|source| source.source == report.source);
    let load = used.and_then(|source| source.load_ms);
    let load = load.map_or(String::new(), |ms| format!(", loaded in {ms:.0} ms"));
    let (source, missed) = (report.source, report.missed);
    let missed = match missed {
        0 => String::new(),
        missed => format!(" ({missed} from /proc)"),
    };
    let shown = format!("all {} from {source}{missed}{load}", report.processes);
    let is_other = |source: &&Source| source.usable && source.source != report.source;
    let others = report.sources.iter().filter(is_other);
    let others: Vec<_> = others.map(|source| source.source).collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("; also usable: {}", others.join(", "))
    };
    shown + &others
}

fn service(report: &Report) -> String {
    let service = &report.service;
    let socket = service.socket.as_deref().unwrap_or("any socket");
    let (Some(version), Some(pid), Some(source)) = (&service.version, service.pid, &service.source)
    else {
        return format!("none answers at {socket}");
    };
    let shares = match (service.shares, &service.error) {
        (Some(shares), _) => format!("shows this user {shares}"),
        (None, error) => {
            let error = error.as_deref().unwrap_or("no reason given");
            format!("refuses: {}", error.lines().next().unwrap_or_default())
        }
    };
    let exporter = service
        .exporter
        .map(|pid| format!(", and {pid} serves metrics"));
    let exporter = exporter.unwrap_or_default();
    format!("{socket}: version {version}, process {pid}{exporter}, from {source}; {shares}")
}

fn resident_set(report: &Report) -> &'static str {
    match report.calibration.exact_rss {
        Some(true) => "resident sets are exact",
        Some(false) => "resident sets are approximate, as this kernel prints them",
        None => "resident sets are as this kernel prints them",
    }
}

fn records(report: &Report) -> String {
    let records = &report.records;
    match records.reason {
        _ if records.disproven > 0 => format!(
            "{} that were proven not to have changed had changed: set FASTPROC_KEEP_RECORDS=0, and report this",
            records.disproven
        ),
        None => "kept while their processes do not change".into(),
        Some(reason) => format!("read at each snapshot: {reason}"),
    }
}

fn counters(counters: &CountersReport, told: &mut Told) -> String {
    if counters.error.is_some() {
        return "from the kernel's files".to_owned() + &told.why(counters.error.as_deref(), ": ");
    }
    let lines = counters.lines.iter();
    let from_text = lines.filter(|line| line.from == "text").count();
    let all = counters.lines.len();
    format!("{all} lines, {from_text} of them from the kernel's text; --counters lists them")
}

fn exits(report: &Report, told: &mut Told) -> String {
    match report.exits.error.as_deref() {
        None => "recorded".into(),
        Some(_) if report.exits.by_service => "recorded by the service, without execs".into(),
        error => "not recorded".to_owned() + &told.why(error, ": "),
    }
}

fn delays(accounting: Option<bool>) -> &'static str {
    match accounting {
        Some(true) => "delay accounting is on, and known of processes that began since",
        Some(false) => {
            "delay accounting is off, so delay_* of ps is unknown; for processes that begin later: sysctl kernel.task_delayacct=1"
        }
        None => "this kernel has no switch for delay accounting",
    }
}

fn advice(report: &Report) -> Vec<String> {
    let served = report.service.shares.is_some();
    if served || report.source.starts_with("bpf") {
        return vec![NOTHING.into()];
    }
    let refused = report.sources.iter().find(|source| !source.usable);
    let error = refused.and_then(|source| source.error.as_deref());
    let (reason, advice) = parts(error.unwrap_or_default());
    let advice = advice.unwrap_or(reason);
    let privileges = &report.privileges;
    if privileges.cap_bpf && privileges.cap_perfmon {
        let until = "until then fastproc reads /proc, with the same values";
        return vec![advice.into(), until.into()];
    }
    let start = "start the service, for all users; as root: fastproc serve --no-metrics --socket";
    vec![start.into(), format!("or {advice}")]
}

/// A line for each counter of the machine.
pub fn print_counters(out: &mut impl Write, counters: &CountersReport) -> io::Result<()> {
    let knob = match (&counters.error, counters.latency_knob) {
        (Some(_), _) => "has no effect: the kernel prints the whole file",
        (None, true) => "works",
        (None, false) => "has no effect here",
    };
    let symbols = if counters.symbols {
        "visible"
    } else {
        "hidden"
    };
    writeln!(out, "symbols {symbols}; --stat-irqs-latency {knob}")?;
    for line in &counters.lines {
        let proven = match (line.from, line.nonzero) {
            ("text", _) => "",
            (_, true) => "  seen non-zero",
            (_, false) => "  always zero",
        };
        writeln!(
            out,
            "  {:<7} {:<32} {}{proven}",
            line.file, line.line, line.route
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CounterLine;

    #[test]
    fn a_reason_is_told_once_and_without_its_advice() {
        let mut told = Told::default();
        let error = "a capability is missing; run as root\nthe log";
        let texts = [error, "it is old", error].map(|error| told.why(Some(error), ": "));
        assert_eq!(texts, [": a capability is missing", ": it is old", ""]);
    }

    #[test]
    fn names_the_capabilities_that_are_held() {
        let held = Privileges {
            uid: 5,
            cap_bpf: true,
            cap_perfmon: false,
            cap_sys_ptrace: true,
            cap_sys_admin: false,
        };
        assert_eq!(privileges(&held), "uid 5, CAP_BPF, CAP_SYS_PTRACE");
    }

    #[test]
    fn counts_the_lines_that_come_from_the_text() {
        let line = |from| CounterLine {
            file: "stat",
            line: "ctxt".into(),
            from,
            route: String::new(),
            nonzero: true,
        };
        let report = CountersReport {
            available: true,
            error: None,
            symbols: true,
            latency_knob: true,
            lines: ["bpf", "bpf", "text"].map(line).into(),
        };
        assert!(counters(&report, &mut Told::default()).starts_with("3 lines, 1 of them from"));
    }
}
