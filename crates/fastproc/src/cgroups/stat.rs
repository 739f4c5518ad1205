//! Finds the kernel's stored value of each line of memory.stat.
//!
//! The kernel keeps an array of states and one of events for each memory cgroup, without type information about their
//! elements. The place of a state is the rank of its enumerator among those that are kept; that of an event is its
//! place among the lines. This is assumed if the lengths of both arrays are as expected, and then compared with the
//! kernel's text (`proofs.rs`).

use super::record::STAT_SLOTS;
use crate::kernel::KernelTypes;

/// States: the line, its enumerator, and its unit.
const STATES: [(&str, &str, Unit); 59] = [
    ("anon", "NR_ANON_MAPPED", Unit::Pages),
    ("file", "NR_FILE_PAGES", Unit::Pages),
    ("kernel", "MEMCG_KMEM", Unit::Pages),
    ("kernel_stack", "NR_KERNEL_STACK_KB", Unit::Kilobytes),
    ("pagetables", "NR_PAGETABLE", Unit::Pages),
    ("sec_pagetables", "NR_SECONDARY_PAGETABLE", Unit::Pages),
    ("percpu", "MEMCG_PERCPU_B", Unit::One),
    ("sock", "MEMCG_SOCK", Unit::Pages),
    ("vmalloc", "MEMCG_VMALLOC", Unit::Pages),
    ("vmalloc", "NR_VMALLOC", Unit::Pages),
    ("percpu", "NR_PERCPU_B", Unit::One),
    ("shmem", "NR_SHMEM", Unit::Pages),
    ("zswap", "MEMCG_ZSWAP_B", Unit::One),
    ("zswapped", "MEMCG_ZSWAPPED", Unit::Pages),
    ("zswap_incomp", "MEMCG_ZSWAP_INCOMP", Unit::Pages),
    ("file_mapped", "NR_FILE_MAPPED", Unit::Pages),
    ("file_dirty", "NR_FILE_DIRTY", Unit::Pages),
    ("file_writeback", "NR_WRITEBACK", Unit::Pages),
    ("swapcached", "NR_SWAPCACHE", Unit::Pages),
    ("anon_thp", "NR_ANON_THPS", Unit::Pages),
    ("file_thp", "NR_FILE_THPS", Unit::Pages),
    ("shmem_thp", "NR_SHMEM_THPS", Unit::Pages),
    ("inactive_anon", "NR_INACTIVE_ANON", Unit::Pages),
    ("active_anon", "NR_ACTIVE_ANON", Unit::Pages),
    ("inactive_file", "NR_INACTIVE_FILE", Unit::Pages),
    ("active_file", "NR_ACTIVE_FILE", Unit::Pages),
    ("unevictable", "NR_UNEVICTABLE", Unit::Pages),
    ("slab_reclaimable", "NR_SLAB_RECLAIMABLE_B", Unit::One),
    ("slab_unreclaimable", "NR_SLAB_UNRECLAIMABLE_B", Unit::One),
    ("hugetlb", "NR_HUGETLB", Unit::Pages),
    (
        "workingset_refault_anon",
        "WORKINGSET_REFAULT_ANON",
        Unit::One,
    ),
    (
        "workingset_refault_file",
        "WORKINGSET_REFAULT_FILE",
        Unit::One,
    ),
    (
        "workingset_activate_anon",
        "WORKINGSET_ACTIVATE_ANON",
        Unit::One,
    ),
    (
        "workingset_activate_file",
        "WORKINGSET_ACTIVATE_FILE",
        Unit::One,
    ),
    (
        "workingset_restore_anon",
        "WORKINGSET_RESTORE_ANON",
        Unit::One,
    ),
    (
        "workingset_restore_file",
        "WORKINGSET_RESTORE_FILE",
        Unit::One,
    ),
    (
        "workingset_nodereclaim",
        "WORKINGSET_NODERECLAIM",
        Unit::One,
    ),
    ("pgdemote_kswapd", "PGDEMOTE_KSWAPD", Unit::One),
    ("pgdemote_direct", "PGDEMOTE_DIRECT", Unit::One),
    ("pgdemote_khugepaged", "PGDEMOTE_KHUGEPAGED", Unit::One),
    ("pgdemote_proactive", "PGDEMOTE_PROACTIVE", Unit::One),
    ("pgpromote_success", "PGPROMOTE_SUCCESS", Unit::One),
    ("pgsteal_kswapd", "PGSTEAL_KSWAPD", Unit::One),
    ("pgsteal_direct", "PGSTEAL_DIRECT", Unit::One),
    ("pgsteal_khugepaged", "PGSTEAL_KHUGEPAGED", Unit::One),
    ("pgsteal_proactive", "PGSTEAL_PROACTIVE", Unit::One),
    ("pgscan_kswapd", "PGSCAN_KSWAPD", Unit::One),
    ("pgscan_direct", "PGSCAN_DIRECT", Unit::One),
    ("pgscan_khugepaged", "PGSCAN_KHUGEPAGED", Unit::One),
    ("pgscan_proactive", "PGSCAN_PROACTIVE", Unit::One),
    ("pgrefill", "PGREFILL", Unit::One),
    // Kept, but not printed.
    ("", "MEMCG_SWAP", Unit::Pages),
    ("", "NR_VMSCAN_WRITE", Unit::One),
    ("", "PGSTEAL_ANON", Unit::One),
    ("", "PGSTEAL_FILE", Unit::One),
    ("", "PGSCAN_ANON", Unit::One),
    ("", "PGSCAN_FILE", Unit::One),
    ("", "PGROTATE_ANON", Unit::One),
    ("", "PGROTATE_FILE", Unit::One),
];

