//! Cgroups: opened, read, and converted to what a view may see.

use std::time::{Duration, Instant};

use fastproc::{
    cgroups::{self, Bounds, Fields},
    source::service::wire::Status,
};

use super::{Answer, Collectors, Done, Wish, answer::Draft, permission::Permission};
use crate::{budget::cpu_time, user_events::chain, view::View};

/// The number of collectors: pressure costs more than all the rest, so one is without it.
pub(super) const COUNT: usize = 2;
/// Files that each collector keeps open, and what it opens besides.
const KEPT: usize = 256;
/// The most descriptors of all collectors.
pub(super) const DESCRIPTORS: usize = COUNT * (KEPT + 32);

/// How much is read for root. Users may make as many cgroups as memory permits.
const OF_ROOT: Bounds = Bounds {
    cgroups: 1 << 16,
    // The path of a container of Kubernetes has about 200, and one in a container adds as much.
    path_bytes: 1 << 10,
    parts: 64,
    bytes_of_all: 16 << 20,
    descriptors: KEPT,
    until: Duration::MAX,
};

/// CPU time after which reading for a user is broken off. The library reads the files if it has no answer after half a
/// second.
pub(super) const LONGEST: Duration = Duration::from_millis(400);

/// The groups that a reader is shown. It has the others from elsewhere, or not at all.
fn asked(groups: u32) -> Fields {
    Fields::from_bits_retain(groups) - Fields::PRESSURE_AVERAGES
}

/// Which collector reads these groups.
pub(super) fn collector_of(groups: u32) -> usize {
    usize::from(asked(groups).contains(Fields::PRESSURE))
}

impl Collectors {
    pub(super) fn make_cgroups(&mut self, wish: Wish) -> Done {
        let began = cpu_time();
        let mut bounds = match wish.view {
            View::All => OF_ROOT,
            View::Of(_) => Bounds {
                cgroups: wish.most_of_user.min(OF_ROOT.cgroups),
                bytes_of_all: OF_ROOT.bytes_of_all / 4,
                ..OF_ROOT
            },
        };
        let at = collector_of(wish.request.groups);
        let opened = self.open(at, bounds);
        self.used[at] = opened.is_ok().then(Instant::now);
        // Without the time that opening has taken, which comes once.
        if wish.view != View::All {
            bounds.until = cpu_time() + wish.longest;
        }
        let read = opened.and_then(|()| match wish.known {
            Some(generation) => Ok(generation),
            None => self.read(at, bounds, wish.next),
        });
        let after = cpu_time();
        let answer = read.and_then(|generation| self.answer(wish, bounds, generation));
        Done {
            generation: read.unwrap_or(0),
            answer,
            reason: self.reason.take(),
            is_own: false,
            was_known: wish.known.is_some(),
            read: after.saturating_sub(began),
            cpu: cpu_time().saturating_sub(began),
        }
    }

    /// Opens this collector, if it is not open.
    fn open(&mut self, at: usize, bounds: Bounds) -> Result<(), Status> {
        if self.all[at].is_none() {
            self.all[at] = Some(open(at, bounds, &mut self.reason)?);
        }
        Ok(())
    }

    /// Makes a snapshot of this generation, which it returns.
    fn read(&mut self, at: usize, bounds: Bounds, generation: u64) -> Result<u64, Status> {
        let began = Instant::now();
        let read = self.snapshot(at, bounds);
        // If there are too many cgroups nothing is read, and the last snapshot stays.
        let last = self.all[at].as_ref();
        if last.is_none_or(|collector| collector.last().is_empty()) {
            self.read[at] = None;
        }
        read?;
        self.read[at] = Some((began, generation));
        Ok(generation)
    }

    fn snapshot(&mut self, at: usize, bounds: Bounds) -> Result<(), Status> {
        let collector = self.all[at].as_mut().ok_or(Status::Failed)?;
        collector.set_bounds(bounds);
        match collector.snapshot() {
            Ok(_) => Ok(()),
            Err(error) => Err(status(&error, &mut self.reason)),
        }
    }

    /// Converts the last snapshot to what the view may see of it. The files are checked after it was made.
    fn answer(&self, wish: Wish, bounds: Bounds, generation: u64) -> Result<Answer, Status> {
        let (view, groups) = (wish.view, asked(wish.request.groups));
        let collector = self.all[collector_of(wish.request.groups)].as_ref();
        let collector = collector.ok_or(Status::Failed)?;
        // It may have been made for root.
        if !collector.fits(bounds) {
            return Err(Status::Busy);
        }
        let mut permission = match view {
            View::All => None,
            View::Of(reader) => Some(Permission::new(collector.mount(), reader, groups)?),
        };
        let snapshot = collector.last();
        let mut draft = Draft::new(snapshot, groups, collector.source(), generation);
        for cgroup in snapshot.iter() {
            let permitted = match &mut permission {
                None => Some(groups),
                Some(_) if cpu_time() >= bounds.until => return Err(Status::Busy),
                Some(permission) => permission.of(cgroup)?,
            };
            if let Some(groups) = permitted {
                draft.push(snapshot, cgroup, groups);
            }
        }
        Ok(draft.finish())
    }
}

/// Opens a collector, if there are no more cgroups than these bounds allow: the program's maps have room for all.
fn open(
    at: usize,
    bounds: Bounds,
    reason: &mut Option<String>,
) -> Result<cgroups::Cgroups, Status> {
    let all = Fields::ALL_BUT_AVERAGES;
    let fields = [all - Fields::PRESSURE, all][at];
    let builder = cgroups::Cgroups::builder().fields(fields).bounds(bounds);
    // Not by itself.
    let opened = builder.open_at(None);
    let collector = opened.map_err(|error| status(&error, reason))?;
    // It would read the files for as long as the service runs. Readers can do so themselves until there is memory again.
    if let Some(refusal) = collector.refusal() {
        if refusal.is_temporary() {
            return Err(status(refusal, reason));
        }
        *reason = Some(format!("cgroups are read from files: {}", chain(refusal)));
    }
    Ok(collector)
}

