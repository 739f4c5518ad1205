//! One process in detail: the user's choices, and the values read.

use std::collections::{HashMap, HashSet};

use fastproc::{
    Fields, Process,
    files::{self, Files, Socket},
};
use fastproc_columns::{Lookup, Row, escape::escape};

use crate::{
    history::{History, Recent},
    id::Id,
    window::Window,
};

/// The groups of fields that the details show.
pub const FIELDS: Fields = Fields::TOP
    .union(Fields::USERS)
    .union(Fields::CREDENTIALS)
    .union(Fields::SCHEDULING)
    .union(Fields::SCHEDULING_DETAILS)
    .union(Fields::IO)
    .union(Fields::CGROUP);

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// What it is, and its history.
    Overview,
    /// Its threads.
    Threads,
    /// Its limits.
    Limits,
    /// Its open files.
    Files,
    /// Its environment.
    Environment,
    /// All its fields.
    Fields,
}

impl Page {
    /// All pages, from left to right.
    pub const ALL: [Self; 6] = [
        Self::Overview,
        Self::Threads,
        Self::Limits,
        Self::Files,
        Self::Environment,
        Self::Fields,
    ];

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Threads => "Threads",
            Self::Limits => "Limits",
            Self::Files => "Files",
            Self::Environment => "Environment",
            Self::Fields => "Fields",
        }
    }
}

/// The history of a process, one value for each snapshot.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// CPUs used.
    pub cpu: History,
    /// Resident memory, in bytes.
    pub rss: History,
    /// Bytes fetched from storage a second.
    pub read: History,
    /// Bytes sent to storage a second.
    pub written: History,
    /// Page faults a second.
    pub faults: History,
    /// Context switches a second, of its main thread.
    pub switches: History,
    /// Context switches at the last snapshot, and its time, in nanoseconds after boot.
    last_switches: Option<(u64, u64)>,
}

impl Histories {
    /// Adds the changes of the process since the last snapshot, after `missed` ones.
    fn push(&mut self, row: &Row<'_>, missed: u64, now_ns: u64) {
        if missed > 0 {
            let all = [
                &mut self.cpu,
                &mut self.rss,
                &mut self.read,
                &mut self.written,
                &mut self.faults,
                &mut self.switches,
            ];
            for history in all {
                history.skip(missed);
            }
            self.last_switches = None;
        }
        let (process, change) = (row.process, row.change);
        self.cpu.push(change.and_then(|change| change.cpu_share));
        let rss = process.memory().map(|memory| memory.rss() as f64);
        self.rss.push(rss);
        self.read
            .push(change.and_then(|change| change.read_bytes_per_second));
        self.written
            .push(change.and_then(|change| change.write_bytes_per_second));
        let faults = change.and_then(|change| {
            Some(change.minflt_per_second? + change.majflt_per_second.unwrap_or(0.0))
        });
        self.faults.push(faults);
        let switches = process.cpu().map(|cpu| (cpu.nvcsw + cpu.nivcsw, now_ns));
        let rate = self.last_switches.zip(switches).and_then(|(before, now)| {
            let seconds = now.1.checked_sub(before.1)? as f64 / 1e9;
            (seconds > 0.0).then(|| now.0.saturating_sub(before.0) as f64 / seconds)
        });
        self.switches.push(rate);
        self.last_switches = switches;
    }
}

/// The histories of the processes that were recently on the screen.
#[derive(Debug, Default)]
pub struct Watched {
    now_ns: u64,
    processes: Recent<Id, Histories>,
    /// The processes of the last table, which get histories also while something else is shown.
    shown: HashSet<Id>,
}

impl Watched {
    /// Begins a new snapshot, at this time.
    pub fn look(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.processes.look();
    }

    /// Adds the changes of the rows of a table, once for each snapshot.
    pub fn take(&mut self, rows: &[Row<'_>]) {
        if self.processes.takes() {
            self.shown = rows.iter().map(Id::from_row).collect();
            for row in rows {
                self.push(row);
            }
        }
    }

    /// Adds the changes of this process and of those of the last table, while that is not shown.
    pub fn keep_up<'r>(&mut self, rows: impl Iterator<Item = Row<'r>>, shown: Option<Id>) {
        self.shown.extend(shown);
        for row in rows {
            if self.shown.contains(&Id::from_row(&row)) {
                self.push(&row);
            }
        }
    }

    /// Adds the changes of a process, unless that was done.
    fn push(&mut self, row: &Row<'_>) {
        let is_there = row.change.is_none_or(|change| change.exit.is_none());
        if row.thread.is_some() || !is_there {
            return;
        }
        let now_ns = self.now_ns;
        self.processes.push(Id::from_row(row), |histories, missed| {
            histories.push(row, missed, now_ns);
        });
    }

    /// The history of a process.
    pub fn get(&self, id: Id) -> Option<&Histories> {
        self.processes.get(&id)
    }

