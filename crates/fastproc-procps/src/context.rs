//! The context of a caller of procps's library: its items, and the source of their values.

use std::{
    ffi::{c_int, c_uint},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use fastproc::{Fields, Process};

use crate::{
    abi::{Counts, Fetch, Functions, PidsResult, Rows, SELECT_UID, Stack, TASKS_ONLY, set_errno},
    history::{History, Sums},
    items::{Item, Table},
    plan::Plan,
    real::Real,
    records::Records,
    rows::Filler,
};

/// The library that answers.
#[derive(Debug)]
enum Source {
    /// Undecided: nothing was fetched yet.
    Undecided,
    Records(Box<Records>),
    /// procps's own library, permanently.
    Real,
}

/// The state of reading one process at a time.
#[derive(Debug)]
struct OneByOne {
    source: Source,
    which: c_uint,
    /// The index of the next process.
    next: usize,
    filler: Filler,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) references: c_int,
    functions: &'static Functions,
    table: &'static Table,
    /// The items as the caller gave them.
    numbers: Vec<u32>,
    plan: Plan,
    source: Source,
    /// procps's own context with the same items, if needed.
    real: Option<Real>,
    history: History,
    /// Rows of procps's own library that are cut before the counters, so that the caller sees only its items.
    ended: Vec<*mut PidsResult>,
    filler: Filler,
    one_by_one: Option<Box<OneByOne>>,
    counts: Counts,
    shown: Vec<*mut Stack>,
    fetch: Fetch,
}

/// The counters that procps's own library reads for our differences, after the caller's items.
const COUNTED: [Item; 4] = [Item::ID_TID, Item::TICS_ALL, Item::FLT_MAJ, Item::FLT_MIN];

impl Context {
    pub(crate) fn new(functions: &'static Functions, table: &'static Table, items: &[u32]) -> Self {
        let plan = plan_of(table, items);
        Self {
            references: 1,
            functions,
            table,
            filler: Filler::new(functions, table, items),
            numbers: items.to_vec(),
            plan,
            source: Source::Undecided,
            real: None,
            history: History::default(),
            ended: Vec::new(),
            one_by_one: None,
            counts: Counts::default(),
            shown: Vec::new(),
            fetch: Fetch {
                counts: ptr::null_mut(),
                stacks: ptr::null_mut(),
            },
        }
    }

