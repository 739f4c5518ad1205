//! Damaged texts give an error or a value, and values survive the text: properties of the parsers and renderers.

use std::fs;

use fastproc::{
    Fields, Host, Process,
    access::Access,
    record::{Cpu, Layout, Limits, Memory, Record, Scheduling, Signals},
    text::{Text, Units, io, stat, statm, status},
};
use fastproc_testbed::with;
use proptest::prelude::*;

const UNITS: Units = Units {
    page_shift: 12,
    tick_ns: 10_000_000,
    boot_offset_ns: 0,
};

fn own(file: &str) -> Vec<u8> {
    fs::read(format!("/proc/self/{file}")).expect("/proc is mounted")
}

fn format() -> status::Format {
    let host = Host::read().expect("the host can be asked");
    status::Format::read(&host)
        .expect("the format can be learned")
        .with_thp_disable_bit(Some(24))
}

/// Damage to a text.
#[derive(Clone, Debug)]
enum Damage {
    Replace(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let interesting = || {
        prop_oneof![
            any::<u8>(),
            prop::sample::select(b"0123456789af -\n\t:,)(\\x".to_vec())
        ]
    };
    let at = any::<prop::sample::Index>;
    let one = prop_oneof![
        4 => (at(), interesting()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        2 => (at(), prop::collection::vec(interesting(), 1..30)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        2 => (at(), 1..30_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        1 => at().prop_map(Damage::Cut),
    ];
    prop::collection::vec(one, 1..5)
}

fn apply(mut text: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if text.is_empty() {
            break;
        }
        match damage {
            Damage::Replace(at, byte) => *at.get_mut(&mut text) = *byte,
            Damage::Insert(at, bytes) => {
                let at = at.index(text.len());
                text.splice(at..at, bytes.iter().copied());
            }
            Damage::Remove(at, len) => {
                let at = at.index(text.len());
                text.drain(at..(at + len).min(text.len()));
            }
            Damage::Cut(at) => text.truncate(at.index(text.len())),
        }
    }
    text
}

/// A record of all groups.
fn with_groups(mut record: Record) -> Record {
    record.identity.groups = Fields::THREE_FILES.bits();
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_stat(damages in damage()) {
        let mut record = with_groups(Record::default());
        if stat::parse(&apply(own("stat"), &damages), &UNITS, &mut record).is_ok() {
            let process = Process::new(&record, &[]);
            for access in [Access::Granted, Access::Denied] {
                prop_assert!(Text::default().render(|out| stat::render(process, &UNITS, access, out)).is_ok());
            }
        }
    }

    #[test]
    fn damaged_statm(damages in damage()) {
        let mut record = with_groups(Record::default());
        if statm::parse(&apply(own("statm"), &damages), &UNITS, &mut record).is_ok() {
            let process = Process::new(&record, &[]);
            prop_assert!(Text::default().render(|out| statm::render(process, &UNITS, out)).is_ok());
        }
    }

    #[test]
    fn damaged_io(damages in damage()) {
        let text = apply(own("io"), &damages);
        let _: Result<_, _> = io::parse(&text);
    }

    #[test]
    fn any_bytes(text: Vec<u8>) {
        let mut record = Record::default();
        prop_assert!(stat::parse(&text, &UNITS, &mut record).is_err());
        prop_assert!(statm::parse(&text, &UNITS, &mut record).is_err());
        prop_assert!(io::parse(&text).is_err());
        prop_assert!(status::parse(&text, &format(), &mut record, &mut Vec::new()).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_status(damages in damage(), learn_from_it: bool) {
        let text = apply(own("status"), &damages);
        let format = if learn_from_it {
            match status::Format::learn(&text, Some(2), status::SpeculationControl::default()) {
                Ok(format) => format,
                Err(_) => return Ok(()),
            }
        } else {
            format()
        };
        let mut record = with_groups(Record::default());
        let mut pool = Vec::new();
        if status::parse(&text, &format, &mut record, &mut pool).is_ok() {
            let mut renderer = status::Renderer::new(format);
            let process = Process::new(&record, &pool);
            prop_assert!(Text::default().render(|out| renderer.render(process, Some(&text), out)).is_ok());
        }
    }

    #[test]
    fn values_of_stat_survive_rendering_and_parsing(
        name in prop::collection::vec(1_u8.., 0..=63),
        numbers in prop::collection::vec(any::<(u64, u8)>(), 64),
        state in 0..9_u32,
        has_memory: bool,
        masked: bool,
    ) {
        let mut numbers = Numbers(numbers.into_iter());
        let record = stat_record(&name, &mut numbers, state, has_memory, masked);
        let process = Process::new(&record, &[]);
        prop_assert_eq!(&*process.name(), name.as_slice());
        let mut text = Text::default();
        let rendered = text.render(|out| stat::render(process, &UNITS, Access::Granted, out)).expect("it renders");
        let mut parsed = with_groups(Record::default());
        prop_assert_eq!(stat::parse(rendered, &UNITS, &mut parsed), Ok(()));
        prop_assert_eq!(parsed, record);
    }

    #[test]
    fn values_of_statm_survive_rendering_and_parsing(sizes in prop::array::uniform5(0_u64..1 << 40)) {
        let [vsize, rss_anon, rss_file, text, data] = sizes.map(|pages| pages << 12);
        let mut record = with_groups(Record::default());
        record.identity.has_mm = u8::from(sizes != [0; 5]);
        record.memory = with!(Memory::default(), { vsize, rss_anon, rss_file, text, data,});
        let mut rendered = Text::default();
        let process = Process::new(&record, &[]);
        let rendered = rendered.render(|out| statm::render(process, &UNITS, out)).expect("it renders");
        let mut parsed = with_groups(Record::default());
        prop_assert_eq!(statm::parse(rendered, &UNITS, &mut parsed), Ok(()));
        prop_assert_eq!(parsed, record);
    }
}

/// Numbers of every length.
struct Numbers<I>(I);

impl<I: Iterator<Item = (u64, u8)>> Numbers<I> {
    fn u64(&mut self) -> u64 {
        let (number, shift) = self.0.next().expect("there are enough");
        number >> (shift % 64)
    }

    fn u32(&mut self) -> u32 {
        let (number, shift) = self.0.next().expect("there are enough");
        number as u32 >> (shift % 32)
    }

    fn i32(&mut self) -> i32 {
        self.u32() as i32
    }

    fn ticks(&mut self) -> u64 {
        let ticks = self.u64() / UNITS.tick_ns;
        ticks * UNITS.tick_ns
    }
}

/// A record with the values of stat only.
fn stat_record(
    name: &[u8],
    numbers: &mut Numbers<impl Iterator<Item = (u64, u8)>>,
    state: u32,
    has_memory: bool,
    masked: bool,
) -> Record {
    let mut record = with_groups(Record::default());
    let num_threads = numbers.u32();
    // A masked process without memory is recognised by its missing wait channel, which a running one lacks anyway.
    let masked = masked && (has_memory || state != 0);
    let exit_code = if masked { 0 } else { numbers.i32() | 1 };
    let mut comm = [0; 16];
    let short = name.len().min(15);
    comm[..short].copy_from_slice(&name[..short]);
    if name.len() > 15 {
        record.name.kind = 1;
        record.name.text[..name.len()].copy_from_slice(name);
    }
    record.identity = with!(record.identity, {
        start_ns: numbers.ticks(),
        tgid: numbers.u32(),
        ppid: numbers.u32(),
        pgrp: numbers.u32(),
        session: numbers.u32(),
        flags: numbers.u32(),
        tty_nr: numbers.i32(),
        tpgid: numbers.i32(),
        num_threads,
        seen_threads: num_threads,
        exit_signal: numbers.i32(),
        exit_code,
        state_bits: (1 << state) >> 1,
        wchan: u8::from(!masked && numbers.u32() & 1 != 0),
        has_mm: u8::from(has_memory),
        masked: u8::from(masked),
        comm,});
    let (utime_ns, stime_ns) = (numbers.ticks(), numbers.ticks());
    record.cpu = with!(Cpu::default(), {
        utime_ns,
        stime_ns,
        prev_utime_ns: utime_ns,
        prev_stime_ns: stime_ns,
        gtime_ns: numbers.ticks(),
        cutime_ns: numbers.ticks(),
        cstime_ns: numbers.ticks(),
        cgtime_ns: numbers.ticks(),
        minflt: numbers.u64(),
        majflt: numbers.u64(),
        cminflt: numbers.u64(),
        cmajflt: numbers.u64(),});
    record.scheduling = with!(Scheduling::default(), {
        priority: numbers.i32(),
        nice: numbers.i32(),
        rt_priority: numbers.u32(),
        policy: numbers.u32(),
        processor: numbers.u32(),});
    record.scheduling_details.blkio_ns = numbers.ticks();
    record.limits = with!(Limits::default(), {
        rss_limit: numbers.u64(),});
    let mut set = || numbers.u64() & 0x7fff_ffff;
    record.signals = with!(Signals::default(), {
        pending: set(),
        blocked: set(),
        ignored: set(),
        caught: set(),
        switches: u64::MAX,});
    if has_memory {
        // Only a size shows that there is memory, if its layout is hidden.
        record.memory = with!(Memory::default(), {
            vsize: numbers.u64() | 1,
            rss_approx: numbers.u64() >> 12 << 12,});
    }
    if has_memory && !masked {
        record.layout = with!(Layout::default(), {
            start_code: numbers.u64() | 2,
            end_code: numbers.u64(),
            start_stack: numbers.u64(),
            kstkesp: numbers.u64(),
            kstkeip: numbers.u64(),
            start_data: numbers.u64(),
            end_data: numbers.u64(),
            start_brk: numbers.u64(),
            arg_start: numbers.u64(),
            arg_end: numbers.u64(),
            env_start: numbers.u64(),
            env_end: numbers.u64(),
        });
    }
    record
}

/// `stat` has 31 bits of signal sets.
#[test]
fn stat_shows_the_first_31_signals() {
    let mut record = Record::default();
    record.identity.groups = Fields::THREE_FILES.bits();
    let record = record;
    let render = |record: &Record| {
        let process = Process::new(record, &[]);
        let mut text = Text::default();
        text.render(|out| stat::render(process, &UNITS, Access::Granted, out))
            .expect("it renders")
            .to_vec()
    };
    let none = render(&record);
    for set in 0..4 {
        let with = |bits| {
            let mut record = record;
            let signals = &mut record.signals;
            *[
                &mut signals.pending,
                &mut signals.blocked,
                &mut signals.ignored,
                &mut signals.caught,
            ][set] = bits;
            render(&record)
        };
        assert_eq!(with(u64::MAX << 31), none);
        assert_ne!(with(1 << 30), none);
    }
}
