//! What the commands of open files have in common: options, reading and writing.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use fastproc::files::{self, Fields, Files, Holder, Kind, Snapshot};
use fastproc_columns::files::{
    self as columns, Column, Each, Filter, Lookup, OpenFiles, Row, Rows, Sort,
};
use rustix::process::geteuid;

use crate::{
    NO,
    failure::Failure,
    format::{self, Format, Layout},
    output::{Output, OutputError},
    privileges,
    ps::selection::Pids,
    rows::Options,
    terminal,
};

/// The options of both commands.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Show only these processes.
    #[arg(value_name = "PID")]
    pids: Vec<Pids>,

    #[command(flatten)]
    rows: Options<OpenFiles>,

    /// Read open files from this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
}

impl Common {
    fn pids(&self) -> impl Iterator<Item = u32> {
        self.pids.iter().flat_map(|list| list.0.iter().copied())
    }
}

/// Where open files are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Source {
    /// A service if one runs, else the cheaper one of the following sources that work on this machine
    #[default]
    Auto,
    /// A service, started as root with fastproc serve --no-metrics --socket
    Service,
    /// A BPF program (Linux 6.7 and later)
    Bpf,
    /// The files of /proc; needs no privileges
    Procfs,
}

impl Source {
    fn kind(self) -> Option<files::Source> {
        match self {
            Self::Auto => None,
            Self::Service => Some(files::Source::Service),
            Self::Bpf => Some(files::Source::Bpf),
            Self::Procfs => Some(files::Source::Procfs),
        }
    }
}

/// What a command needs besides what its options say.
#[derive(Debug)]
pub struct Needs {
    pub each: Each,
    /// The order without `--sort`.
    pub sort: Option<&'static str>,
    pub fields: Fields,
    /// A condition besides that of `--filter`.
    pub filter: Option<Filter>,
    pub orphans: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            each: Each::File,
            sort: None,
            fields: Fields::empty(),
            filter: None,
            orphans: false,
        }
    }
}

/// A field that rows of processes do not have.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no field of --count, whose rows are processes and not descriptors")]
struct NotOfProcess(&'static str);

/// An opened command.
#[derive(Debug)]
pub struct Table<'a> {
    args: &'a Common,
    each: Each,
    files: Files,
    columns: Vec<&'static Column>,
    sort: Option<Sort>,
    filter: Option<Filter>,
}

impl<'a> Table<'a> {
    pub fn open(args: &'a Common, needs: Needs) -> Result<Self, Failure> {
        let columns = args.rows.fields_or(|| columns::defaults(needs.each));
        let filter = args.rows.filter_and(needs.filter);
        let by_default = needs.sort.map(str::parse::<Sort>).transpose()?;
        let sort = args.rows.sort.clone().or(by_default);
        if needs.each == Each::Process {
            let of_filter = filter.iter().flat_map(Filter::fields);
            let of_sort = sort.iter().flat_map(Sort::fields);
            let mut all = columns.iter().copied().chain(of_filter).chain(of_sort);
            if let Some(other) = all.find(|column| !columns::is_of_process(column)) {
                return Err(NotOfProcess(other.name).into());
            }
        }
        let groups = match needs.each {
            Each::File => Fields::FILES,
            Each::Socket => Fields::SOCKETS,
            Each::Process => Fields::empty(),
        };
        let of_columns: Fields = columns.iter().map(|column| column.needs).collect();
        let of_filter = filter.as_ref().map_or(Fields::empty(), Filter::needs);
        let of_sort = sort.as_ref().map_or(Fields::empty(), Sort::needs);
        let pids: Vec<u32> = args.pids().collect();
        let files = Files::builder()
            .fields(groups | needs.fields | of_columns | of_filter | of_sort)
            .source(args.source.kind())
            .pids(Some(pids).filter(|pids| !pids.is_empty()))
            .orphans(needs.orphans)
            .hidden_sockets(needs.each == Each::Socket)
            .once(true)
            .open()?;
        privileges::drop()?;
        Ok(Self {
            args,
            each: needs.each,
            files,
            columns,
            sort,
            filter,
        })
    }