    pub(crate) fn has_items(&self) -> bool {
        !self.numbers.is_empty()
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    /// Sets other items, or the same again.
    pub(crate) fn reset(&mut self, items: &[u32]) -> c_int {
        self.open_rows();
        let same = self.numbers == items;
        if !same {
            self.numbers = items.to_vec();
            self.plan = plan_of(self.table, items);
        }
        self.filler.reset(items, same);
        if let Some(one_by_one) = &mut self.one_by_one {
            one_by_one.filler.reset(items, same);
        }
        let numbers = self.real_items();
        self.real.as_mut().map_or(0, |real| real.reset(&numbers))
    }

    /// Fetches all processes.
    pub(crate) fn reap(&mut self, which: c_uint) -> *mut Fetch {
        if which == TASKS_ONLY
            && let Some(fetch) = self.fetch_records(None)
        {
            return fetch;
        }
        self.fetch_real(|real| real.reap(which))
    }

    /// Fetches the processes with these pids, or of these users.
    pub(crate) fn select(&mut self, ids: &[u32], which: c_uint) -> *mut Fetch {
        // Processes that are selected by pid are few, so procps's own library reads them.
        if which == SELECT_UID
            && let Some(fetch) = self.fetch_records(Some(ids))
        {
            return fetch;
        }
        self.fetch_real(|real| real.select(ids, which))
    }

    /// Decides on the library at the first fetch, and fetches from records. `None`: procps's own library must do it.
    fn fetch_records(&mut self, users: Option<&[u32]>) -> Option<*mut Fetch> {
        if matches!(self.source, Source::Undecided) {
            self.source = Records::decide(self.plan.fields, self.plan.texts)
                .map_or(Source::Real, |records| Source::Records(Box::new(records)));
        }
        let Source::Records(records) = &mut self.source else {
            return None;
        };
        let mut fields = self.plan.fields;
        if users.is_some() {
            fields |= Fields::USERS;
        }
        let (plan, history, filler) = (&self.plan, &mut self.history, &mut self.filler);
        let counts = &mut self.counts;
        let table = self.table;
        let fetched = catch_unwind(AssertUnwindSafe(|| {
            let clock = records.clock();
            let snapshot = records.snapshot(fields, plan.texts)?;
            history.turn();
            *counts = Counts::default();
            Filler::watch(plan)?;
            filler.begin(plan, snapshot.len(), clock)?;
            for process in snapshot.iter().filter(|&process| is_of(process, users)) {
                tally(counts, process, table.soname());
                let delta = if plan.differs {
                    history.since(process.pid(), clock.sums(process))
                } else {
                    Sums::default()
                };
                filler.add(plan, process, delta);
            }
            filler.finish(plan);
            Some(())
        }));
        if fetched.ok().flatten().is_none() {
            // Records are no longer available: from now on use procps's own library, which is slower but equally
            // correct.
            self.source = Source::Real;
            return None;
        }
        self.filler.stacks().list(&mut self.shown);
        if self.shown.is_empty() && users.is_none() {
            return Some(ptr::null_mut());
        }
        self.shown.push(ptr::null_mut());
        self.fetch = Fetch {
            counts: &raw mut self.counts,
            stacks: self.shown.as_mut_ptr(),
        };
        Some(&raw mut self.fetch)
    }

    /// The caller's items, and the counters for differences.
    fn real_items(&self) -> Vec<u32> {
        let counted = if self.plan.differs { &COUNTED[..] } else { &[] };
        let counted = counted.iter().map(|&item| self.table.number(item));
        self.numbers.iter().copied().chain(counted).collect()
    }

    fn real(&mut self) -> Option<&mut Real> {
        if self.real.is_none() {
            self.real = Real::new(self.functions, &self.real_items());
        }
        self.real.as_mut()
    }

    /// Fetches by procps's own library. Differences are calculated here, so that they continue when records become
    /// unavailable or threads are requested.
    fn fetch_real(&mut self, fetch: impl Fn(&mut Real) -> *mut Fetch) -> *mut Fetch {
        self.open_rows();
        let Some(real) = self.real() else {
            set_errno(libc::ENOMEM);
            return ptr::null_mut();
        };
        let fetched = fetch(real);
        if !self.plan.differs {
            return fetched;
        }
        self.history.turn();
        // SAFETY: just fetched.
        for head in unsafe { Rows::from_fetch(fetched) } {
            let counted = head.wrapping_add(self.numbers.len());
            // SAFETY: the counters are after the caller's items.
            let [pid, ticks, majflt, minflt] =
                [0, 1, 2, 3].map(|at| unsafe { (*counted.add(at)).value });
            let sums = Sums {
                ticks,
                majflt,
                minflt,
            };
            let delta = self.history.since(pid as u32, sums);
            for (at, &number) in self.numbers.iter().enumerate() {
                let value = match self.table.item(number) {
                    Some(Item::TICS_ALL_DELTA) => u64::from(delta.ticks as u32),
                    Some(Item::FLT_MAJ_DELTA) => u64::from(delta.majflt as u32),
                    Some(Item::FLT_MIN_DELTA) => u64::from(delta.minflt as u32),
                    _ => continue,
                };
                // SAFETY: one of the caller's items.
                unsafe { (*head.add(at)).value = value };
            }
            self.end_row(head);
        }
        fetched
    }

    /// Restores rows that were cut, since procps's own library fills a row only up to its end.
    fn open_rows(&mut self) {
        let counted = self.table.number(COUNTED[0]);
        for head in self.ended.drain(..) {
            // SAFETY: rows stay until the items change.
            unsafe { (*head.add(self.numbers.len())).item = counted };
        }
    }

    /// Cuts a row after the caller's items.
    fn end_row(&mut self, head: *mut PidsResult) {
        if self.plan.differs {
            self.ended.push(head);
            // SAFETY: the first of the counters.
            unsafe { (*head.add(self.numbers.len())).item = self.table.end() };
        }
    }

    /// Reads the next process.
    pub(crate) fn get(&mut self, which: c_uint) -> *mut Stack {
        if which == TASKS_ONLY
            && let Some(stack) = self.get_record()
        {
            return stack;
        }
        if let Some(one_by_one) = &mut self.one_by_one {
            one_by_one.which = which;
        }
        self.open_rows();
        let Some(real) = self.real() else {
            set_errno(libc::ENOMEM);
            return ptr::null_mut();
        };
        let stack = real.get(which);
        // SAFETY: null, or just made.
        if let Some(stack) = unsafe { stack.as_ref() } {
            self.end_row(stack.head);
        }
        stack
    }

    fn get_record(&mut self) -> Option<*mut Stack> {
        let (functions, table, numbers) = (self.functions, self.table, &self.numbers);
        let one_by_one = self.one_by_one.get_or_insert_with(|| {
            let decided = if matches!(self.source, Source::Real) {
                None
            } else {
                Records::decide(self.plan.fields, self.plan.texts)
            };
            Box::new(OneByOne {
                source: decided.map_or(Source::Real, |records| Source::Records(Box::new(records))),
                which: c_uint::MAX,
                next: 0,
                filler: Filler::new(functions, table, numbers),
            })
        });
        let Source::Records(records) = &mut one_by_one.source else {
            return None;
        };
        let plan = &self.plan;
        let got = catch_unwind(AssertUnwindSafe(|| {
            let clock = records.clock();
            let snapshot = if one_by_one.which == TASKS_ONLY {
                records.latest()?
            } else {
                Filler::watch(plan)?;
                one_by_one.next = 0;
                records.snapshot(plan.fields, plan.texts)?
            };
            let Some(process) = snapshot.at(one_by_one.next) else {
                return Some(ptr::null_mut());
            };
            one_by_one.filler.begin(plan, 1, clock)?;
            one_by_one.filler.add(plan, process, Sums::default());
            one_by_one.filler.finish(plan);
            Some(one_by_one.filler.first())
        }));
        let got = got.ok().flatten();
        if got.is_none() {
            one_by_one.source = Source::Real;
            return None;
        }
        one_by_one.which = TASKS_ONLY;
        one_by_one.next += 1;
        got
    }
}

fn plan_of(table: &Table, items: &[u32]) -> Plan {
    let items: Vec<Item> = items
        .iter()
        .filter_map(|&number| table.item(number))
        .collect();
    Plan::new(table, &items)
}

fn is_of(process: Process<'_>, users: Option<&[u32]>) -> bool {
    users.is_none_or(|users| process.users().is_some_and(|of| users.contains(&of.euid)))
}

/// Counts a process by its state.
fn tally(counts: &mut Counts, process: Process<'_>, soname: u32) {
    use fastproc::record::State;
    let at = match process.state() {
        State::Running => 1,
        State::Sleeping => 2,
        State::DiskSleep => 3,
        State::Stopped | State::TracingStop => 4,
        State::Zombie => 5,
        State::Dead | State::Parked | State::Idle => 6,
    };
    // The older library has no separate number for uninterruptible sleep.
    let at = if soname == 0 && at > 2 { at - 1 } else { at };
    counts[0] += 1;
    counts[at] += 1;
}
