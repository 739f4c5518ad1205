//! Checks that no known line is copied from the kernel's text, which would hide a wrong rendering.

use super::{Format, lines::Line, parse_rights};
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

#[test]
fn rights_are_read_below_the_name() {
    let status = b"Name:\tUid:\\n\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n\
            CapPrm:\t00000000000000ff\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t1\n";
    let (users, credentials) = parse_rights(status).expect("all is there");
    let uids = [users.uid, users.euid, users.suid, users.fsuid];
    let gids = [users.gid, users.egid, users.sgid, users.fsgid];
    assert_eq!((uids, gids), ([1, 2, 3, 4], [5, 6, 7, 8]));
    assert_eq!(credentials.cap_permitted, 0xff);
    assert_eq!(credentials.cap_effective, 0x1ff_ffff_ffff);
    assert!(credentials.no_new_privs());
    assert!(parse_rights(b"Name:\tx\nUid:\t1\t2\n").is_none());
    assert!(parse_rights(b"").is_none());
}
