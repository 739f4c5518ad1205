//! Values that move: read from the kernel, by the code under test, and from the kernel again.

use crate::gate;

/// Readings of values that move, of one test.
///
/// A reading is judged if the kernel said the same before and after it. The others are counted: nobody can say what was
/// right between them. [`Brackets::finish`] asserts that enough were judged.
#[derive(Debug, Default)]
pub struct Brackets {
    judged: u64,
    moved: u64,
}

impl Brackets {
    /// No reading yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `kernel`, `ours`, `kernel`. Returns the two where the kernel's answer stayed the same.
    pub fn read<K: PartialEq, T>(
        &mut self,
        mut kernel: impl FnMut() -> K,
        ours: impl FnOnce() -> T,
    ) -> Option<(K, T)> {
        let before = kernel();
        let ours = ours();
        let same = kernel() == before;
        self.count(same);
        same.then_some((before, ours))
    }

    /// Counts a reading that the test made itself.
    pub fn count(&mut self, same: bool) {
        *(if same {
            &mut self.judged
        } else {
            &mut self.moved
        }) += 1;
    }

    /// How many were judged.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// How many moved, and were not.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Notes the numbers for the summary of the run.
    ///
    /// # Panics
    ///
    /// If fewer than `percent` of a hundred readings were judged.
    #[track_caller]
    pub fn finish(self, percent: u64) {
        gate::compared(self.judged, self.moved);
        let all = self.judged + self.moved;
        assert!(
            self.judged > 0 && self.judged * 100 >= all * percent,
            "of {all} readings only {} stood still long enough to be judged",
            self.judged
        );
    }
}
