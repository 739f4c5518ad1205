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
    completed::completed,
    failure::Failure,
    format::{self, Format, Layout, Written},
    output::{Output, OutputError},
    privileges,
    ps::selection::Pids,
    terminal,
};

/// The options of both commands.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Show only these processes.
    #[arg(value_name = "PID")]
    pids: Vec<Pids>,

    /// Show these fields; --fields help lists them.
    #[arg(short = 'o', long, value_name = "FIELD,…", value_delimiter = ',', value_parser = completed::<OpenFiles, _>(columns::find), hide_possible_values = true)]
    fields: Vec<&'static Column>,

    /// Sort by these fields; a minus sign puts the largest value first.
    #[arg(
        long,
        value_name = "[-]FIELD,…",
        allow_hyphen_values = true,
        value_parser = completed::<OpenFiles, _>(str::parse::<Sort>),
        hide_possible_values = true
    )]
    sort: Option<Sort>,

    /// Show only the first N rows.
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show only rows that match an expression, as in 'deleted && size > 1G'.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Filter>,

    #[command(flatten)]
    written: Written,

    /// Read open files from this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,

    /// Do not print to standard error what is not shown.
    #[arg(short, long)]
    quiet: bool,
}

/// Where open files are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The cheaper one of the following sources that work on this machine
    #[default]
    Auto,
    /// A BPF program (Linux 6.7 and later)
    Bpf,
    /// The files of /proc; needs no privileges
    Procfs,
}

impl Source {
    fn kind(self) -> Option<files::Source> {
        match self {
            Self::Auto => None,
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
        let columns = if args.fields.is_empty() {
            columns::defaults(needs.each)
        } else {
            args.fields.clone()
        };
        let filter = match (args.filter.clone(), needs.filter) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        let by_default = needs.sort.map(str::parse::<Sort>).transpose()?;
        let sort = args.sort.clone().or(by_default);
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
        let written = &self.args.written;
        let format = written.format();
        let layout = Layout {
            headings: !written.no_headers,
            may_drop: self.args.fields.is_empty(),
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
        let top = self.args.top.unwrap_or(usize::MAX);
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
        let is_told = self.args.quiet || self.each == Each::Process;
        let is_table = self.args.written.format() == Format::Table;
        if count > 0 && !is_told && is_table && terminal::shows_errors() {
            // Nothing can be reported if standard error is closed.
            let _ = writeln!(
                io::stderr(),
                "fastproc: not shown: the files of {count} processes of other users; run as root to see them"
            );
        }
    }
}
