//! Names of files, and which of them have the same rows.

use std::{cmp::Reverse, collections::HashMap, fmt::Write, path::PathBuf};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{HOUR, OPEN};

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the open hour.
    Open,
    /// In a sealed hour.
    Sealed {
        /// Seconds between rows of a process: 1, or more where it was thinned.
        tier: u32,
    },
}

/// A file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its table.
    pub table: Box<str>,
    /// The host that it is about, as in the name; empty for an open file if the folder does not say so.
    pub host: Box<str>,
    /// Where it is.
    pub place: Place,
    /// The first second that it covers, since 1970, UTC.
    pub from: i64,
    /// The second after the last one.
    pub to: i64,
    /// Its size.
    pub bytes: u64,
    /// Its path below the folder.
    pub path: PathBuf,
}

impl Entry {
    /// The entry of an open file. `None` if the name is wrong, or if it does not lie within one hour.
    pub(super) fn open(host: &str, name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".parquet")?.split('-');
        let (table, from, to) = (parts.next()?, parts.next()?, parts.next()?);
        let (from, to) = (second(from)?, second(to)?);
        let right = parts.next().is_none()
            && is_table(table)
            && from < to
            && from / HOUR == (to - 1) / HOUR;
        right.then(|| Self {
            table: table.into(),
            host: host.into(),
            place: Place::Open,
            from,
            to,
            bytes: 0,
            path: [OPEN, name].iter().collect(),
        })
    }

    /// The entry of a sealed file, by its name and those of the folders.
    pub(super) fn sealed([host, date, hour, name]: [&str; 4]) -> Option<Self> {
        let table = name.strip_suffix(".parquet")?;
        let (table, tier) = match table.split_once('-') {
            Some((table, tier)) => {
                let tier = digits(tier.strip_suffix('s')?)?;
                (table, u32::try_from(tier).ok().filter(|&tier| tier > 1)?)
            }
            None => (table, 1),
        };
        let from = hour_of(date, hour)?;
        let host_name = host.strip_prefix("host=")?;
        (is_table(table) && is_host(host_name)).then(|| Self {
            table: table.into(),
            host: host_name.into(),
            place: Place::Sealed { tier },
            from,
            to: from + HOUR,
            bytes: 0,
            path: [host, date, hour, name].iter().collect(),
        })
    }
}

/// The name of a table: small letters and underscores.
fn is_table(name: &str) -> bool {
    let letters = name
        .bytes()
        .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
    letters && !name.is_empty() && name.len() <= 32
}

/// A host's name as [`host_name`] writes it.
pub(super) fn is_host(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%".contains(&byte);
    name.bytes().all(letters) && (1..=192).contains(&name.len())
}

/// A host's name for the name of a folder: what is no letter, digit, dot, hyphen or underscore is written as `%XX`, which
/// other engines read back.
pub fn host_name(bytes: &[u8]) -> String {
    let mut name = String::new();
    for &byte in bytes.iter().take(64) {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            name.push(byte.into());
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.is_empty() {
        name.push_str("unknown");
    }
    name
}

/// A number without signs, blanks and zeros in front.
fn digits(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok())?
}

/// A second between 1970 and 9999.
fn second(text: &str) -> Option<i64> {
    let second = i64::try_from(digits(text)?).ok()?;
    (second <= Timestamp::MAX.as_second()).then_some(second)
}

/// The first second of an hour, by the names of its folders.
pub(super) fn hour_of(date: &str, hour: &str) -> Option<i64> {
    let day: Date = date.strip_prefix("date=")?.parse().ok()?;
    let number = hour
        .strip_prefix("hour=")?
        .parse()
        .ok()
        .filter(|number| *number < 24)?;
    let from = day.at(number, 0, 0, 0).to_zoned(TimeZone::UTC).ok()?;
    let from = from.timestamp().as_second();
    // Names that mean the same are not the same.
    (from >= 0 && folders(from)? == [date, hour]).then_some(from)
}

/// The names of the folders of an hour.
pub(super) fn folders(second: i64) -> Option<[String; 2]> {
    let time = Timestamp::from_second(second).ok()?.to_zoned(TimeZone::UTC);
    Some([
        format!("date={}", time.date()),
        format!("hour={:02}", time.hour()),
    ])
}

/// Sorts files by table, host, time and place.
pub(super) fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by(|one, other| {
        let key = |entry: &Entry| (entry.from, entry.to, entry.place);
        let names = (&one.table, &one.host).cmp(&(&other.table, &other.host));
        names.then_with(|| key(one).cmp(&key(other)))
    });
}

/// Which of these files to read. Left out are those whose rows are in another one: of a sealed hour all but the finest, of
/// the open hour those within a longer one, and all of an hour that is sealed.
pub(super) fn chosen(entries: &[Entry]) -> Vec<bool> {
    let mut finest = HashMap::new();
    for entry in entries {
        if let Place::Sealed { tier } = entry.place {
            // An open file may be of a host that is not known.
            for host in [&*entry.host, ""] {
                let found = finest.entry((&*entry.table, host, entry.from));
                let found = found.or_insert(tier);
                *found = tier.min(*found);
            }
        }
    }
    let mut chosen = vec![true; entries.len()];
    let mut open: Vec<usize> = (0..entries.len()).collect();
    open.retain(|&at| entries[at].place == Place::Open);
    open.sort_unstable_by_key(|&at| {
        let entry = &entries[at];
        (&entry.table, &entry.host, entry.from, Reverse(entry.to))
    });
    // How far those reach that begin before or at the same time.
    let mut reach = (("", ""), i64::MIN);
    for at in open {
        let entry = &entries[at];
        let names = (&*entry.table, &*entry.host);
        if reach.0 != names {
            reach = (names, i64::MIN);
        }
        let hour = entry.from - entry.from.rem_euclid(HOUR);
        let is_sealed = finest.contains_key(&(names.0, names.1, hour));
        chosen[at] = !is_sealed && entry.to > reach.1;
        reach.1 = reach.1.max(entry.to);
    }
    for (chosen, entry) in chosen.iter_mut().zip(entries) {
        if let Place::Sealed { tier } = entry.place {
            *chosen = finest.get(&(&*entry.table, &*entry.host, entry.from)) == Some(&tier);
        }
    }
    chosen
}
