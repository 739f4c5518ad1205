//! The metrics of `node_exporter`: CPU, stat, vmstat, softirqs, interrupts, processes, and those of other files.

use super::{
    cpu::{self, Cpus},
    groups,
    node::{self, LeftOut, Machine, NodeMetrics, Switches},
    own,
    scrapes::{self, Scrapes},
};
use crate::{
    exposition::{Exposition, Family, Kind, Value, escape},
    names,
};
use fastproc::{
    Process, Snapshot,
    counters::{Counters, Error, MachineFile, Want},
    difference::PerProcess,
    proc_root,
    record::State,
    text::{interrupts::Interrupts, softirqs},
};

super::families! {
    INTR = "node_intr_total" Counter &[],
        "Interrupts. --collector.stat, as the next.";
    CTXT = "node_context_switches_total" Counter &[],
        "Context switches.";
    FORKS = "node_forks_total" Counter &[],
        "Forks, threads included.";
    BTIME = "node_boot_time_seconds" Gauge &[],
        "When the machine was booted, since 1970.";
    RUNNING = "node_procs_running" Gauge &[],
        "Threads that run, or are ready to.";
    BLOCKED = "node_procs_blocked" Gauge &[],
        "Threads that wait for I/O.";
    SOFTIRQS = "node_softirqs_total" Counter &["vector"],
        "Softirqs by kind. --collector.stat.softirq";
    INTERRUPTS = "node_interrupts_total" Counter &["cpu", "type", "info", "devices"],
        "Interrupts by CPU and line. --collector.interrupts";
    VMSTAT = "node_vmstat_*" Untyped &[],
        "A field of /proc/vmstat. --collector.vmstat, those that --collector.vmstat.fields matches.";
    PROC_THREADS = "node_processes_threads" Gauge &[],
        "Threads. --collector.processes, as the next.";
    PROC_MAX_THREADS = "node_processes_max_threads" Gauge &[],
        "Limit of threads (kernel.threads-max).";
    PROC_THREADS_STATE = "node_processes_threads_state" Gauge &["thread_state"],
        "Threads by the letter of their state.";
    PROC_STATE = "node_processes_state" Gauge &["state"],
        "Processes by the letter of their state.";
    PROC_PIDS = "node_processes_pids" Gauge &[],
        "Processes.";
    PROC_MAX = "node_processes_max_processes" Gauge &[],
        "Limit of ids (kernel.pid_max).";
}

/// The filter is not a regular expression.
#[derive(Clone, Debug, thiserror::Error)]
#[error("this is not a regular expression")]
pub struct WrongFilter(#[from] regex::Error);

/// All families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    let mut families = [cpu::ALL, ALL].concat();
    families.extend(node::families());
    families.extend_from_slice(scrapes::ALL);
    families
}

/// Reads the machine's counters, and writes them.
#[derive(Debug)]
pub struct HostMetrics {
    reader: Counters,
    switches: Switches,
    node: NodeMetrics,
    scrapes: Scrapes,
    /// Names of softirqs for their labels.
    softirqs: Vec<String>,
    /// Reported lines of vmstat with their names, and the number of all lines.
    vmstat: Vec<(usize, String)>,
    vmstat_lines: usize,
    interrupts: Option<Interrupts>,
    cpus: Cpus,
    processes: Processes,
    /// Number of threads and state of each process.
    briefs: PerProcess<(u32, State)>,
    limits: Option<(u64, u64)>,
}

/// Counts of processes and threads by state.
#[derive(Debug, Default)]
struct Processes {
    pids: u64,
    threads: u64,
    states: [u64; STATES.len()],
    thread_states: [u64; STATES.len()],
}

/// The letters of the states, in their order.
const STATES: &[u8; 9] = b"RSDTtXZPI";

impl HostMetrics {
    /// Nothing is read yet. `others` are further families of the same text.
    pub fn new(reader: Counters, switches: Switches, machine: Machine, others: &[Family]) -> Self {
        let own = [groups::ALL, &families(), own::ALL, others].concat();
        Self {
            reader,
            node: NodeMetrics::new(switches.clone(), machine, &own),
            scrapes: Scrapes::default(),
            switches,
            softirqs: Vec::new(),
            vmstat: Vec::new(),
            vmstat_lines: 0,
            interrupts: None,
            cpus: Cpus::default(),
            processes: Processes::default(),
            briefs: PerProcess::new(),
            limits: None,
        }
    }

