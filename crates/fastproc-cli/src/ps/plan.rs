//! Decides from the arguments of `fastproc ps` what it does: columns, selection, order and output, of fastproc or of
//! ps(1).

use fastproc::Fields;
use fastproc_columns::{Sort, UnknownField};

use super::{
    args::Args,
    ps1,
    selection::{Choice, Selection},
    words::Words,
};
use crate::{
    failure::Failure,
    format::{Column, Follows, Format, Layout, RowWriter},
    redraw::Redraw,
    terminal,
    usage::unknown_field,
};

/// A combination of arguments that is not possible.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    #[error("'{0}' chooses the output of ps(1), and {1} chooses fastproc's; leave out one of them")]
    Both(String, &'static str),
    #[error("a history has no threads; leave out --threads, -L, -T or H")]
    PastThreads,
    #[error("a history cannot be shown again and again; leave out {0}")]
    PastAgain(&'static str),
    #[error("cannot sort by the rate '{0}' without an interval; give one, as in --interval 1")]
    Rate(&'static str),
    #[error("--exited shows processes, not threads; leave out --exited, or --threads, -L, -T or H")]
    ExitedThreads,
    #[error("exits cannot be recorded")]
    Exits(#[source] Box<fastproc::Error>),
    #[error(
        "a tree cannot show threads; leave out --tree, -H or --forest, or --threads, -L, -T or H"
    )]
    TreeOfThreads,
    #[error(
        "a word such as 'u' and an option such as -f each name a set of columns; type one of them, as in ps aux or ps -ef"
    )]
    Sets,
    #[error(
        "-q shows processes in the order of its list; leave out --sort, trees and what else selects, or type -p"
    )]
    InOrder,
}

/// What to read and how to show it.
pub(super) struct Plan {
    pub(super) writer: Box<dyn RowWriter>,
    pub(super) columns: Vec<Column>,
    pub(super) selection: Selection,
    pub(super) sort: Sort,
    pub(super) threads: bool,
    pub(super) tree: bool,
    /// Groups of fields that the columns of ps(1) need.
    pub(super) needs: Fields,
}

/// The default columns, before the name.
pub(super) const DEFAULT: &str = "pid,user,state,pcpu,pmem,rss,vsize,num_threads,etime,time";
/// Those of threads.
const OF_THREADS: &str = "pid,tid,user,state,pcpu,processor,etime,time";
/// The width of a line after one `-w`.
const WIDE: u32 = 132;

impl Args {
    /// The first argument that chooses the output of ps(1).
    fn argument_of_ps(&self, words: &Words) -> Option<&str> {
        let ps = &self.as_in_ps;
        let word = self.words.first().filter(|_| words.any);
        let options = [
            (!ps.columns.is_empty(), "-o"),
            (!ps.inserted.is_empty(), "-O"),
            (ps.full, "-f"),
            (ps.extra_full, "-F"),
            (ps.long, "-l"),
            (ps.jobs, "-j"),
            (ps.class, "-c"),
            (ps.processor, "-P"),
            (ps.label, "-M"),
            (ps.context, "--context"),
            (ps.indented, "-H"),
            (ps.forest, "--forest"),
            (ps.lwp, "-L"),
            (ps.spid, "-T"),
            (ps.wide > 0, "-w"),
            (ps.cols.is_some(), "--cols"),
            (ps.numbers, "-n"),
        ];
        word.map(String::as_str).or_else(|| first(&options))
    }

