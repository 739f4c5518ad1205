//! What a snapshot adds to a history: a pure function of it and of what was before.

use fastproc::{
    Process, Snapshot,
    exits::Exit,
    record::{EXIT_IO, EXIT_PPID, EXIT_STATUS, ExitRecord, is_same_start},
};

use super::{
    cells::{Cell, Held, Members, Row, place},
    store::Key,
    texts::Texts,
};
use crate::table::{EXITS, IDENTITIES, PROCESSES, Table};

/// A process executes its program soon after it started, mostly under another name, but not always.
const YOUNG_NS: u64 = 3_000_000_000;

/// Takes rows.
pub trait Sink {
    /// Takes a row of a table. `before` is the last row of this key, unless that is not known.
    fn row(&mut self, table: &'static Table, key: Key, before: Option<&Row>, now: &Row);
}

/// A process as it was in the last snapshot.
#[derive(Debug)]
struct State {
    pid: u32,
    /// As in its first record: a record that was read from text has it rounded.
    start_ns: u64,
    row: Row,
    identity: Row,
    /// Run time when its command line was read.
    ran: Cell,
}

impl State {
    fn key(&self) -> Key {
        (self.pid.into(), self.start_ns.cast_signed())
    }
}

/// Places of columns that are treated specially.
#[derive(Debug)]
struct Places {
    gone: usize,
    pid: usize,
    start: usize,
    run: usize,
    user: usize,
    line: usize,
    cgroup: usize,
    comm: usize,
    euid: usize,
    cgroup_id: usize,
}

/// Turns snapshots into rows.
#[derive(Debug)]
pub struct Walker {
    members: Members,
    identities: Members,
    exits: Members,
    at: Places,
    states: Vec<State>,
    begins: bool,
    ended: i64,
}

impl Default for Walker {
    fn default() -> Self {
        Self {
            members: Members::of(&PROCESSES),
            identities: Members::of(&IDENTITIES),
            exits: Members::of(&EXITS),
            at: Places {
                gone: place(&PROCESSES, "gone"),
                pid: place(&PROCESSES, "pid"),
                start: place(&PROCESSES, "start_ns"),
                run: place(&PROCESSES, "run_ns"),
                user: place(&IDENTITIES, "user"),
                line: place(&IDENTITIES, "command_line"),
                cgroup: place(&IDENTITIES, "cgroup"),
                comm: place(&IDENTITIES, "comm"),
                euid: place(&IDENTITIES, "euid"),
                cgroup_id: place(&IDENTITIES, "cgroup_id"),
            },
            states: Vec::new(),
            begins: true,
            ended: 0,
        }
    }
}

impl Walker {
    /// The next snapshot begins a row group: it gives a row for every process.
    pub fn begin_group(&mut self) {
        self.begins = true;
    }

    /// Gives the rows of processes and identities that a snapshot adds. It must be the one after the last one, of the
    /// same collector.
    pub fn walk(&mut self, snapshot: &Snapshot<'_>, texts: &mut dyn Texts, sink: &mut dyn Sink) {
        let begins = std::mem::take(&mut self.begins);
        let before = std::mem::take(&mut self.states);
        let mut states = Vec::with_capacity(snapshot.len());
        let mut before = before.into_iter().peekable();
        for (process, has_changed) in snapshot.iter_with_changed() {
            let pid = process.pid();
            while let Some(gone) = before.next_if(|state| state.pid < pid) {
                self.gone(&gone, sink);
            }
            let found = before.next_if(|state| state.pid == pid);
            if let Some(mut state) = found {
                if !has_changed && !begins {
                    states.push(state);
                    continue;
                }
                if !has_changed || is_same_start(state.start_ns, process.identity().start_ns) {
                    self.again(&mut state, process, begins, texts, sink);
                    states.push(state);
                    continue;
                }
                self.gone(&state, sink);
            }
            states.push(self.first(process, texts, sink));
        }
        for gone in before {
            self.gone(&gone, sink);
        }
        self.states = states;
    }

    fn gone(&self, state: &State, sink: &mut dyn Sink) {
        let mut row = vec![Cell::Null; state.row.len()];
        row[self.at.gone] = 1.into();
        for at in [self.at.pid, self.at.start] {
            row[at] = state.row[at].clone();
        }
        sink.row(&PROCESSES, state.key(), Some(&state.row), &row);
    }

    fn first(&self, process: Process<'_>, texts: &mut dyn Texts, sink: &mut dyn Sink) -> State {
        let start_ns = process.identity().start_ns;
        let row = self.row_of(process, start_ns, texts);
        let mut state = State {
            pid: process.pid(),
            start_ns,
            ran: row[self.at.run].clone(),
            row,
            identity: self.identities.row(process.record(), held(process)),
        };
        state.identity[self.at.user] = self.user(&state.identity, texts);
        state.identity[self.at.line] = texts.line(process);
        self.put_cgroup(process, &mut state.identity, texts);
        sink.row(&PROCESSES, state.key(), None, &state.row);
        sink.row(&IDENTITIES, state.key(), None, &state.identity);
        state
    }

