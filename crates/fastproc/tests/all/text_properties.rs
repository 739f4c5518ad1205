//! Damaged texts give an error or a value, and values survive the text: properties of the parsers and renderers.

use std::fs;

use fastproc::{
    Fields, Host, Process,
    access::Access,
    record::{Memory, Record},
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
    fn a_damaged_stat_is_refused_or_can_be_rendered(damages in damage()) {
        let mut record = with_groups(Record::default());
        if stat::parse(&apply(own("stat"), &damages), &UNITS, &mut record).is_ok() {
            let process = Process::new(&record, &[]);
            for access in [Access::Granted, Access::Denied] {
                prop_assert!(Text::default().render(|out| stat::render(process, &UNITS, access, out)).is_ok());
            }
        }
    }

    #[test]
    fn a_damaged_statm_is_refused_or_can_be_rendered(damages in damage()) {
        let mut record = with_groups(Record::default());
        if statm::parse(&apply(own("statm"), &damages), &UNITS, &mut record).is_ok() {
            let process = Process::new(&record, &[]);
            prop_assert!(Text::default().render(|out| statm::render(process, &UNITS, out)).is_ok());
        }
    }

    #[test]
    fn a_damaged_io_is_refused_or_parsed(damages in damage()) {
        let text = apply(own("io"), &damages);
        let _: Result<_, _> = io::parse(&text);
    }

    #[test]
    fn random_bytes_are_refused_by_every_parser(text: Vec<u8>) {
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
    fn a_damaged_status_is_refused_or_can_be_rendered(damages in damage(), learn_from_it: bool) {
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
    fn values_of_stat_survive_parsing_and_rendering(
        name in prop::collection::vec(1_u8.., 0..=63),
        numbers in prop::collection::vec(any::<(u64, u8)>(), 64),
        state in prop::sample::select(b"RSDTtXZPI".to_vec()),
        has_memory: bool,
        masked: bool,
    ) {
        let text = stat_text(&name, numbers, state, has_memory, masked);
        let mut record = with_groups(Record::default());
        prop_assert_eq!(stat::parse(&text, &UNITS, &mut record), Ok(()));
        let process = Process::new(&record, &[]);
        prop_assert_eq!(&*process.name(), name.as_slice());
        prop_assert_eq!(record.identity.masked != 0, masked && (has_memory || state != b'R'));
        let mut rendered = Text::default();
        let rendered = rendered.render(|out| stat::render(process, &UNITS, Access::Granted, out));
        prop_assert_eq!(rendered.map(<[u8]>::escape_ascii).map(|text| text.to_string()), Ok(text.escape_ascii().to_string()));
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

/// The text of a process with numbers of every length. `masked`: as the kernel shows it to a reader who may not trace it.
fn stat_text(
    name: &[u8],
    numbers: Vec<(u64, u8)>,
    state: u8,
    has_memory: bool,
    masked: bool,
) -> Vec<u8> {
    // A masked process without memory is recognised by its missing wait channel, which a running one lacks anyway.
    let masked = masked && (has_memory || state != b'R');
    let mut numbers = numbers.into_iter();
    let mut next = |bits: u32| {
        let (number, shift) = numbers.next().expect("there are enough");
        number >> (64 - bits) >> (u32::from(shift) % bits)
    };
    let mut text = [format!("{} (", next(32)).as_bytes(), name, b") ", &[state]].concat();
    // The fields of proc_pid_stat(5) after the state.
    for field in 4..=52 {
        let value = match field {
            // Most ids, priorities and the signal at the end are signed.
            5..=8 | 18 | 19 | 38 | 39 => (next(32) as i32).to_string(),
            4 | 9 | 20 | 40 | 41 => next(32).to_string(),
            // Times in ticks.
            14..=17 | 22 | 42..=44 => next(40).to_string(),
            10..=13 | 25 => next(64).to_string(),
            // Only the size shows that there is memory, if its layout is hidden.
            23 if has_memory => (next(64) | 1).to_string(),
            24 if has_memory => next(52).to_string(),
            31..=34 => next(31).to_string(),
            35 if !masked => next(1).to_string(),
            52 if !masked => (next(32) as i32 | 1).to_string(),
            26 | 27 if has_memory && masked => "1".into(),
            26 if has_memory => (next(64) | 2).to_string(),
            27..=30 | 45..=51 if has_memory && !masked => next(64).to_string(),
            _ => "0".into(),
        };
        text.extend([b" ", value.as_bytes()].concat());
    }
    text.push(b'\n');
    text
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