/// The enumerators to look up in the kernel's types.
pub(super) const CONSTANTS: [&str; STATES.len()] = {
    let mut names = [""; STATES.len()];
    let mut at = 0;
    while at < STATES.len() {
        names[at] = STATES[at].1;
        at += 1;
    }
    names
};

/// States that are kept although the kernel may not print them.
const SILENT: [&str; 4] = [
    "MEMCG_SWAP",
    "MEMCG_ZSWAP_B",
    "MEMCG_ZSWAPPED",
    "NR_HUGETLB",
];
/// Sums of other lines: those with this prefix.
const SUMS: [(&str, &str); 3] = [
    ("slab", "slab_"),
    ("pgscan", "pgscan_"),
    ("pgsteal", "pgsteal_"),
];

/// The unit of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// The unit of the line.
    One,
    Kilobytes,
    Pages,
}

impl Unit {
    fn factor(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Kilobytes => 1024,
            Self::Pages => rustix::param::page_size() as u64,
        }
    }
}

/// Lengths of the two arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    states: u32,
    events: u32,
}

impl Lengths {
    pub(super) fn new(types: &KernelTypes) -> Option<Self> {
        let of = |member| types.offset("memcg_vmstats", member);
        let (states, events, end) = (of("state")?, of("events")?, of("state_local")?);
        (states == 0 && events < end).then(|| Self {
            states: events / 8,
            events: (end - events) / 8,
        })
    }

    pub(super) fn bytes(self) -> u32 {
        (self.states + self.events) * 8
    }
}

/// A line of memory.stat: look it up once, then read it from many cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatLine(pub(super) u16);

/// A stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    at: u16,
    is_signed: bool,
    factor: u64,
}

impl Stored {
    /// The value as the kernel keeps it. The sum over the CPUs may be negative for a moment; the kernel shows 0 then.
    pub(super) fn raw(self, slots: &[u64; STAT_SLOTS]) -> u64 {
        let value = slots[usize::from(self.at)];
        if self.is_signed && (value as i64) < 0 {
            0
        } else {
            value
        }
    }

    /// Sets all bits at its place.
    pub(super) fn mark(self, slots: &mut [u64; STAT_SLOTS]) {
        slots[usize::from(self.at)] = u64::MAX;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Slot(Stored),
    /// The sum of these lines.
    Sum(Vec<u16>),
}

/// The lines of this kernel's memory.stat.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    names: Vec<String>,
    /// The source of each line; empty if the program cannot read them.
    sources: Vec<Source>,
}

impl Lines {
    /// The lines of the kernel's text, and their sources from its types, if given.
    pub(super) fn new(text: &str, types: Option<&KernelTypes>) -> Self {
        let names: Vec<String> = text
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .take(STAT_SLOTS)
            .collect();
        let sources = types.and_then(|types| {
            let lengths = Lengths::new(types)?;
            find(&names, lengths, &|name| types.constant(name))
        });
        Self {
            names,
            sources: sources.unwrap_or_default(),
        }
    }

