//! Whatever happens to records between two renderings, the texts that are kept are those of the plain renderers.

use std::{collections::BTreeSet, fs, path::Path};

use fastproc::{
    Collector, Fields, Host, Process, SourceKind,
    record::Record,
    text::{
        Access, RenderError, Text, Units,
        incremental::{Files, Renderer},
        stat, statm,
        status::{self, SpeculationControl},
    },
};
use proptest::prelude::*;

const UNITS: Units = Units {
    page_shift: 12,
    tick_ns: 10_000_000,
    boot_offset_ns: 0,
};
/// Bits of the bitmap of CPUs that the format has, so that it takes more than a word.
const CPUS: usize = 72;

/// The format of this kernel on a machine of more CPUs whose processes have a say in their speculation, and with a line
/// that no record holds.
fn format(with_unknown: bool) -> status::Format {
    let own = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let mut text = String::new();
    for line in own.lines() {
        let line = match line.split_once(':') {
            Some(("Cpus_allowed", _)) => "Cpus_allowed:\tff,ffffffff,ffffffff",
            Some(("Cpus_allowed_list", _)) => "Cpus_allowed_list:\t0-71",
            Some(("Speculation_Store_Bypass", _)) => "Speculation_Store_Bypass:\tthread vulnerable",
            Some(("SpeculationIndirectBranch", _)) => {
                "SpeculationIndirectBranch:\tconditional enabled"
            }
            _ => line,
        };
        text += line;
        text.push('\n');
        if with_unknown && line.starts_with("Threads:") {
            text += "Horizon:\tevent\n";
        }
    }
    let control = SpeculationControl {
        store_bypass: true,
        indirect_branch: true,
    };
    status::Format::learn(text.as_bytes(), Some(CPUS), control)
        .expect("it can be learned")
        .with_thp_disable_bit(Some(24))
        .with_thread_features(true)
}

/// A way to change one member of a record.
type Set = fn(&mut Record, u64);

macro_rules! setters {
    ($($group:ident { $($member:ident)* })*) => {
        &[$($(|record, value| record.$group.$member = value as _,)*)*]
    };
}

/// Every number in a record but those that say where lists are.
const SETTERS: &[Set] = setters! {
    identity {
        start_ns ppid pgrp session tracer_pid flags tty_nr tpgid num_threads exit_signal exit_code state_bits torn
        seen_threads wchan core_dumping
    }
    cpu {
        utime_ns stime_ns gtime_ns cutime_ns cstime_ns cgtime_ns minflt majflt cminflt cmajflt nvcsw nivcsw sum_exec_ns
        sampled_utime_ns sampled_stime_ns prev_utime_ns prev_stime_ns
    }
    memory {
        vsize rss_approx rss_anon rss_file rss_shmem swap peak_vsize peak_rss locked pinned data stack exe lib text
    }
    memory_details { page_tables hugetlb mm_flags untag_mask }
    layout {
        start_code end_code start_stack kstkesp kstkeip start_data end_data start_brk arg_start arg_end env_start env_end
    }
    credentials {
        uid euid suid fsuid gid egid sgid fsgid cap_inheritable cap_permitted cap_effective cap_bounding cap_ambient
        atomic_flags user_ns seccomp_mode seccomp_filters umask thread_features thread_features_locked
    }
    signals { pending shared_pending blocked ignored caught queued queue_limit switches }
    scheduling { priority nice rt_priority policy processor ngid cpus_allowed mems_allowed blkio_ns }
    limits { rss_limit fd_size reserved }
    io { rchar wchar syscr syscw read_bytes write_bytes cancelled_write_bytes }
    name { worker_flags worker_id pool_id pool_cpu }
};

/// A record and its own pool.
#[derive(Clone, Debug)]
struct Sample {
    record: Record,
    groups: Vec<u32>,
    nested: Vec<[u32; 4]>,
    cpus: Option<[u64; 2]>,
    access: Access,
    kernel: u8,
}

impl Sample {
    fn new(pid: u32) -> Self {
        let mut record = Record::default();
        record.identity.tgid = pid;
        record.identity.has_mm = 1;
        record.identity.groups = Fields::THREE_FILES.bits();
        Self {
            record,
            groups: Vec::new(),
            nested: Vec::new(),
            cpus: None,
            access: Access::Granted,
            kernel: 0,
        }
    }

    /// The record with its lists in a pool, behind `gap` words that are somebody else's.
    fn place(&self, gap: usize) -> (Record, Vec<u64>) {
        let mut record = self.record;
        let mut pool = vec![7; gap + 1];
        let words =
            |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        record.credentials.ngroups = self.groups.len() as u32;
        record.credentials.groups_at = pool.len() as u32;
        pool.extend(self.groups.chunks(2).map(words));
        record.namespaces.level = self.nested.len() as u32;
        record.namespaces.ids_at = pool.len() as u32;
        pool.extend(
            self.nested
                .iter()
                .flat_map(|ids| [words(&ids[..2]), words(&ids[2..])]),
        );
        if let Some(cpus) = self.cpus {
            record.scheduling.cpus_at = pool.len() as u32;
            pool.extend(cpus);
        }
        (record, pool)
    }

