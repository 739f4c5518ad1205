//! What is compared of a cgroup: the kernel's files, and how a record shows them.

use fastproc::cgroups::{Cgroup, Fields, Snapshot, TextFile};

use super::{judge::Shape, totals::totals};

/// The file that each cgroup has until it is removed.
pub const EVENTS: &str = "cgroup.events";

/// A file, and how a record shows it.
#[derive(Clone, Copy)]
pub enum Shown {
    Whole(TextFile),
    /// Its name, and which resource it is of.
    Pressure(&'static str, usize),
    Events,
    Stat,
    Type,
}

/// All of them.
pub fn files() -> impl Iterator<Item = Shown> {
    let whole = TextFile::ALL.iter().map(|&file| Shown::Whole(file));
    let pressure = Fields::PRESSURE.files().into_iter().enumerate();
    whole
        .chain([Shown::Events, Shown::Stat, Shown::Type])
        .chain(pressure.map(|(at, name)| Shown::Pressure(name, at)))
}

impl Shown {
    /// What a report calls the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole(file) => file.name(),
            Self::Pressure(name, _) => name,
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
        })
    }

    pub fn shape(self) -> Shape {
        match self {
            Self::Whole(_) => Shape::Whole,
            _ => Shape::Part,
        }
    }
}
