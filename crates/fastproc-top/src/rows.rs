//! Selects and orders the rows of a snapshot to show.

mod resting;

use fastproc::{Process, difference::PerProcess, record::State as ProcessState};
use fastproc_columns::{Branch, Forest, Lookup, Row, Sorter};

use self::resting::{Plain, Ranks};
use crate::{
    group::{Groups, Sums},
    id::Id,
    observation::View,
    state::State,
};

/// Counts of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Processes.
    pub processes: u32,
    /// Kernel threads among them.
    pub kernel_threads: u32,
    /// Threads of all of them.
    pub threads: u64,
    /// Running, sleeping, waiting for a disk, stopped, zombies, and others, by their leading threads.
    pub states: [u32; 6],
}

impl Tally {
    fn new(briefs: &[Brief]) -> Self {
        let mut tally = Self::default();
        for &brief in briefs {
            tally.add(brief);
        }
        tally
    }

    fn add(&mut self, brief: Brief) {
        self.processes += 1;
        self.threads += u64::from(brief.threads);
        self.kernel_threads += u32::from(brief.is_kernel_thread);
        let state = match brief.state {
            ProcessState::Running => 0,
            ProcessState::Sleeping | ProcessState::Idle => 1,
            ProcessState::DiskSleep => 2,
            ProcessState::Stopped | ProcessState::TracingStop => 3,
            ProcessState::Zombie => 4,
            _ => 5,
        };
        self.states[state] += 1;
    }
}

/// Data of a process for counting, and for the decision whether to show it.
#[derive(Clone, Copy, Debug)]
struct Brief {
    threads: u32,
    is_kernel_thread: bool,
    state: ProcessState,
}

impl Brief {
    fn of(process: Process<'_>) -> Self {
        let identity = process.identity();
        Self {
            threads: identity.num_threads,
            is_kernel_thread: identity.is_kernel_thread(),
            state: identity.state(),
        }
    }
}

/// The visible rows.
#[derive(Debug)]
pub struct Picked<'a> {
    /// The rows, in order.
    pub rows: Vec<Row<'a>>,
    /// The place of each row in the tree, if there is one.
    pub branches: Vec<Branch>,
    /// The sums of marked rows, if there are any.
    pub marked: Option<Sums>,
    /// All processes.
    pub tally: Tally,
}

/// Picks rows. Its memory is used again for the next screen.
#[derive(Debug, Default)]
pub struct Picker {
    rows: Vec<Row<'static>>,
    shown: Vec<Row<'static>>,
    branches: Vec<Branch>,
    briefs: PerProcess<Brief>,
    ranks: Ranks,
    sorter: Sorter,
    forest: Forest,
    /// The groups, if rows are grouped.
    pub groups: Groups,
}

/// The memory of a list, for another one.
fn reuse<'a>(mut rows: Vec<Row<'_>>) -> Vec<Row<'a>> {
    rows.clear();
    rows.into_iter()
        .map(|_| unreachable!("it is empty"))
        .collect()
}

impl Picker {
    /// Counts all processes.
    pub fn tally(&mut self, view: &View<'_>) -> Tally {
        Tally::new(self.briefs.update(&view.snapshot, Brief::of))
    }

