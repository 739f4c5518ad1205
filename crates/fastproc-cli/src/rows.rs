//! The options of the tables of cgroups, of open files and of sockets.

use fastproc_columns::{Field, Filter, Sort, Subject};

use crate::{completed::completed, format::Written};

/// Which rows and fields to show, and how to write them.
#[derive(Debug, clap::Args)]
pub struct Options<S: Subject> {
    /// Show these fields; --fields help lists them.
    #[arg(short = 'o', long, value_name = "FIELD,…", value_delimiter = ',', value_parser = completed::<S, _>(Field::<S>::find), hide_possible_values = true)]
    pub fields: Vec<&'static Field<S>>,

    /// Sort by these fields; a minus sign puts the largest value first.
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true, value_parser = completed::<S, _>(str::parse::<Sort<S>>), hide_possible_values = true)]
    pub sort: Option<Sort<S>>,

    /// Show only the first N rows.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// Show only rows that match an expression.
    #[arg(long, value_name = "EXPR", value_parser = str::parse::<Filter<S>>)]
    filter: Option<Filter<S>>,

    #[command(flatten)]
    pub written: Written,

    /// Do not print to standard error what is left out or not known.
    #[arg(short, long)]
    pub quiet: bool,
}

impl<S: Subject> Options<S> {
    /// The fields to show.
    pub fn fields_or(
        &self,
        defaults: impl FnOnce() -> Vec<&'static Field<S>>,
    ) -> Vec<&'static Field<S>> {
        if self.fields.is_empty() {
            defaults()
        } else {
            self.fields.clone()
        }
    }

    /// The filter, with this condition.
    pub fn filter_and(&self, other: Option<Filter<S>>) -> Option<Filter<S>> {
        match (self.filter.clone(), other) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        }
    }
}