    /// When the machine was booted, in seconds since 1970, as last read.
    pub fn btime(&self) -> u64 {
        self.reader.sample().stat.btime
    }

    /// Reads the counters, always with the time of boot.
    pub fn collect(&mut self) -> Result<(), Error> {
        let has = |collector| self.switches.has(collector);
        let mut want = Want::STAT;
        if has("vmstat") {
            want |= Want::VMSTAT;
        }
        self.scrapes.begin();
        self.node.collect(&mut self.scrapes);
        let first = match (has("cpu"), has("stat") || has("stat.softirq")) {
            (true, _) => "cpu",
            (_, true) => "stat",
            _ => "vmstat",
        };
        self.scrapes.collect(first, || self.reader.collect(want))?;
        self.cpus.update(&self.reader.sample().stat.cpus);
        if self.softirqs.is_empty() && has("stat.softirq") {
            let text = self.reader.text(MachineFile::Softirqs)?;
            let names = softirqs::names(text).unwrap_or_default();
            self.softirqs = names
                .iter()
                .map(|name| format!("vector=\"{}\"", escape(&vector(name))))
                .collect();
        }
        self.interrupts = None;
        if has("interrupts") {
            self.interrupts = self.scrapes.collect("interrupts", || {
                let text = self.reader.text(MachineFile::Interrupts)?;
                Ok::<_, Error>(Interrupts::parse(text).ok())
            })?;
        }
        Ok(())
    }

    /// Counts the processes of a snapshot.
    pub fn count(&mut self, snapshot: &Snapshot<'_>) {
        if !self.switches.has("processes") {
            return;
        }
        self.scrapes.collect("processes", || {
            let mut counts = Processes::default();
            let brief = |process: Process<'_>| (process.identity().num_threads, process.state());
            for &(threads, state) in self.briefs.update(snapshot, brief) {
                counts.pids += 1;
                counts.threads += u64::from(threads);
                counts.states[state as usize] += 1;
                // The leading thread, which is not listed if it is the only one.
                counts.thread_states[state as usize] += 1;
            }
            for thread in snapshot.threads() {
                if thread.tid == thread.tgid {
                    continue;
                }
                counts.thread_states[State::from_bits(thread.state_bits) as usize] += 1;
            }
            self.processes = counts;
            let limit = |path: &str| {
                std::fs::read_to_string(proc_root::path(path))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            self.limits =
                limit("/proc/sys/kernel/threads-max").zip(limit("/proc/sys/kernel/pid_max"));
        });
    }

    /// Parts of textfiles that are left out now, and were not at the last call.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.node.left_out()
    }

