//! What a line that is rendered wrongly would hide behind.

use super::{Format, lines::Line};
use crate::base::host::Host;

/// A line that does not survive is copied from the kernel's text, so that nobody would see that it is wrong.
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
