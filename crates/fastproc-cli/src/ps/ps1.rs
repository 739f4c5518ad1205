//! The output of ps(1): its columns, headings and widths, for calls of `fastproc ps` with options of ps(1).

mod columns;
mod styles;
mod table;
mod tree;
mod values;

use fastproc::{Fields, proc_root};
use fastproc_columns::{Field, field};

use self::columns::{CODES, COLUMNS, Known, MISSING, Writing};
pub use self::{
    styles::{Set, Shape},
    table::Table,
    tree::{Tree, in_order},
    values::write_sorted,
};
use crate::format;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A value that is wider than its column is cut.
    Left,
    /// A value that is wider than its column moves the next ones.
    Right,
}

/// A column to show.
#[derive(Clone, Debug)]
pub struct Column {
    heading: String,
    /// `None`: as wide as its values, which applies to columns that ps(1) lacks.
    width: Option<usize>,
    side: Side,
    field: &'static Field,
    /// The field of fastproc with this name: for JSON and csv.
    own: &'static Field,
    writing: Writing,
    /// Whether the next column follows without a blank, so that this one is never wider than it is.
    is_tight: bool,
}

/// Why a list of columns is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    #[error(
        "a column is missing in '{}'; type them as in -o pid,rss,comm or -o pid=,rss=MEMORY",
        .0.escape_debug()
    )]
    Empty(String),
    #[error(
        "there is no code '%{}'; the codes of AIX are {}",
        .0.escape_debug(),
        CODES.iter().map(|(code, _)| format!("%{code}")).collect::<Vec<_>>().join(" "),
    )]
    Code(char),
    #[error("'{}' is not a width; write it as in -o comm:20", .0.escape_debug())]
    Width(String),
    #[error(
        "ps(1) has a column '{0}', and fastproc does not; fastproc ps --help names all that it has"
    )]
    Missing(&'static str),
    #[error("there is no column '{}'{}", .0.escape_debug(), nearest(.0).map_or_else(
        || "; fastproc ps --help names all of them".into(),
        |nearest| format!("; did you mean '{nearest}'?"),
    ))]
    Unknown(String),
}

/// Parses the columns of one `-o`: `pid,user:20,rss=MEMORY,comm=`, or `%p %c`.
pub fn parse(list: &str) -> Result<Vec<Column>, ColumnError> {
    if is_of_codes(list) {
        return parse_codes(list);
    }
    let is_blank = |c: char| c.is_ascii_whitespace();
    let words = list.trim_matches(is_blank).split([',', ' ', '\t', '\n']);
    words
        .map(|word| {
            if word.is_empty() {
                return Err(ColumnError::Empty(list.into()));
            }
            let (name, heading) = match word.split_once('=') {
                Some((name, heading)) => (name, Some(heading)),
                None => (word, None),
            };
            let (name, width) = match name.split_once(':') {
                Some((name, digits)) => {
                    let width = digits
                        .parse()
                        .ok()
                        .filter(|width| (1..=WIDEST).contains(width));
                    (
                        name,
                        Some(width.ok_or_else(|| ColumnError::Width(word.into()))?),
                    )
                }
                None => (name, None),
            };
            let mut column = Column::find(name)?;
            if let Some(heading) = heading {
                heading.clone_into(&mut column.heading);
                let width = column.width.map(|width| width.max(heading.len()));
                column.width = width;
            }
            column.width = width.or(column.width);
            Ok(column)
        })
        .collect()
}

/// Whether a list has only codes of AIX, and blanks between them.
fn is_of_codes(list: &str) -> bool {
    let is_blank = |text: &str| text.bytes().all(|byte| byte == b' ');
    let mut parts = list.split('%');
    let begins = parts.next().is_some_and(is_blank);
    let is_code = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some() && is_blank(letters.as_str())
    };
    begins && list.contains('%') && parts.all(is_code)
}

/// Parses codes. The blanks of the list are shown; where it has none between two codes, there is one.
fn parse_codes(list: &str) -> Result<Vec<Column>, ColumnError> {
    let mut columns: Vec<Column> = Vec::new();
    let mut codes = list.split('%');
    let mut blanks = codes.next().unwrap_or_default().len();
    for part in codes {
        if blanks > 0 {
            columns.push(Column::blank(blanks));
        } else if let Some(before) = columns.last_mut() {
            before.is_tight = false;
        }
        let mut letters = part.chars();
        let code = letters.next().unwrap_or_default();
        let known = CODES.iter().find(|(known, _)| *known == code);
        let (_, name) = known.ok_or(ColumnError::Code(code))?;
        columns.push(Column {
            is_tight: true,
            ..Column::find(name)?
        });
        blanks = letters.as_str().len();
    }
    columns.extend((blanks > 0).then(|| Column::blank(blanks)));
    Ok(columns)
}

/// Makes columns of command lines show names, like the word `c`.
pub fn show_names(columns: &mut [Column]) {
    let name = field::find("comm").expect("a test checks all of them");
    for column in columns {
        if column.writing == Writing::Arguments {
            (column.field, column.own, column.writing) = (name, name, Writing::Name);
        }
    }
}

/// The greatest width that a list may set.
const WIDEST: usize = 10_000;

