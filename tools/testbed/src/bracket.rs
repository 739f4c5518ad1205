//! Values that change: read from the kernel, by the code under test, and from the kernel again.

use crate::gate;

/// The readings of changing values in one test.
///
/// A reading is judged if the kernel's value is the same before and after it. Other readings are only counted, because
/// the right value between them is unknown. [`Brackets::finish`] asserts that enough were judged.
#[derive(Debug, Default)]
pub struct Brackets {
    judged: u64,
    moved: u64,
}

impl Brackets {
    /// Starts without readings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `kernel`, `ours`, `kernel`. Returns the first two if the kernel's answer stayed the same.
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

    /// The number of judged readings.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// The number of readings during which the value changed.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Notes the numbers for the summary of the run.
    ///
    /// # Panics
    ///
    /// If less than `percent` of all readings were judged.
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
