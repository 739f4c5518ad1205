//! The fields of a row: what a table can show, sort and filter by.

mod catalogue;
mod containers;
mod limits;
mod subject;
mod values;

use fastproc::Texts;

pub use catalogue::FIELDS;
pub use containers::short_container_id;
pub use subject::{Processes, Subject};

use crate::value::{Kind, Unit, Value};

/// Makes functions that begin a field: `cpu: of_record(Fields::CPU);`.
macro_rules! groups {
    ($subject:ty; $($name:ident: $($property:ident($($value:expr)?)).*;)+) => {$(
        const fn $name(
            name: &'static str,
            unit: Unit,
            help: &'static str,
            get: crate::field::Get<$subject>,
        ) -> Field<$subject> {
            <Field<$subject>>::new(name, unit, help, get)$(.$property($($value)?))*
        }
    )+};
}
pub(crate) use groups;

/// What the value of a process follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// Its record.
    Record,
    /// Its record and its change, in a row with a change.
    Change,
    /// Also the time, the names of users, files of `/proc` and so on.
    More,
}

/// Finds the value of a field.
pub(crate) type Get<S> =
    for<'x> fn(&'x <S as Subject>::Row<'_>, &'x mut <S as Subject>::Lookup) -> Value<'x>;

/// One field.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct Field<S: Subject = Processes> {
    /// Its name, as in proc(5) or ps(1).
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Head of its column, if it differs from the name.
    heading: Option<&'static str>,
    /// The groups of fields that it needs.
    pub needs: S::Fields,
    /// What its values mean.
    pub unit: Unit,
    /// The type of its values, if it is not that of the unit.
    kind: Option<Kind>,
    guarded: bool,
    root_only: bool,
    follows: Follows,
    /// Whether it is known only over an interval.
    pub is_rate: bool,
    /// Whether a table draws the branches of a tree before it, and marks it, as the name of a zombie.
    is_name: bool,
    /// The value in a table, if it differs from `get`.
    in_table: Option<Get<S>>,
    /// Whether it is unknown for an exited process.
    pub(crate) of_living: bool,
    /// Whether a row of a thread shows the thread's value instead of its process's.
    pub of_thread: bool,
    /// Whether it needs the processes of cgroups.
    pub counts_processes: bool,
    /// Whether it is a number only by its form: an id.
    is_id: bool,
    /// A line of help.
    pub help: &'static str,
    get: Get<S>,
}

