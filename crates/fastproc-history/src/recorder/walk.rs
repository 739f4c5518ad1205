//! What a snapshot adds to a history: a pure function of it and of what was before.

use fastproc::{
    Process, Snapshot,
    exits::Exit,
    record::{ExitRecord, is_same_start},
};

use super::{
    cells::{Cell, Held, Members, Row, place},
    store::Key,
    texts::{Names, OF_CGROUP, Texts},
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
    name: usize,
    pid: usize,
    start: usize,
    run: usize,
    names: Named,
    line: usize,
    cgroup: usize,
    comm: usize,
    cgroup_id: usize,
    start_of_identity: usize,
    names_of_exit: Named,
    line_of_exit: usize,
    cgroup_of_exit: usize,
}

/// The places of names, and of the users and groups that have them.
type Named = [(usize, usize, Names); 4];

fn named(table: &Table) -> Named {
    [
        ("user", "euid", Names::Users),
        ("real_user", "uid", Names::Users),
        ("group", "egid", Names::Groups),
        ("real_group", "gid", Names::Groups),
    ]
    .map(|(name, id, of)| (place(table, name), place(table, id), of))
}

impl Places {
    fn new() -> Self {
        let process = |name| place(&PROCESSES, name);
        let identity = |name| place(&IDENTITIES, name);
        Self {
            gone: process("gone"),
            name: process("name"),
            pid: process("pid"),
            start: process("start_ns"),
            run: process("run_ns"),
            names: named(&IDENTITIES),
            line: identity("command_line"),
            cgroup: identity("cgroup"),
            comm: identity("comm"),
            cgroup_id: identity("cgroup_id"),
            start_of_identity: identity("start_ns"),
            names_of_exit: named(&EXITS),
            line_of_exit: place(&EXITS, "command_line"),
            cgroup_of_exit: place(&EXITS, "cgroup"),
        }
    }
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
            at: Places::new(),
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
                // A record that has not changed is not in a CPU's cache.
                if !has_changed && !begins {
                    states.push(state);
                    continue;
                }
                if is_same_start(state.start_ns, process.identity().start_ns) {
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
        put_names(&self.at.names, &mut state.identity, texts);
        let line = texts.line(process);
        put_line(&mut state.identity, self.at.line, line, texts);
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
        let identity = self.identity_again(state, process, &ran, begins, texts);
        if begins || identity != state.identity {
            let before = Some(&state.identity).filter(|_| !begins);
            sink.row(&IDENTITIES, state.key(), before, &identity);
            state.identity = identity;
        }
    }

    /// Who a process is now. Only texts that may have changed are read again.
    fn identity_again(
        &self,
        state: &mut State,
        process: Process<'_>,
        ran: &Cell,
        begins: bool,
        texts: &mut dyn Texts,
    ) -> Row {
        let mut identity = self.identities.row(process.record(), held(process));
        identity[self.at.start_of_identity] = state.row[self.at.start].clone();
        let before = &state.identity;
        let differs = |at: usize, identity: &Row| begins || before[at] != identity[at];
        let names = &self.at.names;
        if names.iter().any(|(_, id, _)| differs(*id, &identity)) {
            put_names(names, &mut identity, texts);
        } else {
            for (at, ..) in names {
                identity[*at] = before[*at].clone();
            }
        }
        if differs(self.at.cgroup_id, &identity) {
            self.put_cgroup(process, &mut identity, texts);
        } else {
            let cgroup = self.at.cgroup..self.at.cgroup + OF_CGROUP;
            identity[cgroup.clone()].clone_from_slice(&before[cgroup]);
        }
        let is_young = texts.now_ns().saturating_sub(state.start_ns) < YOUNG_NS;
        let is_renamed = before[self.at.comm] != identity[self.at.comm];
        // A process executes a program or overwrites its arguments only while it runs.
        let line = if is_renamed || (begins || is_young) && *ran != state.ran {
            state.ran = ran.clone();
            texts.line(process)
        } else {
            Cell::Null
        };
        // A zombie has none any more.
        match line {
            Cell::Null => copy_line(&mut identity, self.at.line, before, self.at.line),
            line => put_line(&mut identity, self.at.line, line, texts),
        }
        identity
    }

