//! Converts processes to rows of results.

use std::ffi::{CStr, c_char};

use fastproc::{
    Process,
    record::{State, Users},
};

use crate::{
    abi::{Functions, PidsResult, Stack},
    arena::Arena,
    history::Sums,
    items::{Item, Kind, Table},
    lazy::{self, Area, Waiting},
    names,
    plan::{Op, Plan},
    real::Companion,
    stacks::Stacks,
    tty::{Terminal, Terminals},
    values::{Clock, number, signals},
};

/// Makes the rows of each fetch.
#[derive(Debug)]
pub(crate) struct Filler {
    functions: &'static Functions,
    table: &'static Table,
    stacks: Stacks,
    arena: Arena,
    terminals: Terminals,
    clock: Option<Clock>,
    pids: Vec<u32>,
    /// The last group and the last user, with their names.
    last_names: [(u32, *mut c_char); 2],
    /// Rows with a name or a terminal that procps's own library must provide.
    odd_rows: Vec<usize>,
    /// Boxed, since the handler of faults keeps their addresses.
    #[allow(clippy::vec_box)]
    areas: Vec<Box<Area>>,
    companion: Option<Companion>,
    odd: Option<Companion>,
}

impl Filler {
    pub(crate) fn new(
        functions: &'static Functions,
        table: &'static Table,
        numbers: &[u32],
    ) -> Self {
        Self {
            functions,
            table,
            stacks: Stacks::new(numbers, table.end()),
            arena: Arena::default(),
            terminals: Terminals::default(),
            clock: None,
            pids: Vec::new(),
            last_names: [(0, std::ptr::null_mut()); 2],
            odd_rows: Vec::new(),
            areas: Vec::new(),
            companion: None,
            odd: None,
        }
    }

    /// Sets other items, or the same again, with results of zero.
    pub(crate) fn reset(&mut self, numbers: &[u32], same: bool) {
        self.stacks.reset(numbers, self.table.end());
        if !same {
            self.areas.clear();
            (self.companion, self.odd) = (None, None);
        }
    }

    pub(crate) fn stacks(&mut self) -> &mut Stacks {
        &mut self.stacks
    }

    /// Prepares for reading all processes, by one fetch or several. `None`: it is not possible here.
    pub(crate) fn watch(plan: &Plan) -> Option<()> {
        (plan.later.is_empty() || lazy::watch()).then_some(())
    }

    /// Begins a fetch of at most this number of processes. `None`: it is not possible here.
    pub(crate) fn begin(&mut self, plan: &Plan, processes: usize, clock: Clock) -> Option<()> {
        self.stacks.begin(processes);
        self.arena.clear();
        self.terminals.clear();
        self.pids.clear();
        self.odd_rows.clear();
        self.clock = Some(clock);
        for &item in plan.later.iter().skip(self.areas.len()) {
            // Without a name procps cannot show it in place of a command line.
            let name = (item == Item::CMDLINE && plan.knows_name).then_some(Item::CMD);
            self.areas
                .push(Area::open(self.functions, self.table, item, name)?);
        }
        let companion = |kept: &mut Option<Companion>, items: &[u32]| {
            if kept.is_none() && !items.is_empty() {
                *kept = Some(Companion::new(self.functions, self.table, items)?);
            }
            Some(())
        };
        companion(&mut self.companion, &plan.companion)?;
        let odd: Vec<u32> = plan
            .odd
            .iter()
            .map(|&item| self.table.number(item))
            .collect();
        companion(&mut self.odd, &odd)?;
        self.areas
            .iter_mut()
            .all(|area| area.begin(processes))
            .then_some(())
    }

    /// Adds a row for this process.
    pub(crate) fn add(&mut self, plan: &Plan, process: Process<'_>, delta: Sums) {
        let Some(clock) = self.clock else { return };
        let row = self.pids.len();
        self.pids.push(process.pid());
        let head = self.stacks.add();
        for (at, &op) in plan.ops.iter().enumerate() {
            let value = match op {
                Op::Keep | Op::Companion(_) => None,
                Op::Record(item) => match item.kind() {
                    Kind::Str | Kind::StrVers => Some(self.string(row, item, process) as u64),
                    _ => number(item, process, &clock, delta),
                },
                Op::Duplicate(item) => Some(self.duplicate(item)),
                Op::Later(area) => {
                    if plan.later[area] == Item::CMDLINE
                        && let Some(line) = self.command_line(plan, process)
                    {
                        // SAFETY: a row has as many results as the plan has ops.
                        unsafe { (*head.add(at)).value = line as u64 };
                        continue;
                    }
                    let who = process.identity();
                    let slot = self.areas[area].add(Waiting {
                        pid: who.tgid,
                        comm: who.comm,
                        is_zombie: who.state() == State::Zombie,
                    });
                    Some(slot as u64)
                }
            };
            if let Some(value) = value {
                // SAFETY: a row has as many results as the plan has ops.
                unsafe { (*head.add(at)).value = value };
            }
        }
    }