    /// As the kernel would have it.
    fn kernel_text(&self) -> Vec<u8> {
        format!("Threads:\t1\nHorizon:\t{}\n", self.kernel).into_bytes()
    }
}

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    Set(prop::sample::Index, u64),
    Name(Vec<u8>),
    LongName(u32, Vec<u8>),
    Memory(bool),
    Masked(bool),
    Access(bool),
    Groups(Vec<u32>),
    ManyGroups(u32),
    Nested(Vec<[u32; 4]>),
    Cpus(Option<[u64; 2]>),
    Kernel(u8),
    Nothing,
    Evict,
}

fn event() -> impl Strategy<Value = Event> {
    // As large as sums of three of them may be.
    let number = (any::<u64>(), 3..64_u32).prop_map(|(number, shift)| number >> shift);
    prop_oneof![
        20 => (any::<prop::sample::Index>(), number).prop_map(|(at, value)| Event::Set(at, value)),
        2 => prop::collection::vec(any::<u8>(), 0..16).prop_map(Event::Name),
        1 => (0..3_u32, prop::collection::vec(1_u8.., 0..64)).prop_map(|(kind, name)| Event::LongName(kind, name)),
        1 => any::<bool>().prop_map(Event::Memory),
        1 => any::<bool>().prop_map(Event::Masked),
        1 => any::<bool>().prop_map(Event::Access),
        1 => prop::collection::vec(any::<u32>(), 0..5).prop_map(Event::Groups),
        1 => (500..4000_u32).prop_map(Event::ManyGroups),
        1 => prop::collection::vec(any::<[u32; 4]>(), 0..4).prop_map(Event::Nested),
        1 => any::<Option<[u64; 2]>>().prop_map(Event::Cpus),
        1 => any::<u8>().prop_map(Event::Kernel),
        3 => Just(Event::Nothing),
        2 => Just(Event::Evict),
    ]
}

fn happen(sample: &mut Sample, event: Event) {
    let record = &mut sample.record;
    match event {
        Event::Set(at, value) => at.get(SETTERS)(record, value),
        Event::Name(name) => {
            record.identity.comm = [0; 16];
            record.identity.comm[..name.len()].copy_from_slice(&name);
        }
        Event::LongName(kind, name) => {
            record.name.kind = kind;
            record.name.text = [0; 64];
            record.name.text[..name.len()].copy_from_slice(&name);
        }
        Event::Memory(has) => record.identity.has_mm = has.into(),
        Event::Masked(masked) => record.identity.masked = masked.into(),
        Event::Access(granted) => {
            sample.access = if granted {
                Access::Granted
            } else {
                Access::Denied
            };
        }
        Event::Groups(groups) => sample.groups = groups,
        Event::ManyGroups(count) => sample.groups = (1_000_000..1_000_000 + count).collect(),
        Event::Nested(nested) => sample.nested = nested,
        Event::Cpus(cpus) => sample.cpus = cpus,
        Event::Kernel(value) => sample.kernel = value,
        Event::Nothing | Event::Evict => {}
    }
}

