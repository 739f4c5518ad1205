//! What is compared of a cgroup: the kernel's files, and how a record shows them.

use std::{borrow::Cow, collections::BTreeMap};

use fastproc::cgroups::{
    Cgroup, Snapshot, TextFile,
    record::{PageSize, UNLIMITED, huge_page_limit},
};

use super::{judge::Shape, totals::totals};

/// The file that each cgroup has until it is removed.
pub const EVENTS: &str = "cgroup.events";

/// A file, and how a record shows it.
#[derive(Clone, Copy)]
pub enum Shown {
    Whole(TextFile),
    /// Its name, and which resource it is of.
    Pressure(&'static str, usize),
    /// A file of a size of huge pages.
    Huge(u64, &'static Huge),
    Events,
    Stat,
    Type,
}

/// A file of huge pages.
pub struct Huge {
    /// Its name, without that of the size.
    name: &'static str,
    value: fn(&PageSize) -> Option<u64>,
}

static HUGE: [Huge; 5] = [
    Huge {
        name: "hugetlb.*.current",
        value: |size| Some(size.current),
    },
    Huge {
        name: "hugetlb.*.max",
        value: PageSize::max,
    },
    Huge {
        name: "hugetlb.*.rsvd.current",
        value: PageSize::reserved,
    },
    Huge {
        name: "hugetlb.*.rsvd.max",
        value: PageSize::reserved_max,
    },
    Huge {
        name: "hugetlb.*.events",
        value: PageSize::failures,
    },
];

/// All of them, with the names of the files. `page_sizes`: the sizes of huge pages, and their names.
pub fn files(
    page_sizes: &BTreeMap<u64, String>,
) -> impl Iterator<Item = (Cow<'static, str>, Shown)> {
    let whole = TextFile::ALL.iter().map(|&file| Shown::Whole(file));
    let parts = [
        Shown::Events,
        Shown::Stat,
        Shown::Type,
        Shown::Pressure("cpu.pressure", 0),
        Shown::Pressure("memory.pressure", 1),
        Shown::Pressure("io.pressure", 2),
    ];
    let all = whole.chain(parts).map(|shown| (shown.name().into(), shown));
    let huge = page_sizes.iter().flat_map(|(&size, name)| {
        let path = |huge: &Huge| huge.name.replace('*', name).into();
        HUGE.iter()
            .map(move |huge| (path(huge), Shown::Huge(size, huge)))
    });
    all.chain(huge)
}

impl Shown {
    /// What a report calls the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole(file) => file.name(),
            Self::Pressure(name, _) => name,
            Self::Huge(_, huge) => huge.name,
            Self::Events => EVENTS,
            Self::Stat => "cgroup.stat",
            Self::Type => "cgroup.type",
        }
    }

    /// What a record says, in the form of the kernel's file.
    pub fn text(self, snapshot: Snapshot<'_>, cgroup: Cgroup<'_>) -> Option<String> {
        let identity = &cgroup.record().identity;
        Some(match self {
            Self::Whole(file) => {
                let mut text = Vec::new();
                if !snapshot.render(cgroup, file, &mut text) {
                    return None;
                }
                String::from_utf8(text).ok()?
            }
            Self::Events => {
                let (populated, frozen) = (identity.populated, identity.frozen);
                format!("populated {populated}\nfrozen {frozen}\n")
            }
            Self::Stat => format!(
                "nr_descendants {}\nnr_dying_descendants {}\n",
                identity.descendants, identity.dying_descendants
            ),
            Self::Type => ["domain\n", "threaded\n"][usize::from(identity.threaded == 1)].into(),
            Self::Pressure(_, at) => {
                let [some, full] = totals(cgroup)?[at];
                format!("some total={some}\nfull total={full}\n")
            }
            Self::Huge(size, huge) => {
                let of_size = cgroup.page_sizes().iter().find(|one| one.size == size)?;
                let value = match (huge.value)(of_size)? {
                    UNLIMITED => "max".to_owned(),
                    value => value.to_string(),
                };
                if huge.name.ends_with("events") {
                    format!("max {value}\n")
                } else {
                    format!("{value}\n")
                }
            }
        })
    }

    /// What the kernel's file says, in the form of a record.
    pub fn kernel(self, text: String) -> String {
        let is_huge = matches!(self, Self::Huge(..));
        let no_limit = |text: &str| {
            text.trim_end()
                .parse()
                .is_ok_and(|bytes| huge_page_limit(bytes) == UNLIMITED)
        };
        if is_huge && no_limit(&text) {
            return "max\n".into();
        }
        text
    }

    /// The size of huge pages, if the file is of one.
    pub fn size(self) -> Option<u64> {
        match self {
            Self::Huge(size, _) => Some(size),
            _ => None,
        }
    }

    pub fn shape(self) -> Shape {
        match self {
            Self::Whole(_) => Shape::Whole,
            _ => Shape::Part,
        }
    }
}