    fn string(&mut self, row: usize, item: Item, process: Process<'_>) -> *mut c_char {
        match item {
            Item::CMD => {
                let name = process.name();
                if !is_plain(&name) {
                    self.is_odd(row);
                }
                self.arena.string(&[&name])
            }
            Item::SUPGIDS => {
                let groups: Vec<String> = process
                    .supplementary_groups()
                    .map(|gid| gid.to_string())
                    .collect();
                self.listed(groups.iter().map(String::as_bytes))
            }
            Item::SUPGROUPS => {
                let groups: Vec<&[u8]> = process
                    .supplementary_groups()
                    // SAFETY: names are never freed.
                    .map(|gid| unsafe { CStr::from_ptr(names::group(gid)) }.to_bytes())
                    .collect();
                self.listed(groups.into_iter())
            }
            Item::TTY_NAME | Item::TTY_NUMBER => {
                match self.terminals.terminal(process.identity().tty_nr) {
                    Terminal::None => self.arena.string(&[b"?"]),
                    Terminal::Pts(number) => {
                        let number = number.to_string();
                        let before: &[u8] = if item == Item::TTY_NAME { b"pts/" } else { b"" };
                        self.arena.string(&[before, number.as_bytes()])
                    }
                    Terminal::Other => {
                        self.is_odd(row);
                        self.arena.string(&[b"?"])
                    }
                }
            }
            _ => self.name_or_signals(item, process),
        }
    }

    fn name_or_signals(&mut self, item: Item, process: Process<'_>) -> *mut c_char {
        if let Some(set) = signals(item, process) {
            let digit = |at: u32| b"0123456789abcdef"[(set >> (60 - 4 * at) & 15) as usize];
            let digits: [u8; 16] = std::array::from_fn(|at| digit(at as u32));
            return self.arena.string(&[&digits]);
        }
        let (id, is_user) = id_of(item, process.users());
        // Neighbours mostly belong to the same user.
        let last = &mut self.last_names[usize::from(is_user)];
        if last.0 != id || last.1.is_null() {
            *last = (
                id,
                if is_user {
                    names::user(id)
                } else {
                    names::group(id)
                },
            );
        }
        last.1
    }

    /// The command line that came with the record, as procps shows it; `None` if that is uncertain.
    fn command_line(&mut self, plan: &Plan, process: Process<'_>) -> Option<*mut c_char> {
        // A kernel thread and a zombie have no memory, and so no command line, which the service then does not send.
        let has_none = process.identity().has_mm == 0;
        let line = process.served_cmdline().or(has_none.then_some(&[][..]))?;
        if line.is_empty() {
            let name = process.name();
            let is_zombie = process.state() == State::Zombie;
            let end: &[u8] = if is_zombie { b"] <defunct>" } else { b"]" };
            return (plan.knows_name && is_plain(&name))
                .then(|| self.arena.string(&[b"[", &name, end]));
        }
        let shown = line.len() - line.iter().rev().take_while(|&&byte| byte == 0).count();
        // A trailing space is kept only before a NUL.
        let cut = usize::from(shown == line.len() && matches!(line[shown - 1], b' ' | b'\n'));
        let line = &line[..shown - cut];
        if line.is_empty() {
            // Versions of procps show it differently.
            return None;
        }
        let room = self.arena.room(line.len() + 1);
        for (to, &byte) in room.iter_mut().zip(line) {
            *to = if matches!(byte, 0 | b'\n') {
                b' '
            } else {
                byte
            };
        }
        room[line.len()] = 0;
        is_plain(&room[..line.len()]).then(|| room.as_mut_ptr().cast())
    }

    fn is_odd(&mut self, row: usize) {
        if self.odd_rows.last() != Some(&row) {
            self.odd_rows.push(row);
        }
    }

    /// A list with commas, or a dash if it is empty.
    fn listed<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> *mut c_char {
        let mut list = Vec::new();
        for part in parts {
            if !list.is_empty() {
                list.push(b',');
            }
            list.extend_from_slice(part);
        }
        self.arena
            .string(&[if list.is_empty() { b"-" } else { &list }])
    }

    fn duplicate(&mut self, item: Item) -> u64 {
        let string = self
            .arena
            .string(&[b"[ duplicate ", item.name().as_bytes(), b" ]"]);
        match item.kind() {
            Kind::StrV => self.arena.vector_of(string) as u64,
            _ => string as u64,
        }
    }

