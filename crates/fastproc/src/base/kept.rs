//! Names that were looked up, and how long they may be shown.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// How often a file is compared with what it was, and an answer without a name is asked for again.
pub const CHECK_EVERY: Duration = Duration::from_secs(5);
/// How long a name is kept that may come from elsewhere than a file.
const KEEP_FOR: Duration = Duration::from_secs(600);
/// The number of names that are kept.
const MOST_KEPT: usize = 65_536;

/// The time, to some milliseconds, on a clock that costs little and never steps.
#[must_use]
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What differs if a file was replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp([u64; 3], [i64; 4]);

impl Stamp {
    /// That of the file at this path; `None` if there is none.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        Some(Self::of(&std::fs::metadata(path).ok()?))
    }

    pub(crate) fn of(file: &Metadata) -> Self {
        Self(
            [file.dev(), file.ino(), file.size()],
            [
                file.mtime(),
                file.mtime_nsec(),
                file.ctime(),
                file.ctime_nsec(),
            ],
        )
    }
}

/// Names by number, as a name service answers. They are asked for again when the file of local names changes.
#[derive(Debug)]
pub struct Kept<T> {
    file: PathBuf,
    check_every: Duration,
    stamp: Option<Stamp>,
    checked: Option<Duration>,
    /// Counts changes of the file.
    changes: u32,
    names: HashMap<u32, Asked<T>>,
}

#[derive(Debug)]
struct Asked<T> {
    name: T,
    good_until: Duration,
    /// The changes of the file before it was asked for.
    changes: u32,
}

impl<T> Kept<T> {
    /// Nothing is known yet.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            check_every: CHECK_EVERY,
            stamp: None,
            checked: None,
            changes: 0,
            names: HashMap::new(),
        }
    }

    /// The name of this number. `ask` returns it, and whether there is one; it gets the one that it returned before.
    pub fn get(&mut self, id: u32, ask: impl FnOnce(Option<&T>) -> (T, bool)) -> &T {
        let now = now();
        self.check(now);
        if self.names.len() >= MOST_KEPT && !self.names.contains_key(&id) {
            self.names.clear();
        }
        let (changes, check_every) = (self.changes, self.check_every);
        let is_good = |kept: &Asked<T>| kept.changes == changes && now < kept.good_until;
        let answer = |before| {
            let (name, found) = ask(before);
            let keep_for = if found { KEEP_FOR } else { check_every };
            Asked {
                name,
                good_until: now + keep_for,
                changes,
            }
        };
        match self.names.entry(id) {
            Entry::Occupied(kept) if is_good(kept.get()) => &kept.into_mut().name,
            Entry::Occupied(mut kept) => {
                let name = answer(Some(&kept.get().name));
                kept.insert(name);
                &kept.into_mut().name
            }
            Entry::Vacant(place) => &place.insert(answer(None)).name,
        }
    }

    /// Compares the file, unless that was done lately.
    fn check(&mut self, now: Duration) {
        if self
            .checked
            .is_some_and(|checked| now < checked + self.check_every)
        {
            return;
        }
        self.checked = Some(now);
        let stamp = Stamp::at(&self.file);
        if self.stamp != stamp {
            self.stamp = stamp;
            self.changes = self.changes.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use fastproc_testbed::Folder;

    use super::*;

    /// Names that are checked this often, and how many answers there were at each question.
    fn asked(check_every: Duration, found: bool, change: impl Fn(&Path)) -> [u32; 3] {
        let folder = Folder::new("kept");
        let file = folder.join("passwd");
        std::fs::write(&file, "a").expect("a file");
        let mut kept = Kept::new(&file);
        kept.check_every = check_every;
        let mut asked = 0;
        [0, 1, 2].map(|at| {
            if at == 2 {
                change(&file);
            }
            let name = kept.get(7, |before| {
                assert_eq!(before.copied(), (asked > 0).then_some(asked));
                asked += 1;
                (asked, found)
            });
            *name
        })
    }

    #[test]
    fn a_name_is_asked_for_again_when_the_file_changes() {
        let other = |file: &Path| std::fs::write(file, "other").expect("a file");
        assert_eq!(asked(Duration::ZERO, true, |_| ()), [1, 1, 1]);
        assert_eq!(asked(Duration::ZERO, true, other), [1, 1, 2]);
        let gone = |file: &Path| std::fs::remove_file(file).expect("the file is removed");
        assert_eq!(asked(Duration::ZERO, true, gone), [1, 1, 2]);
        // The file is not looked at each time.
        assert_eq!(asked(Duration::MAX / 4, true, other), [1, 1, 1]);
    }

    #[test]
    fn an_answer_without_a_name_is_asked_for_again() {
        assert_eq!(asked(Duration::ZERO, false, |_| ()), [1, 2, 3]);
        assert_eq!(asked(Duration::MAX / 4, false, |_| ()), [1, 1, 1]);
    }
}
