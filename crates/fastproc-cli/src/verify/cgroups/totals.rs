//! Totals of pressure, and what bounds them. The rule is in `judge`.

use std::time::Duration;

use fastproc::cgroups::Cgroup;

/// Totals of pressure in microseconds, some and full, in the order of their files.
pub type Totals = [[u64; 2]; 3];

/// Those that a snapshot has.
pub fn totals(cgroup: Cgroup<'_>) -> Option<Totals> {
    let pressure = cgroup.pressure()?;
    let totals = [
        [pressure.cpu_some_ns, pressure.cpu_full_ns],
        [pressure.memory_some_ns, pressure.memory_full_ns],
        [pressure.io_some_ns, pressure.io_full_ns],
    ];
    Some(totals.map(|both| both.map(|ns| ns / 1000)))
}

/// What bounds the totals of a file of pressure.
#[derive(Clone, Copy)]
pub struct Bound {
    /// Microseconds.
    took: u64,
    /// What earlier snapshots showed: theirs never fall.
    shown: [u64; 2],
}

impl Bound {
    /// `took`: from before the first reading until after the snapshot.
    pub fn new(took: Duration, shown: Option<[u64; 2]>) -> Self {
        Self {
            took: took.as_micros() as u64,
            shown: shown.unwrap_or_default(),
        }
    }

    /// The most that a total can be.
    pub fn most(self, line: &str, before: u64) -> u64 {
        let shown = self.shown[usize::from(line.starts_with("full"))];
        // Both are rounded down.
        (before + self.took + 1).max(shown)
    }
}