    /// Discards all histories: the next snapshot is from another time.
    pub fn clear(&mut self) {
        self.processes.clear();
    }
}

/// The process in detail, and how it is shown.
#[derive(Debug)]
pub struct Details {
    /// The process.
    pub id: Id,
    /// The page that is shown.
    pub page: Page,
    /// The visible lines.
    pub window: Window,
    /// The lines of limits, files or environment, read when requested; or why they are unavailable.
    pub lines: Option<Result<Vec<Vec<u8>>, String>>,
}

impl Details {
    /// Details of this process.
    pub fn new(id: Id, page: Page) -> Self {
        Self {
            // For a thread, its process.
            id: id.process(),
            page,
            window: Window::default(),
            lines: None,
        }
    }

    /// Switches to a page.
    pub fn turn(&mut self, page: Page) {
        self.page = page;
        self.window = Window::default();
        self.lines = None;
    }

    /// The groups of fields that the page needs.
    pub fn needs(&self) -> Fields {
        match self.page {
            Page::Threads => FIELDS | Fields::THREADS,
            _ => FIELDS,
        }
    }
}

/// Nobody can read more.
const MOST_FILES: usize = 10_000;

/// Says how many open files these lines are.
pub fn count_files(lines: &mut Vec<Vec<u8>>) {
    let count = lines.len();
    let heading = if count < MOST_FILES {
        format!("{count} open files")
    } else {
        format!("the first {count} open files")
    };
    lines.insert(0, heading.into());
}

/// Adds their addresses to the lines of sockets. What cannot be read is left out.
pub fn name_sockets(pid: u32, lines: &mut [Vec<u8>]) {
    let inode = |line: &[u8]| {
        let (_, name) = std::str::from_utf8(line).ok()?.split_once(" socket:[")?;
        name.strip_suffix(']')?.parse::<u64>().ok()
    };
    if lines.len() >= MOST_FILES || !lines.iter().any(|line| inode(line).is_some()) {
        return;
    }
    let builder = Files::builder().pids(Some(vec![pid]));
    let opened = builder.fields(files::Fields::SOCKETS).open();
    let Ok(mut opened) = opened else {
        return;
    };
    let Ok(snapshot) = opened.snapshot() else {
        return;
    };
    let sockets = snapshot.files().filter_map(|(_, file)| file.socket());
    let sockets: HashMap<u64, _> = sockets.map(|socket| (socket.inode(), socket)).collect();
    for line in lines {
        if let Some(&socket) = inode(line).and_then(|inode| sockets.get(&inode)) {
            write_socket(socket, line);
        }
    }
}

fn write_socket(socket: Socket<'_>, to: &mut Vec<u8>) {
    to.extend(format!(" {} {}", socket.netid(), socket.state_name()).bytes());
    for (before, address) in [(" ", socket.local()), (" -> ", socket.peer())] {
        let mut text = Vec::new();
        if let Some(address) = address {
            address.write(&mut text);
            to.extend(before.bytes());
            escape(&text, to);
        }
    }
}

/// The lines of a page that is read on demand, without characters that could move the cursor; or why they are
/// unavailable.
pub fn read(page: Page, process: Process<'_>, lookup: &mut Lookup) -> Result<Vec<Vec<u8>>, String> {
    let details = &mut lookup.details;
    let escaped = |bytes: &[u8]| {
        let mut line = Vec::new();
        escape(bytes, &mut line);
        line
    };
    match page {
        Page::Files => {
            let files = details
                .open_files(process, MOST_FILES)
                .map_err(|error| error.to_string())?;
            let line = |(number, target): &(u32, Vec<u8>)| {
                let mut line = format!("{number:>6} ").into_bytes();
                line.extend(escaped(target));
                line
            };
            Ok(files.iter().map(line).collect())
        }
        page => {
            let (path, end) = match page {
                Page::Limits => (c"limits", b'\n'),
                _ => (c"environ", 0),
            };
            let text = details
                .file(process, path)
                .map_err(|error| error.to_string())?;
            let text = text.strip_suffix(&[end]).unwrap_or(text);
            Ok(text.split(|&byte| byte == end).map(escaped).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn open_sockets_are_shown_with_their_addresses() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let links = std::fs::read_dir("/proc/self/fd").expect("/proc is there");
        let links = links
            .flatten()
            .flat_map(|link| std::fs::read_link(link.path()));
        let mut lines: Vec<_> = links
            .map(|name| format!("     0 {}", name.display()).into_bytes())
            .collect();
        let before = lines.len();
        name_sockets(std::process::id(), &mut lines);
        let end = format!(" tcp LISTEN {address}");
        let named = lines.iter().filter(|line| line.ends_with(end.as_bytes()));
        assert_eq!(named.count(), 1, "{lines:?}");
        count_files(&mut lines);
        assert_eq!(lines[0], format!("{before} open files").into_bytes());
    }
}
