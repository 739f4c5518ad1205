//! Whether rendering the text with seqtext is worth it: the same series written by seqtext and by `prometheus-client`.
//!
//! `cargo bench -p fastproc-metrics --bench rendering` prints CPU time for one text of 4,000 groups with 19 series each,
//! both ways in turn.

use std::{hint::black_box, sync::atomic::AtomicU64};

use fastproc_metrics::exposition::{Exposition, Family, Format, Kind, Value};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family as ClientFamily, gauge::Gauge},
    registry::Registry,
};
use rustix::time::{ClockId, clock_gettime};

const GROUPS: usize = 4000;
const ROUNDS: usize = 21;
/// Families of whole numbers with the values of their second label, and those of seconds, as of a group.
const WHOLE: [(&str, &[&str]); 8] = [
    ("procs", &[""]),
    ("threads", &[""]),
    ("started", &[""]),
    ("faults", &["major", "minor"]),
    ("switches", &["voluntary", "nonvoluntary"]),
    ("memory", &["resident", "virtual", "swapped"]),
    ("bytes", &["read", "write"]),
    (
        "states",
        &["Running", "Sleeping", "Waiting", "Zombie", "Other"],
    ),
];
const SECONDS: [&str; 2] = ["user", "system"];

fn names() -> Vec<String> {
    (0..GROUPS).map(|at| format!("program-{at}")).collect()
}

/// A value like those of counters: most are large, and no two are the same.
fn value(group: usize, series: usize, round: usize) -> u64 {
    (group as u64 + 1) * 7919 * (series as u64 + 1) + round as u64
}

struct BySeqtext {
    labels: Vec<String>,
    more: Vec<Vec<String>>,
    seconds: Vec<String>,
    memory: Vec<u8>,
}

impl BySeqtext {
    fn new() -> Self {
        let more = |kinds: &[&str]| {
            let label = |kind: &&str| match *kind {
                "" => String::new(),
                kind => format!(",kind=\"{kind}\""),
            };
            kinds.iter().map(label).collect()
        };
        Self {
            labels: names()
                .iter()
                .map(|name| format!("groupname=\"{name}\""))
                .collect(),
            more: WHOLE.iter().map(|(_, kinds)| more(kinds)).collect(),
            seconds: more(&SECONDS),
            memory: Vec::new(),
        }
    }

    fn render(&mut self, round: usize) -> usize {
        let mut text = Exposition::new(Format::Prometheus, std::mem::take(&mut self.memory));
        let mut series = 0;
        for ((name, _), more) in WHOLE.iter().zip(&self.more) {
            text.family(&Family {
                name,
                kind: Kind::Gauge,
                help: "Help.",
                labels: &[],
            });
            for (group, labels) in self.labels.iter().enumerate() {
                for (at, more) in more.iter().enumerate() {
                    text.series(
                        name,
                        labels,
                        more,
                        Value::Whole(value(group, series + at, round)),
                    );
                }
            }
            series += more.len();
        }
        let name = "cpu_seconds_total";
        text.family(&Family {
            name,
            kind: Kind::Counter,
            help: "Help.",
            labels: &[],
        });
        for (group, labels) in self.labels.iter().enumerate() {
            for (at, more) in self.seconds.iter().enumerate() {
                text.series(
                    name,
                    labels,
                    more,
                    Value::Nano(value(group, series + at, round)),
                );
            }
        }
        self.memory = text.finish();
        self.memory.len()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    groupname: String,
    kind: Option<&'static str>,
}

/// As its documentation shows: families whose metrics are set, and a registry that is encoded. The metrics are kept, so
/// that a scrape looks nothing up by its labels.
struct ByClient {
    registry: Registry,
    whole: Vec<Vec<Gauge<u64, AtomicU64>>>,
    seconds: Vec<Vec<Counter<f64, AtomicU64>>>,
    text: String,
}

impl ByClient {
    fn new() -> Self {
        let mut registry = Registry::default();
        let labels = |groupname: &String, kind: &'static str| Labels {
            groupname: groupname.clone(),
            kind: (!kind.is_empty()).then_some(kind),
        };
        let mut whole = Vec::new();
        for (name, kinds) in WHOLE {
            let family = ClientFamily::<Labels, Gauge<u64, AtomicU64>>::default();
            registry.register(name, "Help", family.clone());
            for kind in kinds {
                let gauges = names()
                    .iter()
                    .map(|name| family.get_or_create(&labels(name, kind)).clone())
                    .collect();
                whole.push(gauges);
            }
        }
        let family = ClientFamily::<Labels, Counter<f64, AtomicU64>>::default();
        registry.register("cpu_seconds", "Help", family.clone());
        let seconds = SECONDS.map(|kind| {
            names()
                .iter()
                .map(|name| family.get_or_create(&labels(name, kind)).clone())
                .collect()
        });
        Self {
            registry,
            whole,
            seconds: seconds.into(),
            text: String::new(),
        }
    }

    fn render(&mut self, round: usize) -> usize {
        for (series, gauges) in self.whole.iter().enumerate() {
            for (group, gauge) in gauges.iter().enumerate() {
                gauge.set(value(group, series, round));
            }
        }
        for (at, counters) in self.seconds.iter().enumerate() {
            for (group, counter) in counters.iter().enumerate() {
                let now = value(group, self.whole.len() + at, round) as f64 / 1e9;
                counter
                    .inner()
                    .store(now.to_bits(), std::sync::atomic::Ordering::Relaxed);
            }
        }
        self.text.clear();
        encode(&mut self.text, &self.registry).expect("a string takes all that is written");
        self.text.len()
    }
}

fn cpu_ms(work: impl FnOnce() -> usize) -> (f64, usize) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let before = now();
    let bytes = black_box(work());
    (now() - before, bytes)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (mut seqtext, mut client) = (BySeqtext::new(), ByClient::new());
    let (mut ours, mut theirs, mut bytes) = (Vec::new(), Vec::new(), (0, 0));
    for round in 0..ROUNDS {
        let (ms, length) = cpu_ms(|| seqtext.render(round));
        ours.push(ms);
        bytes.0 = length;
        let (ms, length) = cpu_ms(|| client.render(round));
        theirs.push(ms);
        bytes.1 = length;
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let series =
        GROUPS * (WHOLE.iter().map(|(_, kinds)| kinds.len()).sum::<usize>() + SECONDS.len());
    println!("{series} series, CPU time of one text, medians of {ROUNDS} in turn");
    println!("seqtext            {ours:8.2} ms  {:6} KB", bytes.0 / 1000);
    println!(
        "prometheus-client  {theirs:8.2} ms  {:6} KB",
        bytes.1 / 1000
    );
    println!("ratio              {:8.1}", theirs / ours);
}