    /// Metrics that are left out because this process has another network or another name than the machine.
    pub fn unseen(&self) -> Vec<&'static str> {
        self.node.unseen()
    }

    /// Writes the last values.
    pub fn write(&mut self, text: &mut Exposition, counted: bool) {
        self.learn();
        let sample = self.reader.sample();
        let mut scrapes = std::mem::take(&mut self.scrapes);
        let has = |collector| self.switches.has(collector);
        if has("cpu") {
            scrapes.write(text, "cpu", false, |text| self.cpus.write(text));
        }
        if has("stat") || has("stat.softirq") {
            scrapes.write(text, "stat", false, |text| self.write_stat(text));
        }
        if let Some(interrupts) = &self.interrupts {
            scrapes.write(text, "interrupts", false, |text| {
                write_interrupts(text, interrupts);
            });
        }
        if has("vmstat") {
            scrapes.write(text, "vmstat", false, |text| {
                for (line, name) in &self.vmstat {
                    if let Some(&value) = sample.vmstat.values.get(*line) {
                        let help = "A field of /proc/vmstat.";
                        text.named(name, Kind::Untyped, help, Value::Whole(value));
                    }
                }
            });
        }
        if has("processes") && counted {
            scrapes.write(text, "processes", false, |text| self.write_processes(text));
        }
        self.node.write(text, &mut scrapes);
        scrapes.finish(text);
        self.scrapes = scrapes;
    }

    fn write_stat(&self, text: &mut Exposition) {
        let stat = &self.reader.sample().stat;
        if self.switches.has("stat") {
            for (family, value) in [
                (INTR, stat.intr),
                (CTXT, stat.ctxt),
                (FORKS, stat.processes),
                (BTIME, stat.btime),
                (RUNNING, stat.procs_running),
                (BLOCKED, stat.procs_blocked),
            ] {
                text.one(&family, Value::Whole(value));
            }
        }
        if self.switches.has("stat.softirq") {
            let counts = stat.softirqs.iter();
            let counts = counts.map(|&count| Value::Whole(count.into()));
            text.all(&SOFTIRQS, self.softirqs.iter().zip(counts));
        }
    }

    /// Makes names that stay the same.
    fn learn(&mut self) {
        let sample = self.reader.sample();
        let names = &sample.vmstat.names;
        if self.switches.has("vmstat") && self.vmstat_lines != names.len() {
            self.vmstat_lines = names.len();
            self.vmstat = names
                .iter()
                .enumerate()
                .filter(|(_, name)| self.switches.vmstat.is_match(name))
                .map(|(at, name)| (at, format!("node_vmstat_{name}")))
                .collect();
        }
    }

    fn write_processes(&self, text: &mut Exposition) {
        let counts = &self.processes;
        let (threads, pids) = self.limits.unzip();
        text.one(&PROC_THREADS, Value::Whole(counts.threads));
        text.one(&PROC_MAX_THREADS, threads.map(Value::Whole));
        text.one(&PROC_MAX, pids.map(Value::Whole));
        text.one(&PROC_PIDS, Value::Whole(counts.pids));
        for (family, label, counts) in [
            (&PROC_STATE, "state", &counts.states),
            (&PROC_THREADS_STATE, "thread_state", &counts.thread_states),
        ] {
            let label = |&letter: &u8| format!("{label}=\"{}\"", char::from(letter));
            let counts = STATES.iter().map(label).zip(counts);
            // As in `node_exporter`, a state without threads or processes has no series.
            let counts = counts.filter(|(_, count)| **count > 0);
            let counts = counts.map(|(label, &count)| (label, Value::Whole(count)));
            text.all(family, counts);
        }
    }
}

/// `node_exporter`'s name of a softirq: the kernel's in lower case, but a longer one for `IRQ_POLL`.
fn vector(name: &str) -> String {
    match name {
        "IRQ_POLL" => "block_iopoll".into(),
        name => name.to_lowercase(),
    }
}

fn write_interrupts(text: &mut Exposition, interrupts: &Interrupts) {
    text.family(&INTERRUPTS);
    for row in &interrupts.rows {
        // An error count has no columns for CPUs.
        if row.counts.len() != interrupts.cpus.len() {
            continue;
        }
        let rest = names::text(&row.rest);
        let mut words = rest.split_whitespace();
        let (info, devices) = if row.irq().is_some() {
            let info = words.next().unwrap_or_default().to_owned();
            (info, words.collect::<Vec<_>>().join(" "))
        } else {
            (words.collect::<Vec<_>>().join(" "), String::new())
        };
        let label = names::text(row.label.trim_ascii());
        let labels = format!(
            ",type=\"{}\",info=\"{}\",devices=\"{}\"",
            escape(&label),
            escape(&info),
            escape(&devices)
        );
        for (cpu, &count) in interrupts.cpus.iter().zip(&row.counts) {
            let cpu = format!("cpu=\"{cpu}\"");
            text.series(INTERRUPTS.name, &cpu, &labels, Value::Whole(count.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::Format;

    #[test]
    fn the_devices_of_an_interrupt_are_escaped() {
        let text = b"           CPU0       \n  7:          3 IO-APIC 7-edge a\"b, c\\d\n";
        let mut shown = Exposition::new(Format::Prometheus, Vec::new());
        write_interrupts(&mut shown, &Interrupts::parse(text).expect("a row"));
        let shown = String::from_utf8(shown.finish()).expect("UTF-8");
        let labels = r#"{cpu="0",type="7",info="IO-APIC",devices="7-edge a\"b, c\\d"} 3"#;
        assert!(shown.contains(labels), "{shown}");
    }
}