    fn again(
        &self,
        state: &mut State,
        process: Process<'_>,
        begins: bool,
        texts: &mut dyn Texts,
        sink: &mut dyn Sink,
    ) {
        let row = self.row_of(process, state.start_ns, texts);
        let ran = row[self.at.run].clone();
        if begins || row != state.row {
            let before = Some(&state.row).filter(|_| !begins);
            sink.row(&PROCESSES, state.key(), before, &row);
            state.row = row;
        }
        let mut identity = self.identities.row(process.record(), held(process));
        // A record that was read from text has it rounded.
        identity[place_of_start(self)] = state.row[self.at.start].clone();
        let is_same = |at: usize, identity: &Row| state.identity[at] == identity[at];
        identity[self.at.user] = if is_same(self.at.euid, &identity) && !begins {
            state.identity[self.at.user].clone()
        } else {
            self.user(&identity, texts)
        };
        let age_ns = texts.now_ns().saturating_sub(state.start_ns);
        let may_have_changed = (begins || age_ns < YOUNG_NS) && ran != state.ran;
        identity[self.at.line] = if may_have_changed || !is_same(self.at.comm, &identity) {
            state.ran = ran;
            match texts.line(process) {
                // A zombie has none any more.
                Cell::Null => state.identity[self.at.line].clone(),
                line => line,
            }
        } else {
            state.identity[self.at.line].clone()
        };
        if is_same(self.at.cgroup_id, &identity) && !begins {
            let cgroup = self.at.cgroup..self.at.cgroup + Self::OF_CGROUP;
            identity[cgroup.clone()].clone_from_slice(&state.identity[cgroup]);
        } else {
            self.put_cgroup(process, &mut identity, texts);
        }
        if begins || identity != state.identity {
            let before = Some(&state.identity).filter(|_| !begins);
            sink.row(&IDENTITIES, state.key(), before, &identity);
            state.identity = identity;
        }
    }

    /// Columns that follow from the cgroup.
    const OF_CGROUP: usize = 6;

    fn put_cgroup(&self, process: Process<'_>, identity: &mut Row, texts: &mut dyn Texts) {
        let cells = texts.cgroup(process);
        for (at, cell) in (self.at.cgroup..).zip(cells) {
            identity[at] = cell;
        }
    }

    fn user(&self, identity: &Row, texts: &mut dyn Texts) -> Cell {
        match identity[self.at.euid] {
            Cell::Number(id) => texts.user(id as u32),
            _ => Cell::Null,
        }
    }

    fn row_of(&self, process: Process<'_>, start_ns: u64, texts: &mut dyn Texts) -> Row {
        let mut held = held(process);
        if !texts.may_trace(process) {
            held.masked = true;
        }
        let mut row = self.members.row(process.record(), held);
        row[self.at.start] = start_ns.cast_signed().into();
        row
    }

    /// Gives the exits of a snapshot. Call this before [`walk`](Self::walk), which forgets the processes that are gone.
    /// Each has a number of its own.
    pub fn exits(
        &mut self,
        snapshot: &Snapshot<'_>,
        texts: &mut dyn Texts,
        mut each: impl FnMut(&Exit, i64, Row),
    ) {
        let user = place(&EXITS, "user");
        let line = place(&EXITS, "command_line");
        for exit in snapshot.exits().unwrap_or_default() {
            self.ended += 1;
            let number = self.ended;
            let record = ExitRecord::new(exit, number.cast_unsigned(), None, 0);
            let mut row = self.exits.row(&record, Held::ALL);
            for (bit, name) in [
                (EXIT_PPID, "ppid"),
                (EXIT_STATUS, "status"),
                (EXIT_IO, "read_calls_bytes"),
                (EXIT_IO, "write_calls_bytes"),
                (EXIT_IO, "read_bytes"),
                (EXIT_IO, "write_bytes"),
            ] {
                if record.known & bit == 0 {
                    row[place(&EXITS, name)] = Cell::Null;
                }
            }
            if exit.end_ns.is_none() {
                row[place(&EXITS, "end_ns")] = Cell::Null;
            }
            row[user] = texts.user(exit.euid);
            row[line] = match texts.line_of_exit(snapshot, exit) {
                Cell::Null => self.line_of(exit),
                line => line,
            };
            each(exit, number, row);
        }
    }

    /// The command line of an exited process as it was known.
    fn line_of(&self, exit: &Exit) -> Cell {
        let found = self.states.binary_search_by_key(&exit.pid, |state| state.pid);
        let state = found.ok().map(|at| &self.states[at]);
        let state = state.filter(|state| is_same_start(state.start_ns, exit.start_ns));
        state.map_or(Cell::Null, |state| state.identity[self.at.line].clone())
    }
}

fn place_of_start(walker: &Walker) -> usize {
    let _ = walker;
    place(&IDENTITIES, "start_ns")
}

fn held(process: Process<'_>) -> Held {
    let identity = process.identity();
    Held {
        groups: identity.groups,
        masked: identity.masked != 0,
    }
}