    /// Writes the wanted rows as the options say.
    pub fn write(mut self, is_wanted: impl FnMut(&Row<'_>) -> bool) -> Result<ExitCode, Failure> {
        let written = &self.args.rows.written;
        let format = written.format();
        let layout = Layout {
            headings: !written.no_headers,
            may_drop: self.args.rows.fields.is_empty(),
            no_formulas: written.no_formulas,
            ..Layout::new(self.columns.iter().map(|&column| column.into()).collect())
        };
        let each = self.each;
        self.read(is_wanted, |snapshot, rows, lookup, output| {
            let name = match each {
                Each::Process => "processes",
                Each::File => "files",
                Each::Socket => "sockets",
            };
            let shown = format::Rows {
                document: format!(
                    r#"{{"source":"{}","boottime_ns":{},"{name}":["#,
                    snapshot.source(),
                    snapshot.began_ns()
                ),
                boottime_ns: None,
                shown: Box::new(rows.iter().copied()),
            };
            format.writer(layout).write(shown, lookup, output)
        })
    }

    /// Writes the wanted rows in a form of the command's own.
    pub fn write_with(
        mut self,
        is_wanted: impl FnMut(&Row<'_>) -> bool,
        write: impl FnOnce(&Rows<'_>, &mut Lookup, &mut dyn Write) -> io::Result<()>,
    ) -> Result<ExitCode, Failure> {
        self.read(is_wanted, |_, rows, lookup, output| {
            write(rows, lookup, output)
        })
    }

    fn read(
        &mut self,
        is_wanted: impl FnMut(&Row<'_>) -> bool,
        write: impl FnOnce(Snapshot<'_>, &Rows<'_>, &mut Lookup, &mut dyn Write) -> io::Result<()>,
    ) -> Result<ExitCode, Failure> {
        let mut lookup = Lookup::default();
        let mut output = Output::default();
        self.files.snapshot()?;
        let snapshot = self.files.last();
        let mut rows = Rows::new(
            snapshot,
            self.each,
            self.filter.as_ref(),
            &mut lookup,
            is_wanted,
        );
        let top = self.args.rows.top.unwrap_or(usize::MAX);
        rows.arrange(self.sort.as_ref(), top, &mut lookup);
        write(snapshot, &rows, &mut lookup, &mut output).map_err(OutputError::from)?;
        output.finish()?;
        if !self.args.rows.quiet {
            self.say_what_is_missing(snapshot);
        }
        Ok(if rows.is_empty() {
            ExitCode::from(NO)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Says which of the named processes have no rows for another reason than the filter; without names, on a terminal, how many
    /// processes do not show their files to this user.
    fn say_what_is_missing(&self, snapshot: Snapshot<'_>) {
        let named: Vec<u32> = self.args.pids().collect();
        for &pid in &named {
            let found = snapshot.processes().find(|holder| holder.pid() == pid);
            if let Some(missing) = self.missing(pid, found) {
                say(&missing);
            }
        }
        if self.each == Each::Socket && snapshot.processes().any(Holder::lacks_sockets) {
            say("the addresses of some sockets are not known, because /proc/net cannot be read");
        }
        let is_told = !named.is_empty() || self.each == Each::Process;
        let is_table = self.args.rows.written.format() == Format::Table;
        if is_told || !is_table || !terminal::shows_errors() {
            return;
        }
        let hidden = snapshot.processes().filter(|holder| holder.is_hidden());
        let processes = match hidden.count() {
            0 => return,
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        say(&format!(
            "not shown: the files of {processes}; {}",
            remedy()
        ));
    }

    /// Why a process that was named has no rows.
    fn missing(&self, pid: u32, found: Option<Holder<'_>>) -> Option<String> {
        let Some(holder) = found else {
            return Some(format!("there is no process {pid}"));
        };
        let (what, is_empty) = match self.each {
            Each::Process => return None,
            Each::File => ("open files", holder.files().len() == 0),
            Each::Socket => (
                "sockets",
                !holder.files().any(|file| file.kind() == Kind::Socket),
            ),
        };
        if holder.is_hidden() {
            Some(format!(
                "not shown: the files of process {pid}; {}",
                remedy()
            ))
        } else {
            is_empty.then(|| format!("process {pid} has no {what}"))
        }
    }
}

/// What to do to see the files of a process that the kernel hides.
fn remedy() -> &'static str {
    if geteuid().is_root() {
        "the kernel denies them to this process, although it is root's"
    } else {
        "run as root to see them"
    }
}

fn say(message: &str) {
    // Nothing can be reported if standard error is closed.
    let _ = writeln!(io::stderr(), "fastproc: {message}");
}