    /// The first option that chooses the output of fastproc.
    fn option_of_fastproc(&self) -> Option<&'static str> {
        first(&[
            (!self.fields.is_empty(), "--fields"),
            // It is also a filter.
            (self.search.is_some(), "--search"),
            (self.top.is_some(), "--top"),
            (self.filter.is_some(), "--filter"),
            (self.tree, "--tree"),
        ])
    }

    /// Whether the columns and the selection are those of ps(1).
    pub(super) fn is_like_ps(&self, words: &Words) -> Result<bool, UsageError> {
        match (self.argument_of_ps(words), self.option_of_fastproc()) {
            (Some(of_ps), Some(own)) => {
                Err(UsageError::Both(of_ps.escape_debug().to_string(), own))
            }
            (of_ps, _) => Ok(of_ps.is_some()),
        }
    }

    /// The processes that lists and letters select.
    fn selection(&self, words: &Words) -> Selection {
        let mut selection = Selection::from(&self.select);
        selection.and(Selection::from(&self.more));
        selection.and(words.selection.clone());
        let ps = &self.as_in_ps;
        let choices = [
            (ps.every, Choice::All),
            (ps.on_terminals, Choice::OnTerminals),
            (ps.not_leaders, Choice::NotLeaders),
        ];
        for (_, choice) in choices.iter().filter(|(is_chosen, _)| *is_chosen) {
            selection.choose(*choice);
        }
        selection
    }

    fn shape(&self, words: &Words) -> Result<ps1::Shape, UsageError> {
        let ps = &self.as_in_ps;
        let shape = ps1::Shape {
            full: ps.full,
            extra_full: ps.extra_full,
            long: ps.long,
            jobs: ps.jobs,
            no_address: ps.no_address,
            class: ps.class,
            processor: ps.processor,
            label: ps.label || words.shape.label,
            context: ps.context,
            lwp: ps.lwp,
            spid: ps.spid,
            ..words.shape
        };
        if words.sets && shape.is_dashed() {
            return Err(UsageError::Sets);
        }
        Ok(shape)
    }

    /// The columns in the layout of ps(1).
    fn columns_of_ps(&self, words: &Words) -> Result<Vec<ps1::Column>, Failure> {
        let shape = self.shape(words)?;
        let parse = |lists: &[String]| {
            let lists = lists.iter().map(|list| ps1::parse(list));
            let lists = lists.collect::<Result<Vec<_>, _>>();
            lists.map(|lists| lists.into_iter().flatten().collect::<Vec<_>>())
        };
        let ps = &self.as_in_ps;
        let named = [parse(&ps.columns)?, words.columns.clone()].concat();
        let inserted = [parse(&ps.inserted)?, words.inserted.clone()].concat();
        let mut columns = if !named.is_empty() {
            named
        } else if inserted.is_empty() {
            shape.columns()
        } else {
            let command = if words.inserted.is_empty() {
                "args"
            } else {
                "comm"
            };
            let [before, after] = ["pid", &format!("s,tname,time,{command}")].map(ps1::parse);
            [before?, inserted, after?].concat()
        };
        if shape.names {
            ps1::show_names(&mut columns);
        }
        Ok(columns)
    }

    pub(super) fn plan(
        &self,
        words: &Words,
        format: Format,
        like_ps: bool,
    ) -> Result<Plan, Failure> {
        let ps = &self.as_in_ps;
        let threads = self.threads || words.threads || ps.lwp || ps.spid;
        let tree = self.tree || words.tree || ps.indented || ps.forest;
        let mut selection = self.selection(words);
        if like_ps && selection.is_open() {
            selection.choose(if words.any {
                Choice::Bsd {
                    others: false,
                    without_terminal: false,
                }
            } else {
                Choice::OwnOnTerminal
            });
        }
        let of_ps = if like_ps {
            self.columns_of_ps(words)?
        } else {
            Vec::new()
        };
        let may_drop = self.fields.is_empty() && of_ps.is_empty();
        let adds = self.fields.first().is_some_and(|column| column.is_added);
        let columns = if may_drop || adds {
            let name = if self.search.is_some() {
                "cmdline"
            } else {
                "comm"
            };
            let mut columns = parse_columns(if threads { OF_THREADS } else { DEFAULT }, name)?;
            let last = columns.len() - 1;
            columns.splice(last..last, self.fields.iter().cloned());
            columns
        } else if of_ps.is_empty() {
            self.fields.clone()
        } else {
            ps1::own(&of_ps)
        };
        let is_table_of_ps = like_ps && format == Format::Table;
        let needs = if is_table_of_ps {
            ps1::needs(&of_ps)
        } else {
            Fields::empty()
        };
        let default = match (of_ps.is_empty(), tree) {
            // Children in the order of their start.
            (false, true) => "starttime",
            (true, false) => "-pcpu",
            _ => "pid",
        };
        let sort = self.sort.as_deref().or(words.sort.as_deref());
        if selection.mixes_order() || selection.order().is_some() && (tree || sort.is_some()) {
            return Err(UsageError::InOrder.into());
        }
        let sort = sort.unwrap_or(default);
        let sort = if is_table_of_ps {
            let sort = ps1::sort_keys(sort);
            let by_parents = if tree { "ppid," } else { "" };
            format!("{by_parents}{sort}").parse()?
        } else {
            let own = sort.parse::<Sort>();
            let unknown = |error: UnknownField| unknown_field(error.to_string(), "--sort");
            own.or_else(|error| ps1::sort_keys(sort).parse().map_err(|_| unknown(error)))?
        };
        let headings = !(self.written.no_headers || words.no_headings);
        let writer: Box<dyn RowWriter> = if is_table_of_ps {
            let wide = ps.wide.saturating_add(words.wide);
            let one_wide = Some(WIDE.max(terminal::width().unwrap_or(0) as u32));
            Box::new(ps1::Table {
                columns: of_ps,
                headings,
                width: ps
                    .cols
                    .or(one_wide.filter(|_| wide == 1 && terminal::width().is_some()))
                    .map(|width| width as usize),
                unlimited: wide > 1,
                numbers: ps.numbers || words.shape.numbers,
                is_next: false,
            })
        } else {
            format.writer(Layout {
                headings,
                may_drop,
                follows: Follows::after(
                    Redraw::new(self.interval.is_some() && format == Format::Table).as_ref(),
                ),
                no_formulas: self.written.no_formulas,
                needle: self.search.clone(),
                ..Layout::new(columns.clone())
            })
        };
        Ok(Plan {
            writer,
            columns,
            selection,
            sort,
            threads,
            tree,
            needs,
        })
    }
}

/// The first option that is given.
fn first(options: &[(bool, &'static str)]) -> Option<&'static str> {
    let given = options.iter().find(|(is_given, _)| *is_given);
    given.map(|(_, option)| *option)
}

/// Parses the name of a field; a plus sign before it adds it to others.
pub(super) fn parse_field(name: &str) -> Result<Column, UnknownField> {
    let added = name.strip_prefix('+');
    let column = added.unwrap_or(name).parse::<Column>()?;
    Ok(Column {
        is_added: added.is_some(),
        ..column
    })
}

fn parse_columns(names: &str, last: &str) -> Result<Vec<Column>, Failure> {
    let names = names.split(',').chain([last]);
    Ok(names.map(str::parse).collect::<Result<_, _>>()?)
}
