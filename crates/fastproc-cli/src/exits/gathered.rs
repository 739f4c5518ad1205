//! One table at the end, instead of a row for each process as it exits.

use std::collections::BTreeMap;

use fastproc::{Cmdline, difference::Ended, exits::Exit, record::Record};
use fastproc_columns::{
    Field, Lookup, Row, Sort, Sorter, Subject as _, UnknownField,
    by_name::{ByName, Total},
};

use crate::{
    format::{Format, Layout, Rows},
    output::{Output, OutputError},
};

/// An exited process.
pub struct Kept {
    exit: Exit,
    line: Option<(Box<[u8]>, bool)>,
}

impl Kept {
    pub fn new(exit: &Exit, line: Option<Cmdline<'_>>) -> Self {
        Self {
            exit: *exit,
            line: line.map(|line| (line.bytes.into(), line.cut)),
        }
    }

    pub fn exit(&self) -> &Exit {
        &self.exit
    }

    pub fn cmdline(&self) -> Option<Cmdline<'_>> {
        let (bytes, cut) = self.line.as_ref()?;
        Some(Cmdline { bytes, cut: *cut })
    }
}

/// What is gathered.
enum What {
    /// Every process, sorted.
    All(Vec<Kept>, Sort),
    /// What those of each name did.
    Names(BTreeMap<[u8; 16], Total>, Sort<ByName>),
}

/// What ended so far, and the number of rows to show of it.
pub struct Gathered {
    what: What,
    top: usize,
}

impl Gathered {
    /// By name, in this order or that of the numbers of processes.
    pub fn names(sort: Option<&str>, top: usize) -> Result<Self, UnknownField> {
        let what = What::Names(BTreeMap::new(), sort.unwrap_or("-count").parse()?);
        Ok(Self { what, top })
    }

    /// All, in this order or that of the CPU time.
    pub fn all(sort: Option<&str>, top: usize) -> Result<Self, UnknownField> {
        let what = What::All(Vec::new(), sort.unwrap_or("-time").parse()?);
        Ok(Self { what, top })
    }

    /// The fields that the order needs.
    pub fn fields(&self) -> Vec<&'static Field> {
        match &self.what {
            What::All(_, sort) => sort.fields().collect(),
            What::Names(..) => Vec::new(),
        }
    }

    pub fn add(&mut self, exit: &Exit, line: Option<Cmdline<'_>>) {
        match &mut self.what {
            What::All(kept, _) => kept.push(Kept::new(exit, line)),
            What::Names(names, _) => names.entry(exit.comm).or_default().add(exit),
        }
    }

    /// Writes the table.
    pub fn write(
        self,
        format: Format,
        layout: Layout,
        lookup: &mut Lookup,
        output: &mut Output,
    ) -> Result<(), OutputError> {
        match self.what {
            What::All(kept, sort) => {
                let records: Vec<Record> = kept.iter().map(|kept| kept.exit.to_record()).collect();
                let rows: Vec<Row<'_>> = kept
                    .iter()
                    .zip(&records)
                    .map(|(kept, record)| {
                        Row::ended(Ended::whole(&kept.exit).change(record), kept.cmdline())
                    })
                    .collect();
                let mut sorter = Sorter::default();
                let first = sorter.first(&sort, self.top, &rows[..], lookup);
                let rows = Rows {
                    document: r#"{"exits":["#.into(),
                    ..Rows::of_events(first)
                };
                format.writer(layout).write(rows, lookup, output)?;
            }
            What::Names(names, sort) => {
                let rows: Vec<Total> = names.into_values().collect();
                let layout = Layout {
                    headings: layout.headings,
                    no_formulas: layout.no_formulas,
                    short_times: true,
                    ..Layout::new(ByName::fields().iter().map(Into::into).collect())
                };
                let (mut sorter, mut scratch) = (Sorter::default(), Vec::new());
                let first = sorter.first(&sort, self.top, &rows[..], &mut scratch);
                let rows = Rows {
                    document: r#"{"names":["#.into(),
                    ..Rows::of_events(first)
                };
                format.writer(layout).write(rows, &mut scratch, output)?;
            }
        }
        Ok(())
    }
}