/// The status that a reader receives for an error, and the reason for whoever runs the service.
fn status(error: &cgroups::Error, reason: &mut Option<String>) -> Status {
    if matches!(error, cgroups::Error::TooMany) {
        return Status::Busy;
    }
    *reason = Some(format!("cgroups cannot be read: {}", chain(error)));
    Status::Failed
}

#[cfg(test)]
mod tests {
    use fastproc::source::service::wire::{Op, Request};
    use fastproc_testbed::{Cgroup, alone, gate};

    use super::*;
    use crate::background::{Background, Progress};

    const USER: View = View::of_user(54_321);

    /// A cgroup, if there is BPF and the default hierarchy.
    fn cgroup(name: &str) -> Option<Cgroup> {
        gate::bpf().then(|| Cgroup::new(name))?
    }

    fn wish(view: View) -> Wish {
        Wish {
            view,
            request: Request {
                groups: Fields::CPU.bits(),
                ..Request::new(Op::Cgroups)
            },
            known: None,
            next: 1,
            most_of_user: 2,
            longest: LONGEST,
        }
    }

    #[test]
    fn no_generation_comes_again_after_the_collectors_are_lost() {
        let mut cgroups = Background::default();
        let finish = |cgroups: &mut Background, generation| {
            let release = cgroups.hold();
            let done = Done {
                generation,
                answer: Err(Status::Failed),
                reason: None,
                is_own: false,
                was_known: false,
                read: Duration::ZERO,
                cpu: Duration::ZERO,
            };
            let sent = release.send((Box::default(), done));
            sent.expect("it is awaited");
            assert!(matches!(cgroups.progress(), Some(Progress::Done(_))));
        };
        finish(&mut cgroups, 7);
        // As if no snapshot could be made, and as if the thread had panicked.
        finish(&mut cgroups, 0);
        drop(cgroups.hold());
        assert!(matches!(cgroups.progress(), Some(Progress::Failed)));
        assert_eq!(cgroups.next_generation(), 8);
        assert_eq!(cgroups.read_since(0, None), None);
    }

    /// Opening a collector takes memory of the kernel for each cgroup, which a user may make.
    #[test]
    fn nothing_is_opened_for_a_user_if_there_are_too_many_cgroups() {
        let _alone = alone();
        let Some(cgroup) = cgroup("outer/inner") else {
            return;
        };
        let mut all = Collectors::default();
        let done = all.make(wish(USER));
        assert_eq!(done.answer.err(), Some(Status::Busy));
        assert!(all.all.iter().all(Option::is_none));
        // Root has a bound of its own.
        assert!(all.make(wish(View::All)).answer.is_ok());
        assert!(all.all[0].is_some() && all.all[1].is_none());
        // Refusing a user leaves it its snapshot.
        let next = Wish {
            next: 2,
            ..wish(USER)
        };
        assert_eq!(all.make(next).answer.err(), Some(Status::Busy));
        let known = all.read[0].map(|(_, generation)| generation);
        assert_eq!(known, Some(1));
        let again = Wish {
            known,
            ..wish(View::All)
        };
        assert!(all.make(again).answer.is_ok());
        drop(cgroup);
    }

    #[test]
    fn a_collector_that_nobody_uses_is_closed_and_its_snapshot_is_not_known() {
        let _alone = alone();
        let Some(cgroup) = cgroup("any") else {
            return;
        };
        let mut all = Box::<Collectors>::default();
        let done = all.make(wish(View::All));
        assert!(done.answer.is_ok());
        let mut cgroups = Background::default();
        assert_eq!(cgroups.closes_at(), None);
        let sent = cgroups.hold().send((all, done));
        sent.expect("it is awaited");
        assert!(matches!(cgroups.progress(), Some(Progress::Done(_))));
        let at = cgroups.closes_at().expect("one is open");
        let before = at.checked_sub(Duration::from_nanos(1));
        cgroups.close_unused(before.expect("the machine has run for longer"));
        assert_eq!(cgroups.read_since(0, None), Some(1));
        cgroups.close_unused(at);
        assert_eq!(
            (cgroups.closes_at(), cgroups.read_since(0, None)),
            (None, None)
        );
        assert!(cgroups.all.is_some_and(|all| all.all[0].is_none()));
        drop(cgroup);
    }

    /// Reading, and checking what the user may read, takes as long as users have made cgroups.
    #[test]
    fn for_a_user_reading_is_broken_off_and_for_root_it_is_not() {
        let _alone = alone();
        let Some(cgroup) = cgroup("outer/inner") else {
            return;
        };
        let mut all = Collectors::default();
        let of = |view, longest| Wish {
            most_of_user: OF_ROOT.cgroups,
            longest,
            ..wish(view)
        };
        let at_once = of(USER, Duration::ZERO);
        assert_eq!(all.make(at_once).answer.err(), Some(Status::Busy));
        assert!(all.make(of(View::All, Duration::ZERO)).answer.is_ok());
        // The snapshot is there, but it is not checked.
        let known = Wish {
            known: Some(1),
            ..at_once
        };
        assert_eq!(all.make(known).answer.err(), Some(Status::Busy));
        let hour = Duration::from_secs(3600);
        assert!(all.make(of(USER, hour)).answer.is_ok());
        drop(cgroup);
    }
}