    fn put_cgroup(&self, process: Process<'_>, identity: &mut Row, texts: &mut dyn Texts) {
        for (at, cell) in (self.at.cgroup..).zip(texts.cgroup(process)) {
            identity[at] = cell;
        }
    }

    fn row_of(&self, process: Process<'_>, start_ns: u64, texts: &mut dyn Texts) -> Row {
        let mut held = held(process);
        held.masked |= !texts.may_trace(process);
        let mut row = self.members.row(process.record(), held);
        row[self.at.start] = start_ns.cast_signed().into();
        let name = process.name();
        if *name != *until_nul(&process.identity().comm) {
            row[self.at.name] = (&*name).into();
        }
        row
    }

    /// Gives the exits of a snapshot, each with a number of its own. Call this before [`walk`](Self::walk), which
    /// forgets the processes that are gone.
    pub fn exits(
        &mut self,
        snapshot: &Snapshot<'_>,
        texts: &mut dyn Texts,
        mut each: impl FnMut(&Exit, i64, Row),
    ) {
        for exit in snapshot.exits().unwrap_or_default() {
            self.ended += 1;
            let number = self.ended;
            let record = ExitRecord::new(exit, number.cast_unsigned(), None, 0);
            let mut row = self.exits.row(&record, Held::ALL);
            for (is_known, names) in [
                (exit.ppid.is_some(), ["ppid"].as_slice()),
                (exit.status.is_some(), &["status"]),
                (exit.io.is_some(), OF_IO),
            ] {
                for name in names.iter().filter(|_| !is_known) {
                    row[place(&EXITS, name)] = Cell::Null;
                }
            }
            put_names(&self.at.names_of_exit, &mut row, texts);
            let found = self
                .states
                .binary_search_by_key(&exit.pid, |state| state.pid);
            let state = found.ok().map(|at| &self.states[at]);
            let state = state.filter(|state| is_same_start(state.start_ns, exit.start_ns));
            let known = |at: usize| state.map_or(Cell::Null, |state| state.identity[at].clone());
            match texts.line_of_exit(snapshot, exit) {
                Cell::Null => {
                    if let Some(state) = state {
                        let line = self.at.line_of_exit;
                        copy_line(&mut row, line, &state.identity, self.at.line);
                    }
                }
                line => put_line(&mut row, self.at.line_of_exit, line, texts),
            }
            row[self.at.cgroup_of_exit] = match texts.cgroup_of_exit(exit.cgroup_id) {
                Cell::Null => known(self.at.cgroup),
                path => path,
            };
            each(exit, number, row);
        }
    }
}

/// The columns of I/O.
const OF_IO: &[&str] = &[
    "read_calls_bytes",
    "write_calls_bytes",
    "read_bytes",
    "write_bytes",
];

fn put_names(names: &Named, row: &mut Row, texts: &mut dyn Texts) {
    for (at, id, of) in names {
        row[*at] = match row[*id] {
            Cell::Number(id) => texts.name(*of, id as u32),
            _ => Cell::Null,
        };
    }
}

/// Puts a command line, and whether it is cut.
fn put_line(row: &mut Row, at: usize, line: Cell, texts: &dyn Texts) {
    let is_known = line != Cell::Null;
    row[at] = line;
    if is_known {
        row[at + 1] = i64::from(texts.line_is_cut()).into();
    }
}

fn copy_line(row: &mut Row, at: usize, from: &Row, of: usize) {
    row[at..at + 2].clone_from_slice(&from[of..of + 2]);
}

fn until_nul(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn held(process: Process<'_>) -> Held {
    let identity = process.identity();
    Held {
        groups: identity.groups,
        masked: identity.masked != 0,
    }
}
