//! What the commands of open files have in common: options, reading and writing.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use fastproc::files::{self, Fields, Files};
use fastproc_columns::files::{
    self as columns, Column, Each, Filter, Lookup, OpenFiles, Row, Rows, Sort,
};

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
        let groups = match needs.each {
            Each::File => Fields::FILES,
            Each::Socket => Fields::SOCKETS,
            Each::Process => Fields::empty(),
        };
        let of_columns: Fields = columns.iter().map(|column| column.needs).collect();
        let of_filter = filter.as_ref().map_or(Fields::empty(), Filter::needs);
        let of_sort = sort.as_ref().map_or(Fields::empty(), Sort::needs);
        let pids = args.pids.iter().flat_map(|list| list.0.iter().copied());
        let pids: Vec<u32> = pids.collect();
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
        self.read(is_wanted, |files, rows, lookup, output| {
            let name = match files.2 {
                Each::Process => "processes",
                Each::File => "files",
                Each::Socket => "sockets",
            };
            let shown = format::Rows {
                document: format!(
                    r#"{{"source":"{}","boottime_ns":{},"{name}":["#,
                    files.0, files.1
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
        write: impl FnOnce(
            (files::Source, u64, Each),
            &Rows<'_>,
            &mut Lookup,
            &mut dyn Write,
        ) -> io::Result<()>,
    ) -> Result<ExitCode, Failure> {
        let mut lookup = Lookup::default();
        let mut output = Output::default();
        let source = self.files.source();
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
        let about = (source, snapshot.began_ns(), self.each);
        write(about, &rows, &mut lookup, &mut output).map_err(OutputError::from)?;
        output.finish()?;
        let hidden = snapshot.processes().filter(|holder| holder.is_hidden());
        self.say_hidden(hidden.count());
        Ok(if rows.is_empty() {
            ExitCode::from(NO)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Says on a terminal that not all processes show their files to this user.
    fn say_hidden(&self, count: usize) {
        let is_told = self.args.rows.quiet || self.each == Each::Process;
        let is_table = self.args.rows.written.format() == Format::Table;
        if count > 0 && !is_told && is_table && terminal::shows_errors() {
            // Nothing can be reported if standard error is closed.
            let _ = writeln!(
                io::stderr(),
                "fastproc: not shown: the files of {count} processes of other users; run as root to see them"
            );
        }
    }
}