impl<S: Subject> Field<S> {
    pub(crate) const fn new(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: Get<S>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            heading: None,
            needs: S::NO_FIELDS,
            unit,
            kind: None,
            guarded: false,
            root_only: false,
            follows: Follows::More,
            is_rate: false,
            is_name: false,
            in_table: None,
            of_living: false,
            of_thread: false,
            counts_processes: false,
            is_id: false,
            help,
            get,
        }
    }

    pub(crate) const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn heading(mut self, heading: &'static str) -> Self {
        self.heading = Some(heading);
        self
    }

    pub(crate) const fn needs(mut self, needs: S::Fields) -> Self {
        self.needs = needs;
        self
    }

    const fn signed(mut self) -> Self {
        self.kind = Some(Kind::Signed);
        self
    }

    const fn arguments(mut self) -> Self {
        self.kind = Some(Kind::Arguments);
        self
    }

    const fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }

    const fn root_only(mut self) -> Self {
        self.root_only = true;
        self
    }

    /// The value follows from these groups of the record.
    const fn of_record(mut self, needs: S::Fields) -> Self {
        (self.needs, self.follows) = (needs, Follows::Record);
        self
    }

    const fn of_change(mut self) -> Self {
        self.follows = Follows::Change;
        self
    }

    pub(crate) const fn rate(mut self) -> Self {
        self.is_rate = true;
        self.of_change()
    }

    pub(crate) const fn name(mut self) -> Self {
        self.is_name = true;
        self
    }

    pub(crate) const fn in_table(mut self, get: Get<S>) -> Self {
        self.in_table = Some(get);
        self
    }

    const fn of_living(mut self) -> Self {
        self.of_living = true;
        self
    }

    const fn of_thread(mut self) -> Self {
        self.of_thread = true;
        self
    }

    pub(crate) const fn id(mut self) -> Self {
        self.is_id = true;
        self
    }

    pub(crate) const fn counting(mut self) -> Self {
        self.counts_processes = true;
        self
    }

    /// Whether reading it needs ptrace access to the process.
    pub const fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Whether it comes from files that only root may read.
    pub const fn is_root_only(&self) -> bool {
        self.root_only
    }

    /// Whether the value of a row of a process follows from its record alone; with `changes`, from its record and its change,
    /// which the row must have. So it is the same as long as these are.
    #[doc(hidden)]
    pub const fn follows_record(&self, changes: bool) -> bool {
        match self.follows {
            Follows::Record => true,
            Follows::Change => changes,
            Follows::More => false,
        }
    }

    /// The type of all its known values.
    pub const fn kind(&self) -> Kind {
        match self.kind {
            Some(kind) => kind,
            None => self.unit.kind(),
        }
    }

    /// Finds a field by its name, alias, key or heading, in letters of either case.
    ///
    /// # Errors
    /// If no field has this name.
    pub fn find(name: &str) -> Result<&'static Self, UnknownField> {
        let is = |other: &&str| other.eq_ignore_ascii_case(name);
        let is_named = |field: &&Self| {
            let others = field.aliases.iter().chain(&field.heading);
            is(&field.name) || others.into_iter().any(is) || is(&field.key().as_str())
        };
        let found = S::fields().iter().find(is_named);
        found.ok_or_else(|| UnknownField {
            name: name.escape_debug().to_string(),
            nearest: nearest(&name.to_ascii_lowercase(), names_of::<S>()),
        })
    }

    /// Its value for this row.
    pub fn value<'x>(&self, row: &'x S::Row<'_>, lookup: &'x mut S::Lookup) -> Value<'x> {
        self.take(self.get, row, lookup)
    }

    fn take<'x>(&self, get: Get<S>, row: &'x S::Row<'_>, lookup: &'x mut S::Lookup) -> Value<'x> {
        if S::hides(self, row, lookup) {
            return Value::Unknown;
        }
        get(row, lookup)
    }

    /// Appends its form for a table: rounded, and marked as ps(1) does it.
    pub fn write_for_table(&self, row: &S::Row<'_>, lookup: &mut S::Lookup, to: &mut Vec<u8>) {
        if self.is_name {
            S::write_before_name(row, to);
        }
        self.take(self.in_table.unwrap_or(self.get), row, lookup)
            .write_for_table(self.unit, to);
        if self.is_name {
            S::write_after_name(row, to);
        }
    }

    /// Its name in JSON and csv, with the unit of its numbers.
    pub fn key(&self) -> String {
        let suffix = if self.name.ends_with(self.unit.suffix()) {
            ""
        } else {
            self.unit.suffix()
        };
        format!("{}{suffix}", self.name)
    }

    /// Head of its column in a table.
    pub fn column_heading(&self) -> String {
        self.heading
            .map_or_else(|| self.name.to_uppercase(), Into::into)
    }

    /// Whether its largest value comes first by default.
    pub fn is_largest_first(&self) -> bool {
        self.unit.is_right_aligned() && !self.is_id
    }
}

impl Field {
    /// The texts of a process that it needs; a collector may read them with the snapshot.
    pub fn texts(&self) -> Texts {
        match self.name {
            "cmdline" | "cmdline_cut" => Texts::CMDLINE,
            "exe" => Texts::EXE,
            _ => Texts::empty(),
        }
    }
}

/// A field that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no field '{name}'{}", .nearest.map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?")))]
pub struct UnknownField {
    name: String,
    nearest: Option<&'static str>,
}

/// Finds a field of processes by its name, alias, key or heading, in letters of either case.
pub fn find(name: &str) -> Result<&'static Field, UnknownField> {
    Field::find(name)
}

/// All names of fields of processes.
pub fn names() -> impl Iterator<Item = &'static str> {
    names_of::<Processes>()
}

fn names_of<S: Subject>() -> impl Iterator<Item = &'static str> {
    let fields = S::fields().iter();
    let names = fields.flat_map(|field| std::iter::once(&field.name).chain(field.aliases));
    names.copied()
}

/// The name that is most similar to this one, which is in small letters, if at most every third letter is wrong.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = names.map(|other| (strsim::damerau_levenshtein(name, other), other));
    distances
        .filter(|&(distance, other)| 3 * distance <= name.len().max(other.len()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests;