/// What the plain renderers make of it.
fn plain(
    process: Process<'_>,
    access: Access,
    status: &mut status::Renderer,
    kernel: Option<&[u8]>,
) -> [Vec<u8>; 3] {
    let mut text = Text::default();
    let stat = text.render(|out| stat::render(process, &UNITS, access, out));
    let stat = stat.expect("it renders").to_vec();
    let statm = text.render(|out| statm::render(process, &UNITS, out));
    let statm = statm.expect("it renders").to_vec();
    let status = text.render(|out| status.render(process, kernel, out));
    [stat, statm, status.expect("it renders").to_vec()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_texts_are_those_of_the_plain_renderers(
        events in prop::collection::vec((0..6_u32, 0..5_usize, event()), 1..150),
        files in (0..8_u8).prop_map(Files::from_bits_truncate),
        with_unknown: bool,
        limit in 0..8_usize,
    ) {
        let format = format(with_unknown);
        let mut status = status::Renderer::new(format.clone());
        let mut texts = Renderer::new(UNITS, format, files);
        texts.set_limit(limit);
        let mut samples: Vec<Sample> = (1..=6).map(Sample::new).collect();
        let mut alive = BTreeSet::new();
        for (at, gap, event) in events {
            if matches!(event, Event::Evict) {
                texts.evict();
                prop_assert!(texts.kept() <= alive.len());
                alive.clear();
                continue;
            }
            let sample = &mut samples[at as usize];
            happen(sample, event);
            let (record, pool) = sample.place(gap);
            let process = Process::new(&record, &pool);
            let kernel = sample.kernel_text();
            let kernel = with_unknown.then_some(&kernel[..]);
            let [stat, statm, whole] = plain(process, sample.access, &mut status, kernel);
            let kept = texts.render(process, sample.access, kernel).expect("it renders");
            let lossy = String::from_utf8_lossy;
            for (file, kept, plain) in [
                (Files::STAT, kept.stat, &stat),
                (Files::STATM, kept.statm, &statm),
                (Files::STATUS, kept.status, &whole),
            ] {
                let expected: &[u8] = if files.contains(file) { plain } else { b"" };
                prop_assert_eq!(lossy(kept), lossy(expected));
                prop_assert_eq!(kept, expected);
            }
            alive.insert(process.pid());
            prop_assert!(texts.kept() <= limit);
            prop_assert!(texts.memory_bytes() <= texts.kept() * (18 << 10) + 1024);
        }
    }
}

/// Renders this sample twice, with a change in between, and says how often that changed the text.
#[test]
fn every_member_that_a_text_shows_is_noticed() {
    let format = format(false);
    let mut status = status::Renderer::new(format.clone());
    let mut texts = Renderer::new(UNITS, format, Files::all());
    let mut shown = 0;
    for set in SETTERS {
        let mut sample = Sample::new(1);
        let render = |sample: &Sample, status: &mut status::Renderer| {
            let (record, pool) = sample.place(0);
            plain(Process::new(&record, &pool), sample.access, status, None)
        };
        let before = render(&sample, &mut status);
        let (record, pool) = sample.place(0);
        texts
            .render(Process::new(&record, &pool), sample.access, None)
            .expect("it renders");
        set(&mut sample.record, 0x0101_0101_0101_0101);
        let after = render(&sample, &mut status);
        let (record, pool) = sample.place(0);
        let kept = texts
            .render(Process::new(&record, &pool), sample.access, None)
            .expect("it renders");
        assert_eq!(
            [kept.stat, kept.statm, kept.status],
            after.each_ref().map(Vec::as_slice)
        );
        shown += usize::from(before != after);
    }
    assert!(shown > 70, "only {shown} members are shown");
}

#[test]
fn who_is_gone_is_forgotten() {
    let mut texts = Renderer::new(UNITS, format(false), Files::all());
    let round = |texts: &mut Renderer, pids: &[u32]| {
        for &pid in pids {
            let record = Sample::new(pid).record;
            let rendered = texts.render(Process::new(&record, &[]), Access::Granted, None);
            let rendered = rendered.expect("it renders");
            assert!(rendered.stat.starts_with(format!("{pid} (").as_bytes()));
        }
        texts.evict()
    };
    assert_eq!(round(&mut texts, &[1, 2, 3, 4]), 0);
    assert_eq!(texts.kept(), 4);
    assert_eq!(round(&mut texts, &[2, 4, 5]), 2);
    assert_eq!(texts.kept(), 3);
    assert_eq!(round(&mut texts, &[5, 4, 2]), 0);
    assert_eq!(round(&mut texts, &[]), 3);
    assert_eq!(texts.kept(), 0);
}

#[test]
fn a_refusal_leaves_the_rest_as_it_is() {
    let mut texts = Renderer::new(UNITS, format(true), Files::all());
    let mut record = Sample::new(1).record;
    let kernel = Sample::new(1).kernel_text();
    let mut render = |record: &Record, kernel| {
        let rendered = texts.render(Process::new(record, &[]), Access::Granted, kernel);
        rendered.map(|texts| texts.status.to_vec())
    };
    let before = render(&record, Some(&kernel)).expect("it renders");
    assert!(matches!(
        render(&record, None),
        Err(RenderError::KernelText { label }) if label == "Horizon"
    ));
    record.identity.groups = Fields::TOP.bits();
    assert!(matches!(
        render(&record, Some(&kernel)),
        Err(RenderError::MissingFields(_))
    ));
    record.identity.groups = Fields::THREE_FILES.bits();
    assert_eq!(render(&record, Some(&kernel)), Ok(before));
}

/// Snapshots of this machine, one after the other.
#[test]
fn real_processes_render_the_same() {
    let host = Host::read().expect("the host can be asked");
    let units = Units::from(&host);
    let format = status::Format::of_this_kernel(Path::new("/proc"), &host)
        .expect("the format can be learned")
        .with_thp_disable_bit(Some(24))
        .with_thread_features(true);
    let mut collector = Collector::builder()
        .fields(Fields::THREE_FILES)
        .source(Some(SourceKind::Procfs))
        .open()
        .expect("/proc can be read");
    let mut status = status::Renderer::new(format.clone());
    let mut texts = Renderer::new(units, format, Files::all());
    let (mut text, mut compared) = (Text::default(), 0);
    for _ in 0..3 {
        for process in collector.snapshot().expect("a snapshot").iter() {
            if status.needs_kernel_text(process) {
                continue;
            }
            let Ok(kept) = texts.render(process, Access::Granted, None) else {
                // What this reader may not see.
                continue;
            };
            let plain = text.render(|out| status.render(process, None, out));
            assert_eq!(plain.expect("it renders"), kept.status);
            let plain = text.render(|out| stat::render(process, &units, Access::Granted, out));
            assert_eq!(plain.expect("it renders"), kept.stat);
            let plain = text.render(|out| statm::render(process, &units, out));
            assert_eq!(plain.expect("it renders"), kept.statm);
            compared += 1;
        }
        texts.evict();
    }
    assert!(compared > 0, "no process was compared");
}
