//! Open files: walked for one view, so that a user's request takes no longer because others have many.

use std::time::{Duration, Instant};

use fastproc::{
    access::Viewer,
    files::{Bounds, Error, Fields, Files, Shared, Source},
    source::service::wire::{Reply, Status},
};

use super::{Answer, Collectors, Done, Wish, cgroups};
use crate::{budget::cpu_time, user_events::chain, view::View};

/// The sets of fields. Without files, only sockets or GPUs have records.
const SETS: [Fields; 6] = [
    Fields::empty(),
    Fields::SOCKETS,
    Fields::GPUS,
    Fields::GPUS.union(Fields::SOCKETS),
    Fields::FILES.union(Fields::PATHS),
    Fields::FILES.union(Fields::PATHS).union(Fields::SOCKETS),
];
/// The collectors for users come first. Root has others: a user's requests would keep their larger arrays in memory.
pub(super) const COUNT: usize = 2 * SETS.len();
/// The most descriptors of all collectors: a program and its maps.
pub(super) const DESCRIPTORS: usize = COUNT * 32;

/// How much is read for root. All its collectors and an answer take less than `MemoryMax=` of the unit.
const OF_ROOT: Bounds = Bounds {
    files: 1 << 19,
    text_bytes: 32 << 20,
    until: Duration::MAX,
};
/// How much is read for a user: of its own processes, for the others are only counted.
const OF_USER: Bounds = Bounds {
    files: 1 << 16,
    text_bytes: 8 << 20,
    until: Duration::MAX,
};
/// CPU time after which reading for this view is broken off. Root waits for longer, but others wait for its turn to end.
pub(super) fn longest(view: View) -> Duration {
    match view {
        View::All => Duration::from_secs(4),
        View::Of(_) => Duration::from_millis(200),
    }
}

/// Which collector reads these groups.
pub(super) fn collector_of(groups: u32, view: View) -> usize {
    let of_root = match view {
        View::All => SETS.len(),
        View::Of(_) => 0,
    };
    of_root + set_of(groups)
}

fn set_of(groups: u32) -> usize {
    let has = |group| Fields::from_bits_retain(groups).contains(group);
    let of_others = if has(Fields::FILES) {
        4
    } else {
        2 * usize::from(has(Fields::GPUS))
    };
    of_others + usize::from(has(Fields::SOCKETS))
}

impl Collectors {
    pub(super) fn make_files(&mut self, wish: Wish) -> Done {
        let began = cpu_time();
        let at = collector_of(wish.request.groups, wish.view);
        let (viewer, bounds) = (Viewer::from(wish.view), bounds(wish.view));
        let mut walked = Instant::now();
        let shared = self.open_files(at, bounds).and_then(|files| {
            walked = Instant::now();
            // Without the time that opening has taken, which comes once.
            let until = cpu_time() + wish.longest;
            files.share(&viewer, Bounds { until, ..bounds })
        });
        let place = cgroups::COUNT + at;
        self.used[place] = self.files[at].is_some().then(Instant::now);
        self.read[place] = shared.is_ok().then_some((walked, wish.next));
        let is_own = matches!(shared, Err(Error::TooMany)) && wish.view != View::All;
        let answer = shared.map_err(|error| self.status_of(&error));
        let cpu = cpu_time().saturating_sub(began);
        Done {
            generation: answer.as_ref().map_or(0, |_| wish.next),
            answer: answer.map(|shared| answer_of(shared, wish)),
            reason: self.reason.take(),
            is_own,
            was_known: false,
            read: cpu,
            cpu,
        }
    }

    fn open_files(&mut self, at: usize, bounds: Bounds) -> Result<&mut Files, Error> {
        let opened = &mut self.files[at];
        if let Some(files) = opened {
            return Ok(files);
        }
        // Only by BPF: a file system of a user may never answer.
        let builder = Files::builder()
            .fields(SETS[at % SETS.len()])
            .bounds(bounds);
        let files = builder.source(Some(Source::Bpf)).open_at(None)?;
        Ok(opened.insert(files))
    }

    fn status_of(&mut self, error: &Error) -> Status {
        if let Error::TooMany | Error::TooLong | Error::Overflow { .. } = error {
            return Status::Busy;
        }
        self.reason = Some(format!("open files cannot be read: {}", chain(error)));
        Status::Failed
    }
}

fn bounds(view: View) -> Bounds {
    match view {
        View::All => OF_ROOT,
        View::Of(_) => OF_USER,
    }
}

fn answer_of(shared: Shared, wish: Wish) -> Answer {
    let reply = Reply {
        layout: Files::LAYOUT,
        generation: wish.next,
        groups: wish.request.groups,
        kernel_boottime_ns: shared.began_ns,
        source: 1,
        parts: shared.parts,
        ..Reply::empty(Status::Ok)
    };
    Answer {
        reply,
        words: shared.words,
    }
}

#[cfg(test)]
mod tests {
    use fastproc::source::service::wire::{Op, Request};
    use fastproc_testbed::{gate, needs};

    use super::*;

    /// Large tables may be another user's.
    #[test]
    fn reading_that_takes_too_long_is_broken_off_for_root_and_for_users_without_blame() {
        needs!(gate::bpf());
        let mut all = Collectors::default();
        let mut used = None;
        for view in [View::All, View::of_user(54_321)] {
            let wish = |longest| Wish {
                view,
                request: Request::new(Op::Files),
                known: None,
                next: 1,
                most_of_user: 0,
                longest,
            };
            let done = all.make(wish(Duration::ZERO));
            let refused = (done.answer.err(), done.is_own);
            assert_eq!(refused, (Some(Status::Busy), false), "{view:?}");
            assert!(all.make(wish(Duration::from_secs(3600))).answer.is_ok());
            // A user's request keeps none of root's arrays alive.
            let of_root = all.used[cgroups::COUNT + collector_of(0, View::All)];
            assert_eq!(*used.get_or_insert(of_root), of_root);
        }
    }

    #[test]
    fn each_set_is_for_requests_with_its_groups() {
        for groups in 0..32 {
            let set = SETS[set_of(groups)];
            let asked = Fields::from_bits_retain(groups);
            for group in [Fields::FILES, Fields::SOCKETS] {
                assert_eq!(set.contains(group), asked.contains(group), "{asked:?}");
            }
            let has_gpus = set.intersects(Fields::GPUS | Fields::FILES);
            assert_eq!(has_gpus, asked.intersects(Fields::GPUS | Fields::FILES));
        }
    }
}