    /// Adds the values from procps's own library.
    pub(crate) fn finish(&mut self, plan: &Plan) {
        if let Some(mut companion) = self.companion.take() {
            let mut read = vec![false; self.pids.len()];
            let pids = std::mem::take(&mut self.pids);
            companion.read(&pids, |pid, results| {
                if let Ok(row) = pids.binary_search(&pid) {
                    read[row] = true;
                    self.put_companion(plan, row, Some(results));
                }
            });
            for row in (0..read.len()).filter(|&row| !read[row]) {
                self.put_companion(plan, row, None);
            }
            self.pids = pids;
            self.companion = Some(companion);
        }
        if self.odd_rows.is_empty() {
            return;
        }
        if let Some(mut odd) = self.odd.take() {
            let rows = std::mem::take(&mut self.odd_rows);
            let pids: Vec<u32> = rows.iter().map(|&row| self.pids[row]).collect();
            odd.read(&pids, |pid, results| {
                if let Ok(at) = pids.binary_search(&pid) {
                    self.put_odd(plan, rows[at], results);
                }
            });
            self.odd_rows = rows;
            self.odd = Some(odd);
        }
    }

    /// `results` are the companion's; `None` if the process has exited.
    fn put_companion(&mut self, plan: &Plan, row: usize, results: Option<*const PidsResult>) {
        for (at, &op) in plan.ops.iter().enumerate() {
            if let Op::Companion(index) = op {
                let item = self.table.item(plan.companion[index]);
                // SAFETY: a row of the companion has a result for each of its items.
                let value = results.map(|results| unsafe { (*results.add(index)).value });
                let value = self.kept(item.unwrap_or(Item::NOOP), value);
                // SAFETY: a row has as many results as the plan has ops.
                unsafe { (*self.stacks.row(row).add(at)).value = value };
            }
        }
    }

    fn put_odd(&mut self, plan: &Plan, row: usize, results: *const PidsResult) {
        for (at, &op) in plan.ops.iter().enumerate() {
            let Op::Record(item) = op else { continue };
            if let Some(index) = plan.odd.iter().position(|&odd| odd == item) {
                // SAFETY: a row of the companion has a result for each of the odd items.
                let value = unsafe { (*results.add(index)).value };
                let value = self.kept(item, Some(value));
                // SAFETY: a row has as many results as the plan has ops.
                unsafe { (*self.stacks.row(row).add(at)).value = value };
            }
        }
    }

    /// Keeps a value of procps's own library until the next fetch. `None`: the process has exited, and the result is
    /// what procps shows then.
    fn kept(&mut self, item: Item, value: Option<u64>) -> u64 {
        let gone: &[u8] = if item == Item::WCHAN_NAME { b"?" } else { b"-" };
        match item.kind() {
            Kind::Str | Kind::StrVers => {
                // SAFETY: a string of procps's.
                let string = value
                    .filter(|&value| value != 0)
                    .map(|value| unsafe { CStr::from_ptr(value as *const c_char).to_bytes() });
                self.arena.string(&[string.unwrap_or(gone)]) as u64
            }
            Kind::StrV => {
                if let Some(vector) = value.filter(|&value| value != 0) {
                    return self.kept_vector(vector as *const *const c_char);
                }
                let string = self.arena.string(&[gone]);
                self.arena.vector_of(string) as u64
            }
            _ => value.unwrap_or(match item {
                Item::AUTOGRP_ID | Item::ID_LOGIN | Item::PROCESSOR_NODE => u64::from(u32::MAX),
                _ => 0,
            }),
        }
    }

    fn kept_vector(&mut self, vector: *const *const c_char) -> u64 {
        let mut copies = Vec::new();
        loop {
            // SAFETY: the vector ends with a null pointer, at which this stops.
            let string = unsafe { vector.add(copies.len()).read() };
            if string.is_null() {
                break;
            }
            // SAFETY: a string of the vector.
            copies.push(
                self.arena
                    .string(&[unsafe { CStr::from_ptr(string) }.to_bytes()]),
            );
        }
        copies.push(std::ptr::null_mut());
        let room = self.arena.room(copies.len() * size_of::<*mut c_char>());
        // SAFETY: there is aligned room for them.
        unsafe {
            let kept: *mut *mut c_char = room.as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(copies.as_ptr(), kept, copies.len());
            kept as u64
        }
    }

    /// The one row that is reused when a caller reads one process at a time.
    pub(crate) fn first(&mut self) -> *mut Stack {
        let mut shown = Vec::with_capacity(1);
        self.stacks.list(&mut shown);
        shown.first().copied().unwrap_or(std::ptr::null_mut())
    }
}

/// Whether all locales and versions of procps show it unchanged.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// The id whose name an item is, and whether it is a user's.
fn id_of(item: Item, ids: Option<&Users>) -> (u32, bool) {
    let id = |of: fn(&Users) -> u32| ids.map_or(0, of);
    match item {
        Item::ID_EUSER => (id(|ids| ids.euid), true),
        Item::ID_FUSER => (id(|ids| ids.fsuid), true),
        Item::ID_RUSER => (id(|ids| ids.uid), true),
        Item::ID_SUSER => (id(|ids| ids.suid), true),
        Item::ID_EGROUP => (id(|ids| ids.egid), false),
        Item::ID_FGROUP => (id(|ids| ids.fsgid), false),
        Item::ID_RGROUP => (id(|ids| ids.gid), false),
        _ => (id(|ids| ids.sgid), false),
    }
}
