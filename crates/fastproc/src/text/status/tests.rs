//! Checks that no known line is copied from the kernel's text, which would hide a wrong rendering.

use super::{Format, lines::Line};
use crate::base::host::Host;

/// A line that renders differently is copied from the kernel's text, which would hide the error.
#[test]
fn every_line_that_is_known_comes_from_records() {
    let host = Host::read().expect("a machine");
    let format = Format::read(&host)
        .expect("the format can be learned")
        // Any bit will do.
        .with_thp_disable_bit(Some(24))
        .with_thread_features(true);
    let copied: Vec<&str> = format
        .kernel_lines()
        .filter(|label| Line::with_label(label.as_bytes()).is_some())
        .collect();
    assert!(copied.is_empty(), "from the kernel's text: {copied:?}");
}