    /// Takes names that are each followed by a line feed, of values in that order.
    pub(super) fn set_names(&mut self, names: &str) {
        let names = names.lines().take(STAT_SLOTS);
        if !names.clone().eq(self.names.iter()) {
            self.names = names.map(str::to_owned).collect();
            self.sources.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether the names of the program's values are known.
    pub(super) fn are_stored(&self) -> bool {
        !self.sources.is_empty()
    }

    pub(super) fn find(&self, name: &str) -> Option<StatLine> {
        let at = self.names.iter().position(|known| known == name)?;
        Some(StatLine(at as u16))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (StatLine, &str)> {
        let names = self.names.iter().enumerate();
        names.map(|(at, name)| (StatLine(at as u16), name.as_str()))
    }

    /// The value as the kernel prints it. `by_line`: the slots are lines of the text.
    pub(super) fn value(
        &self,
        slots: &[u64; STAT_SLOTS],
        by_line: bool,
        line: StatLine,
    ) -> Option<u64> {
        let at = usize::from(line.0);
        if by_line {
            return (at < self.names.len()).then(|| slots[at]);
        }
        match self.sources.get(at)? {
            Source::Slot(stored) => Some(stored.raw(slots).wrapping_mul(stored.factor)),
            Source::Sum(lines) => lines.iter().try_fold(0_u64, |sum, &line| {
                Some(sum.wrapping_add(self.value(slots, false, StatLine(line))?))
            }),
        }
    }

    /// The stored values of a line.
    pub(super) fn stored(&self, line: StatLine) -> Vec<Stored> {
        match self.sources.get(usize::from(line.0)) {
            Some(Source::Slot(stored)) => vec![*stored],
            Some(Source::Sum(lines)) => {
                let parts = lines.iter().filter(|part| **part != line.0);
                parts
                    .flat_map(|&part| self.stored(StatLine(part)))
                    .collect()
            }
            None => Vec::new(),
        }
    }

    /// Parses the kernel's text into slots. `None`: it has other lines.
    pub(super) fn parse(&self, text: &str, slots: &mut [u64; STAT_SLOTS]) -> Option<()> {
        let mut lines = text.lines();
        for (at, name) in self.names.iter().enumerate() {
            let (found, value) = lines.next()?.split_once(' ')?;
            if found != name {
                return None;
            }
            slots[at] = value.parse().ok()?;
        }
        lines.next().is_none().then_some(())
    }
}

/// Finds the value of each line. `None`: some were not found, or the arrays have other lengths.
fn find(
    names: &[String],
    lengths: Lengths,
    constant: &dyn Fn(&str) -> Option<u32>,
) -> Option<Vec<Source>> {
    let is_sum = |name: &str| SUMS.iter().any(|(sum, _)| *sum == name);
    let is_line = |name: &str| names.iter().any(|line| line == name);
    // Kernels from 7.1 count reclaim as states, older ones as events.
    for reclaim_is_state in [false, true] {
        let mut states: Vec<(u32, &str, Unit)> = Vec::new();
        for &(line, enumerator, unit) in &STATES {
            let is_reclaim = ["pgsteal_", "pgscan_", "pgrefill"]
                .iter()
                .any(|word| line.starts_with(word));
            let is_kept = if line.is_empty() {
                reclaim_is_state || SILENT.contains(&enumerator)
            } else {
                (is_line(line) || SILENT.contains(&enumerator)) && (reclaim_is_state || !is_reclaim)
            };
            if is_kept && let Some(value) = constant(enumerator) {
                states.push((value, line, unit));
            }
        }
        states.sort_by_key(|&(value, ..)| value);
        let events: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !is_sum(name) && !states.iter().any(|(_, line, _)| line == name))
            .collect();
        // Two events of version 1, pages in and out, come first and are not printed.
        let silent = lengths.events.checked_sub(events.len() as u32);
        let Some(silent @ (0 | 2)) = silent else {
            continue;
        };
        if states.len() as u32 != lengths.states || lengths.bytes() as usize > STAT_SLOTS * 8 {
            continue;
        }
        return names
            .iter()
            .map(|name| {
                if let Some((_, prefix)) = SUMS.iter().find(|(sum, _)| sum == name) {
                    let parts = names
                        .iter()
                        .enumerate()
                        .filter(|(_, part)| part.starts_with(prefix));
                    return Some(Source::Sum(parts.map(|(at, _)| at as u16).collect()));
                }
                if let Some(at) = states.iter().position(|(_, line, _)| line == name) {
                    let factor = states[at].2.factor();
                    return Some(Source::Slot(Stored {
                        at: at as u16,
                        factor,
                        is_signed: true,
                    }));
                }
                let at = events.iter().position(|event| event == name)?;
                let at = lengths.states + silent + at as u32;
                Some(Source::Slot(Stored {
                    at: at as u16,
                    factor: 1,
                    is_signed: false,
                }))
            })
            .collect();
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Linux 6.12 with Debian's configuration, shortened: its lines, and its enumerators.
    const TEXT: &str = "anon 8192\nfile 4096\nkernel 12288\nshmem 0\nslab_reclaimable 10\nslab_unreclaimable 20\nslab 30\n\
        workingset_nodereclaim 0\npgscan 5\npgsteal 4\npgscan_kswapd 2\npgscan_direct 3\npgsteal_kswapd 4\npgsteal_direct 0\n\
        pgfault 77\npgmajfault 1\n";

    fn constant(name: &str) -> Option<u32> {
        let known = [
            ("NR_SLAB_RECLAIMABLE_B", 5),
            ("NR_SLAB_UNRECLAIMABLE_B", 6),
            ("WORKINGSET_NODERECLAIM", 15),
            ("NR_ANON_MAPPED", 17),
            ("NR_FILE_PAGES", 19),
            ("NR_SHMEM", 22),
            ("MEMCG_SWAP", 46),
            ("MEMCG_KMEM", 50),
            ("PGSCAN_KSWAPD", 30),
            ("NR_VMSCAN_WRITE", 29),
        ];
        known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, value)| value)
    }

    pub(in crate::cgroups) fn lines(states: u32, events: u32) -> Lines {
        let mut lines = Lines::new(TEXT, None);
        assert!(!lines.are_stored());
        let found = find(&lines.names, Lengths { states, events }, &constant);
        lines.sources = found.unwrap_or_default();
        lines
    }

    #[test]
    fn a_line_is_found_by_the_rank_of_its_enumerator_or_its_place_in_print() {
        // Eight states: six lines, MEMCG_SWAP and MEMCG_KMEM. Six events, and with version 1 two more.
        for silent in [0, 2] {
            let lines = lines(8, 6 + silent);
            assert!(lines.are_stored());
            let mut slots = [0; STAT_SLOTS];
            for (at, slot) in slots.iter_mut().enumerate() {
                *slot = at as u64 + 1;
            }
            let page = rustix::param::page_size() as u64;
            let value = |name: &str| lines.value(&slots, false, lines.find(name).expect("a line"));
            assert_eq!(value("slab_reclaimable"), Some(1));
            assert_eq!(value("slab"), Some(3));
            assert_eq!(value("anon"), Some(4 * page));
            assert_eq!(value("kernel"), Some(8 * page));
            let first = 9 + u64::from(silent);
            assert_eq!(value("pgscan_kswapd"), Some(first));
            assert_eq!(value("pgscan"), Some(2 * first + 1));
            assert_eq!(value("pgmajfault"), Some(first + 5));
            slots[3] = u64::MAX;
            assert_eq!(
                lines.value(&slots, false, lines.find("anon").expect("a line")),
                Some(0)
            );
        }
    }

    #[test]
    fn arrays_of_other_lengths_are_not_believed() {
        for (states, events) in [(7, 6), (9, 6), (8, 5), (8, 7), (8, 9)] {
            assert!(!lines(states, events).are_stored(), "{states} {events}");
        }
    }

    #[test]
    fn the_text_is_read_by_line_and_only_if_it_has_these_lines() {
        let lines = Lines::new(TEXT, None);
        let mut slots = [0; STAT_SLOTS];
        lines.parse(TEXT, &mut slots).expect("these lines");
        assert_eq!(
            lines.value(&slots, true, lines.find("pgfault").expect("a line")),
            Some(77)
        );
        assert_eq!(lines.value(&slots, true, StatLine(90)), None);
        assert_eq!(lines.find("nothing"), None);
        for other in [
            TEXT.replace("pgfault", "pgfaults"),
            TEXT.replace("anon 8192\n", ""),
            format!("{TEXT}more 1\n"),
        ] {
            assert_eq!(lines.parse(&other, &mut slots), None);
        }
    }
}
