//! What each view shows of each process, decided again only for changed records.

use std::{fs, os::unix::fs::MetadataExt};

use fastproc::{Snapshot, difference::PerProcess};

use crate::view::{View, Visibility};

/// The number of views and collectors for which it is remembered.
const MOST: usize = 16;

#[derive(Debug)]
struct Of {
    view: View,
    field_set: usize,
    shown: PerProcess<Visibility>,
}

/// What the last views show, the last one first.
#[derive(Debug, Default)]
pub(crate) struct Visibilities(Vec<Of>);

impl Visibilities {
    /// What this view shows of each process of the snapshot of this collector, in their order.
    pub(crate) fn update(
        &mut self,
        view: View,
        field_set: usize,
        snapshot: &Snapshot<'_>,
    ) -> &[Visibility] {
        let known = self
            .0
            .iter()
            .position(|of| (of.view, of.field_set) == (view, field_set));
        let of = match known {
            Some(at) => self.0.remove(at),
            None => Of {
                view,
                field_set,
                shown: PerProcess::new(),
            },
        };
        self.0.truncate(MOST - 1);
        self.0.insert(0, of);
        self.0[0].shown.update(snapshot, |process| {
            view.visibility(process, || user_ns(process.pid()))
        })
    }
}

/// The user namespace of a process whose record was read from `/proc`; 0 if unknown.
fn user_ns(pid: u32) -> u32 {
    fs::metadata(format!("/proc/{pid}/ns/user")).map_or(0, |file| file.ino() as u32)
}