impl Column {
    /// Finds the column of this name, in letters of either case; if ps(1) lacks it, the field of fastproc.
    fn find(name: &str) -> Result<Self, ColumnError> {
        let lower = name.to_ascii_lowercase();
        if let Some(known) = known(&lower) {
            let column = Self::from_known(known);
            let own = field::find(name).unwrap_or(column.field);
            return Ok(Self { own, ..column });
        }
        if let Some(&missing) = MISSING.iter().find(|&&missing| missing == lower) {
            return Err(ColumnError::Missing(missing));
        }
        let field = field::find(name).map_err(|_| ColumnError::Unknown(name.into()))?;
        Ok(Self {
            heading: field.column_heading(),
            width: None,
            side: if field.unit.is_right_aligned() {
                Side::Right
            } else {
                Side::Left
            },
            field,
            own: field,
            writing: Writing::Plain,
            is_tight: false,
        })
    }

    fn blank(width: usize) -> Self {
        let field = field::find("pid").expect("a test checks all of them");
        Self {
            heading: String::new(),
            width: Some(width),
            side: Side::Left,
            field,
            own: field,
            writing: Writing::Blank,
            is_tight: true,
        }
    }

    /// Whether its values are never cut.
    fn is_number(&self) -> bool {
        matches!(self.writing, Writing::Kibibytes | Writing::Number)
    }

    fn from_known(known: &Known) -> Self {
        let width = if known.width == 0 {
            width_of_pids()
        } else {
            known.width
        };
        let field = field::find(known.field).expect("a test checks all of them");
        Self {
            heading: known.heading.into(),
            width: Some(width),
            side: known.side,
            field,
            own: field,
            writing: known.writing,
            is_tight: false,
        }
    }
}

/// The fields of fastproc for these columns, for JSON and csv: each once.
pub fn own(columns: &[Column]) -> Vec<format::Column> {
    let mut own: Vec<format::Column> = Vec::new();
    for column in columns
        .iter()
        .filter(|column| !matches!(column.writing, Writing::Dash | Writing::Blank))
    {
        if own.iter().all(|known| known.field.name != column.own.name) {
            own.push(column.own.into());
        }
    }
    own
}

/// The groups of fields that the columns need.
pub fn needs(columns: &[Column]) -> Fields {
    let of_column = |column: &Column| match column.writing {
        Writing::Text | Writing::Data => Fields::LAYOUT | Fields::MEMORY,
        _ => column.field.needs,
    };
    columns
        .iter()
        .map(of_column)
        .fold(Fields::empty(), |all, needs| all | needs)
}

/// The column of ps(1) with this name.
fn known(name: &str) -> Option<&'static Known> {
    COLUMNS
        .iter()
        .find(|known| known.names.split(' ').any(|other| other == name))
}

/// A list of keys to sort by, with the names of ps(1) replaced by those of fields.
pub fn sort_keys(text: &str) -> String {
    let keys = text.split(',').map(|key| {
        let name = key.trim_start_matches(['+', '-']);
        let sign = &key[..key.len() - name.len()];
        let field = known(&name.to_ascii_lowercase()).map_or(name, |known| known.field);
        format!("{sign}{field}")
    });
    keys.collect::<Vec<_>>().join(",")
}

/// The most similar name of a column or a field.
fn nearest(name: &str) -> Option<&'static str> {
    let names = COLUMNS.iter().flat_map(|known| known.names.split(' '));
    field::nearest(&name.to_ascii_lowercase(), names.chain(field::names()))
}

/// The number of digits of the largest process id, at least five.
fn width_of_pids() -> usize {
    let most = std::fs::read_to_string(proc_root::path("/proc/sys/kernel/pid_max")).ok();
    let most = most.and_then(|text| text.trim().parse::<u64>().ok());
    most.map_or(5, |most| most.saturating_sub(1).to_string().len().max(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_field() {
        for known in COLUMNS {
            assert!(field::find(known.field).is_ok(), "{}", known.names);
        }
    }

    #[test]
    fn columns_are_named_as_in_ps() {
        let columns = |list| {
            let columns = parse(list).expect("columns");
            let columns = columns.into_iter();
            columns
                .map(|column| (column.heading, column.width))
                .collect::<Vec<_>>()
        };
        let column = |heading: &str, width| (heading.to_owned(), Some(width));
        assert_eq!(
            columns("rss,comm"),
            [column("RSS", 5), column("COMMAND", 15)]
        );
        assert_eq!(columns("rss= comm="), [column("", 5), column("", 15)]);
        assert_eq!(columns("rss:9=R"), [column("R", 9)]);
        assert_eq!(columns("rss=A-LONG-ONE"), [column("A-LONG-ONE", 10)]);
        assert_eq!(columns("cgroup_id"), [("CGROUP_ID".to_owned(), None)]);
        let fields = parse("uid,ruid,gid,rgid").expect("columns").into_iter();
        let fields: Vec<_> = fields.map(|column| column.field.name).collect();
        assert_eq!(fields, ["euid", "ruid", "egid", "rgid"]);
        let error = |list| parse(list).expect_err(list).to_string();
        for list in ["%p,%c", "%p=", "%p%", "%p x"] {
            assert!(parse(list).is_err(), "{list}");
        }
        assert!(error("%p %q").contains("no code '%q'; the codes of AIX are %C %G"));
        assert!(error("pid,,comm").contains("-o pid,rss,comm"));
        assert!(error("").contains("a column is missing"));
        assert!(error("pid:x").contains("-o comm:20"));
        assert!(error("rsss").contains("did you mean 'rss'?"));
        assert!(error("lxc").contains("ps(1) has a column 'lxc'"));
    }

    #[test]
    fn keys_have_the_names_of_ps() {
        assert_eq!(sort_keys("-%cpu,+start_time,user"), "-pcpu,+start,user");
    }
}
