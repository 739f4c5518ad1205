//! Measures opening, part by part. Code that opens something starts a list on its thread; code that it calls on
//! the same thread adds what it has done.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// One part of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// What was done.
    pub name: &'static str,
    /// CPU time that it took.
    pub cpu: Duration,
    /// Wall-clock time that it took.
    pub wall: Duration,
}

struct List {
    parts: Vec<Part>,
    cpu: Duration,
    wall: Instant,
}

thread_local! {
    static LIST: RefCell<Option<List>> = const { RefCell::new(None) };
}

/// Collects the parts on this thread until it is dropped.
pub(crate) struct Timing {
    outer: Option<List>,
}

impl Timing {
    pub(crate) fn start() -> Self {
        let list = List {
            parts: Vec::new(),
            cpu: cpu(),
            wall: Instant::now(),
        };
        Self {
            outer: LIST.with_borrow_mut(|now| now.replace(list)),
        }
    }

    /// The parts since [`start`](Self::start).
    #[allow(clippy::unused_self, reason = "while it lives there is a list")]
    pub(crate) fn parts(&self) -> Vec<Part> {
        LIST.with_borrow(|list| list.as_ref().map(|list| list.parts.clone()))
            .unwrap_or_default()
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        LIST.with_borrow_mut(|list| *list = self.outer.take());
    }
}

/// Records what was done since the last call, or since the list was started. Costs nothing without a list.
pub(crate) fn done(name: &'static str) {
    LIST.with_borrow_mut(|list| {
        let Some(list) = list else { return };
        let (cpu, wall) = (cpu(), Instant::now());
        list.parts.push(Part {
            name,
            cpu: cpu.saturating_sub(list.cpu),
            wall: wall - list.wall,
        });
        (list.cpu, list.wall) = (cpu, wall);
    });
}

/// CPU time that this thread has used.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_what_was_done_in_it_and_an_inner_one_its_own() {
        let names =
            |timing: &Timing| -> Vec<_> { timing.parts().iter().map(|part| part.name).collect() };
        done("nobody asked");
        let outer = Timing::start();
        done("first");
        let inner = Timing::start();
        done("within");
        assert_eq!(names(&inner), ["within"]);
        drop(inner);
        done("second");
        assert_eq!(names(&outer), ["first", "second"]);
        drop(outer);
        let later = Timing::start();
        assert!(later.parts().is_empty());
    }
}