    /// The rows that fit, after moving the window over them.
    pub fn pick<'a>(
        &mut self,
        view: &View<'a>,
        state: &mut State,
        lookup: &mut Lookup,
        height: usize,
    ) -> Picked<'a> {
        let mut rows = reuse(std::mem::take(&mut self.rows));
        let mut shown = reuse(std::mem::take(&mut self.shown));
        let mut branches = std::mem::take(&mut self.branches);
        branches.clear();
        let briefs = self.briefs.update(&view.snapshot, Brief::of);
        let tally = Tally::new(briefs);
        let mut marked = None;
        if let Some(plain) = Plain::new(view, state) {
            let with = (briefs, &mut self.sorter);
            let of = (&mut *state, &mut *lookup);
            self.ranks.pick(&plain, view, with, of, height, &mut shown);
        } else {
            select(view, state, lookup, briefs, &mut rows);
            marked = sum_of_marked(&rows, state, lookup);
            if let Some(by) = state.settings.group {
                let (sort, descending) = state.chosen.sorted();
                self.groups.add_up(by, sort, descending, &rows, lookup);
                state.chosen.window.settle(self.groups.len(), height);
            } else if state.settings.tree {
                self.pick_tree(&rows, state, lookup, height, &mut branches, &mut shown);
            } else {
                self.pick_flat(&rows, state, lookup, height, &mut shown);
            }
        }
        let is_grouped = state.settings.group.is_some();
        let group = self.groups.get(state.chosen.window.cursor);
        let group = group.filter(|_| is_grouped);
        state.selected_group = group.map(|(key, _)| key.to_vec());
        let at = state.chosen.window.cursor - state.chosen.window.top;
        state.selected = shown.get(at).map(Id::from_row);
        self.rows = reuse(rows);
        Picked {
            rows: shown,
            branches,
            marked,
            tally,
        }
    }

    /// Takes back the memory of a drawn screen.
    pub fn recycle(&mut self, picked: Picked<'_>) {
        self.shown = reuse(picked.rows);
        self.branches = picked.branches;
    }

    fn pick_flat<'a>(
        &mut self,
        rows: &[Row<'a>],
        state: &mut State,
        lookup: &mut Lookup,
        height: usize,
        shown: &mut Vec<Row<'a>>,
    ) {
        // Unless a row must be found among all, rows after the last visible one need no order.
        let all = state.follow.is_some() || state.seek.is_some();
        let first = if all {
            usize::MAX
        } else {
            state.chosen.window.settle(rows.len(), height);
            state.chosen.window.top + height
        };
        let order = self.sorter.order(&state.chosen.sort, first, rows, lookup);
        let row = |place: usize| &rows[order[place] as usize];
        place_cursor(state, lookup, rows.len(), height, row);
        let places = state.chosen.window.top..rows.len().min(state.chosen.window.top + height);
        shown.extend(places.map(|place| *row(place)));
    }

    fn pick_tree<'a>(
        &mut self,
        rows: &[Row<'a>],
        state: &mut State,
        lookup: &mut Lookup,
        height: usize,
        branches: &mut Vec<Branch>,
        shown: &mut Vec<Row<'a>>,
    ) {
        let order = self
            .sorter
            .order(&state.chosen.sort, usize::MAX, rows, lookup);
        let folded = &state.chosen.folded;
        let order = order.iter().copied();
        let tree = self
            .forest
            .arrange(rows, order, |pid| folded.contains(&pid));
        let row = |place: usize| &rows[tree[place].at as usize];
        place_cursor(state, lookup, tree.len(), height, row);
        let places = state.chosen.window.top..tree.len().min(state.chosen.window.top + height);
        shown.extend(places.clone().map(|place| *row(place)));
        branches.extend_from_slice(&tree[places]);
    }
}

/// Moves the cursor to the row that is followed or searched for.
fn place_cursor<'r, 'a: 'r>(
    state: &mut State,
    lookup: &mut Lookup,
    rows: usize,
    height: usize,
    row: impl Fn(usize) -> &'r Row<'a>,
) {
    if let Some(id) = &mut state.follow {
        let is = |place: &usize| {
            let row = row(*place);
            // A typed pid stands for the process that has it now.
            id.is_of(row)
                || (id.start_ns == 0 && id.pid == row.process.pid() && row.thread.is_none())
        };
        if let Some(place) = (0..rows).find(is) {
            *id = Id::from_row(row(place));
            state.chosen.window.cursor = place;
        } else {
            let text = format!("process {} is not shown, or no more", id.pid);
            state.follow = None;
            state.say(text);
        }
    }
    if let Some(direction) = state.seek.take() {
        let needle = state.search.to_lowercase();
        let has = |place| matches(row(place), &needle, lookup);
        match state.chosen.window.find(rows, direction, has) {
            // Keys that are pressed later mean what was found, even if it has moved.
            Some(place) => {
                state.chosen.window.cursor = place;
                state.follow = Some(Id::from_row(row(place)));
            }
            None => state.say_not_found(),
        }
    }
    state.chosen.window.settle(rows, height);
}

/// Whether its id, name or command line contains this text, in letters of either case.
fn matches(row: &Row<'_>, needle: &str, lookup: &mut Lookup) -> bool {
    let has = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .to_lowercase()
            .contains(needle)
    };
    if row.tid().to_string() == needle || has(&row.process.name()) {
        return true;
    }
    if let Some(thread) = row.other_thread() {
        return has(&thread.comm);
    }
    let line = lookup.details.cmdline(row.process);
    line.is_ok_and(|line| {
        let spaced: Vec<u8> = line.bytes.iter().map(|&byte| byte.max(b' ')).collect();
        has(&spaced)
    })
}

