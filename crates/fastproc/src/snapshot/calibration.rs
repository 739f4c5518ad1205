//! Results of comparing records with the kernel's own text.

/// Results of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calibration {
    /// Whether statm and status of this kernel count the per-CPU parts of the resident set, as Linux 6.12 and
    /// later do. `None` if no process had such parts, or memory was not requested.
    pub exact_rss: Option<bool>,
    /// Whether the name of a kernel worker is its `comm` and its description, as before Linux 6.11.
    pub workers_by_comm: bool,
    /// Which bit of `mm->flags` disables transparent huge pages; its position is in no type information.
    pub thp_disable_bit: Option<u32>,
    /// Whether records hold the features of a thread, which x86 kernels with user shadow stacks show.
    pub thread_features: bool,
}