/// The rows that the settings and the filter select.
fn select<'a>(
    view: &View<'a>,
    state: &State,
    lookup: &mut Lookup,
    briefs: &[Brief],
    rows: &mut Vec<Row<'a>>,
) {
    let settings = &state.settings;
    let mut take = |row: Row<'a>, brief: Brief| {
        let wanted = (settings.kernel_threads || !brief.is_kernel_thread)
            && (settings.idle || is_busy(&row, brief))
            && state
                .chosen
                .filter
                .as_ref()
                .is_none_or(|filter| filter.admits(&row, lookup));
        if wanted {
            rows.push(row);
        }
    };
    let all = Row::all(&view.snapshot, view.before, settings.threads);
    if settings.threads {
        all.for_each(|row| take(row, Brief::of(row.process)));
    } else {
        all.zip(briefs).for_each(|(row, brief)| take(row, *brief));
    }
    if settings.exited && !settings.threads {
        let exited = view.exited.iter();
        let rows = exited.map(|process| Row::changed(process.change()));
        rows.for_each(|row| take(row, Brief::of(row.process)));
    }
}

/// Whether it used a CPU since the last snapshot.
fn is_busy(row: &Row<'_>, brief: Brief) -> bool {
    let state = row.thread.map_or(brief.state, |_| row.state());
    state == ProcessState::Running
        || row
            .change
            .is_none_or(|change| change.cpu_share.is_none_or(|share| share > 0.0))
}

fn sum_of_marked(rows: &[Row<'_>], state: &State, lookup: &Lookup) -> Option<Sums> {
    if state.marked.is_empty() {
        return None;
    }
    let mut sums = Sums::default();
    for row in rows {
        if state.marked.contains(&Id::from_row(row)) {
            sums.add(row, lookup);
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use fastproc::{Host, Process, difference::Ended, exits::Exit, record::Record};

    use super::*;
    use crate::{keys::Action, settings::Settings};

    #[test]
    fn follows_what_a_search_found_until_the_cursor_is_moved() {
        let records = [3, 5, 7].map(|pid| {
            let mut record = Record::default();
            record.identity.tgid = pid;
            record
        });
        let rows = [0, 1, 2].map(|at| Row::new(Process::new(&records[at], &[])));
        let mut state = State::new(Settings::default()).expect("they are right");
        let host = Host::read().expect("there is a /proc");
        let mut lookup = Lookup::recorded(host, 0);
        state.follow = Some(Id::from_row(&rows[0]));
        (state.search, state.seek) = ("5".into(), Some(1));
        for place in [1, 1, 2, 0] {
            let order = [(place + 2) % 3, place, (place + 1) % 3].map(|at| rows[at]);
            let found = order.iter().position(|row| row.process.pid() == 5);
            place_cursor(&mut state, &mut lookup, order.len(), 10, |at| &order[at]);
            assert_eq!(Some(state.chosen.window.cursor), found);
        }
        state.do_there(Action::Move(1));
        let cursor = state.chosen.window.cursor;
        place_cursor(&mut state, &mut lookup, rows.len(), 10, |at| &rows[at]);
        assert_eq!(state.chosen.window.cursor, cursor);
    }

    #[test]
    fn searches_in_both_directions_for_letters_of_either_case() {
        let records = [&b"web"[..], b"db", b"Web"].map(|name| {
            let mut record = Record::default();
            record.identity.comm[..name.len()].copy_from_slice(name);
            record
        });
        let rows = [0, 1, 2].map(|at| Row::new(Process::new(&records[at], &[])));
        let mut state = State::new(Settings::default()).expect("they are right");
        let host = Host::read().expect("there is a /proc");
        let mut lookup = Lookup::recorded(host, 0);
        state.search = "WEB".into();
        for (direction, from, found) in [(1, 1, 2), (-1, 1, 0), (1, 2, 0), (0, 2, 2)] {
            (state.follow, state.seek) = (None, Some(direction));
            state.chosen.window.cursor = from;
            place_cursor(&mut state, &mut lookup, rows.len(), 10, |at| &rows[at]);
            assert_eq!(state.chosen.window.cursor, found);
        }
    }

    #[test]
    fn a_process_is_busy_if_it_runs_or_has_used_a_cpu() {
        let mut exit = Exit::default();
        exit.end_ns = Some(2);
        for (used_ns, is_busy_then) in [(0, false), (1, true)] {
            exit.sum_exec_ns = used_ns;
            let mut record = exit.to_record();
            let busy = |record: &Record| {
                let row = Row::ended(Ended::whole(&exit).change(record), None);
                is_busy(&row, Brief::of(row.process))
            };
            record.identity.state_bits = 1;
            assert_eq!(busy(&record), is_busy_then);
            record.identity.state_bits = 0;
            assert!(busy(&record));
        }
    }
}
