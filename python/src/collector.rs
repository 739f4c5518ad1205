//! Snapshots as tables.

use std::{
    ffi::{CString, OsString},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastproc::{
    Baseline, Fields, Snapshot, SourceKind, Texts, access::may_trace_all, exits::Exit,
    record::Record,
};
use fastproc_columns::{FIELDS, Field, Filter, Lookup, Row, Sort, Sorter, cgroups, files};
use pyo3::{
    exceptions::{PyUserWarning, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::{
    columns::{ColumnData, Origin, Subject, TableData},
    data::Data,
    errors::{self, FilterError, Forked},
    filter,
    reuse::Last,
    table::Table,
};

/// The settings of every snapshot.
#[derive(Debug)]
struct Settings {
    subjects: Vec<Subject>,
    filter: Option<Filter>,
    sort: Option<Sort>,
    top: usize,
    threads: bool,
    text: bool,
}

/// The state that one thread at a time may use.
#[derive(Debug)]
struct State {
    collector: fastproc::Collector,
    lookup: Lookup,
    sorter: Sorter,
    /// The snapshot from which the next difference is computed.
    before: Option<Baseline>,
    /// The table of the last snapshot, if the next one can reuse it.
    last: Option<Last>,
}

/// A reader that stays open: it opens a source once, and makes snapshots with it.
#[pyclass(frozen, subclass, module = "fastproc")]
pub struct Collector {
    settings: Settings,
    state: Mutex<State>,
    /// The process that opened it.
    process: u32,
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("{seconds} s: {error}")))
}

/// Every field of processes, of ``"cgroups"`` or of ``"files"``: a dictionary of key, aliases and help by name.
#[pyfunction]
#[pyo3(signature = (of="processes"))]
pub fn fields<'py>(py: Python<'py>, of: &str) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    match of {
        "processes" => add(FIELDS, &all)?,
        "cgroups" => return add(cgroups::COLUMNS, &all).map(|()| all),
        "files" => return add(files::COLUMNS, &all).map(|()| all),
        _ => {
            return Err(PyValueError::new_err(
                "there are fields of processes, of cgroups and of files",
            ));
        }
    }
    let (name, help) = Subject::READ_AT;
    all.set_item(name, (name, Vec::<&str>::new(), help))?;
    Ok(all)
}

fn add<S: fastproc_columns::Subject>(fields: &[Field<S>], all: &Bound<'_, PyDict>) -> PyResult<()> {
    fields
        .iter()
        .try_for_each(|field| all.set_item(field.name, (field.key(), field.aliases, field.help)))
}

#[pymethods]
impl Collector {
    #[new]
    #[pyo3(signature = (fields, *, source=None, max_age=0.0, socket=None, threads=false, exits=false, filter=None, sort=None, top=None, text=true, reuse_opening=false))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        clippy::fn_params_excessive_bools,
        reason = "they are Python's, by name"
    )]
    fn new(
        py: Python<'_>,
        fields: Vec<String>,
        source: Option<&str>,
        max_age: f64,
        socket: Option<PathBuf>,
        threads: bool,
        exits: bool,
        filter: Option<OsString>,
        sort: Option<&str>,
        top: Option<isize>,
        text: bool,
        reuse_opening: bool,
    ) -> PyResult<Self> {
        let top = top
            .map(usize::try_from)
            .transpose()
            .map_err(|_| PyValueError::new_err("top is a number of rows: not below 0"))?;
        let source = source
            .map(str::parse::<SourceKind>)
            .transpose()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let filter = filter
            .map(|filter| {
                let filter = filter::text(filter)?;
                let parsed = filter.parse::<Filter>().map_err(|error| error.to_string());
                parsed.map_err(|error| {
                    errors::not_before(&filter).unwrap_or_else(|| FilterError::new_err(error))
                })
            })
            .transpose()?;
        // The first rows are those of ps.
        let sort = sort
            .or(top.map(|_| "-pcpu"))
            .map(|sort| {
                let parsed = sort.parse::<Sort>();
                parsed.map_err(|error| {
                    errors::not_before(sort).unwrap_or_else(|| errors::unknown_field(error))
                })
            })
            .transpose()?;
        let mut subjects: Vec<Subject> = Vec::new();
        for name in &fields {
            let subject = Subject::find(name.trim()).map_err(errors::unknown_field)?;
            if !subjects.iter().any(|other| other.name() == subject.name()) {
                subjects.push(subject);
            }
        }
        if subjects.is_empty() {
            return Err(PyValueError::new_err("name at least one field"));
        }
        let is_rate =
            |subject: &&Subject| matches!(subject, Subject::Field(field) if field.is_rate);
        if let Some(rate) = subjects.iter().find(is_rate).filter(|_| reuse_opening) {
            let text = format!(
                "{} is known only over an interval, so it is null here: use Collector(…).difference(seconds)",
                rate.name()
            );
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 4)?;
        }
        let settings = Settings {
            subjects,
            filter,
            sort,
            top: top.unwrap_or(usize::MAX),
            threads,
            text,
        };
        let mut builder = fastproc::Collector::builder()
            .fields(settings.needs())
            .source(source)
            .max_age(seconds(max_age)?)
            .texts(settings.texts())
            .texts_max_age(seconds(max_age)?)
            .reuse_opening(reuse_opening)
            .quick_start(reuse_opening && !exits)
            .exits(exits);
        let exit_cmdlines = exits && settings.texts().contains(Texts::CMDLINE);
        builder = builder.exit_cmdlines(exit_cmdlines);
        if socket.is_some() {
            builder = builder.service_socket(socket);
        }
        let open = || {
            let collector = builder.open()?;
            let mut lookup = Lookup::new(collector.host(), false)?;
            lookup.open_files.read_from(source);
            if exit_cmdlines {
                lookup.details.keep_earlier_cmdlines();
            }
            Ok((collector, lookup))
        };
        let (collector, lookup) = py
            .detach(open)
            .map_err(|error| errors::of_collector(py, &error))?;
        Ok(Self {
            settings,
            state: Mutex::new(State {
                collector,
                lookup,
                sorter: Sorter::default(),
                before: None,
                last: None,
            }),
            process: std::process::id(),
        })
    }

    /// The processes now. Shares of CPU time are over the lifetime of each, and rates are unknown.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Table> {
        if let Some(filter) = &self.settings.filter {
            let of_one = filter.check_for_one_snapshot();
            of_one.map_err(|error| {
                // The option is that of the command.
                let text = error.to_string();
                let of_python = "use difference() or watch()";
                FilterError::new_err(text.replace("give one, as in --interval 1", of_python))
            })?;
        }
        self.collect(py, |state, settings, last| {
            let snapshot = state.collector.snapshot()?;
            let rows = Row::all(&snapshot, None, settings.threads);
            let State { lookup, sorter, .. } = state;
            let data = fill(settings, &snapshot, rows, lookup, sorter, last.as_ref());
            state.last = settings.kept(&snapshot, lookup, &data);
            Ok(Table::from(data))
        })
    }

    /// Makes a snapshot from which the next call of ``since_mark`` computes the difference.
    fn mark(&self, py: Python<'_>) -> PyResult<()> {
        self.collect(py, |state, _, _| {
            let snapshot = state.collector.snapshot()?;
            state.before.get_or_insert_default().set(&snapshot);
            Ok(())
        })
    }

    /// The processes now, with shares of CPU time and rates since the last call of this or of ``mark``.
    fn since_mark(&self, py: Python<'_>) -> PyResult<Table> {
        self.collect(py, |state, settings, last| {
            let State {
                collector,
                lookup,
                sorter,
                before,
                ..
            } = state;
            let snapshot = collector.snapshot()?;
            let records: Vec<Record> = snapshot
                .exits()
                .unwrap_or_default()
                .iter()
                .map(Exit::to_record)
                .collect();
            let now = Row::all(&snapshot, before.as_ref(), settings.threads);
            let mut data = fill(settings, &snapshot, now, lookup, sorter, last.as_ref());
            state.last = settings.kept(&snapshot, lookup, &data);
            if let Some(before) = before {
                data.gone = before.gone(&snapshot).map(|gone| gone.pid).collect();
                data.exited = snapshot.exits().map(|_| {
                    let ended = Box::new(Row::all_ended(snapshot, before, &records));
                    Arc::new(fill(settings, &snapshot, ended, lookup, sorter, None))
                });
            }
            before.get_or_insert_default().set(&snapshot);
            Ok(Table::from(data))
        })
    }

    /// Why exits are not recorded, if that was requested.
    #[getter]
    fn exits_refused(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |state, _| {
            let refused = state.collector.exits_refused();
            refused.map(|error| errors::message(error))
        })
    }

    /// The source: ``service``, ``bpf``, ``bpf-iter`` or ``procfs``.
    #[getter]
    fn source(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |state, _| state.collector.source().name())
    }

    /// The sources that were tried first, and why they cannot be used: pairs of name and reason.
    #[getter]
    fn refused(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        self.with(py, |state, _| {
            let refused = state.collector.refused().iter();
            refused
                .map(|refusal| (refusal.source.name(), errors::message(&refusal.error)))
                .collect()
        })
    }
}

impl Collector {
    /// Calls a function with the state, without holding the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State, &Settings) -> T + Send,
    ) -> PyResult<T> {
        // Another thread may have held the lock when this process was forked, and would never release it.
        if self.process != std::process::id() {
            return Err(Forked::new_err(fastproc::Error::Forked.to_string()));
        }
        Ok(py.detach(|| work(&mut self.lock(), &self.settings)))
    }

    /// Calls a function that makes one snapshot, with the table of the last one. That is forgotten unless the function sets a
    /// new one, because a snapshot only says what has changed since the one before it.
    fn collect<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State, &Settings, Option<Last>) -> Result<T, fastproc::Error> + Send,
    ) -> PyResult<T> {
        let result = self.with(py, |state, settings| {
            let last = state.last.take();
            work(state, settings, last)
        })?;
        result.map_err(|error| errors::of_collector(py, &error))
    }

    /// After a panic the next snapshot is like the first.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.subjects.iter().filter_map(|subject| match subject {
            Subject::Field(field) => Some(*field),
            _ => None,
        })
    }

    /// What the next table may reuse of this one: nothing, unless it has a row for each process, in the order of the pids.
    fn kept(&self, snapshot: &Snapshot<'_>, lookup: &Lookup, data: &TableData) -> Option<Last> {
        let is_whole =
            self.filter.is_none() && self.sort.is_none() && self.top == usize::MAX && !self.threads;
        // Other sources do not say what has changed.
        let tells = matches!(
            snapshot.stats().source,
            SourceKind::Bpf | SourceKind::Service
        );
        (is_whole && tells).then(|| Last::new(snapshot, lookup, data))?
    }

    /// The texts that a service should send.
    fn texts(&self) -> Texts {
        self.fields().map(Field::texts).collect()
    }

    /// The groups that the fields need.
    fn needs(&self) -> Fields {
        let mut needs = self
            .fields()
            .fold(Fields::empty(), |needs, field| needs | field.needs);
        needs |= self.filter.as_ref().map_or(Fields::empty(), Filter::needs);
        needs |= self.sort.as_ref().map_or(Fields::empty(), Sort::needs);
        needs.set(Fields::THREADS, self.threads);
        needs
    }
}

type Rows<'a> = Box<dyn Iterator<Item = Row<'a>> + 'a>;

/// Fills a table from the rows of a snapshot, with what the last one has of unchanged processes.
fn fill(
    settings: &Settings,
    snapshot: &Snapshot<'_>,
    mut rows: Rows<'_>,
    lookup: &mut Lookup,
    sorter: &mut Sorter,
    last: Option<&Last>,
) -> TableData {
    lookup.set_clock(snapshot);
    lookup.sees_all = snapshot.stats().source.is_guarded() || may_trace_all();
    let columns = |rows: usize| -> Vec<Data> {
        let subjects = settings.subjects.iter();
        subjects
            .map(|subject| Data::new(subject.kind(), rows))
            .collect()
    };
    let mut columns = columns(snapshot.len().min(settings.top));
    let subjects = settings.subjects.iter().zip(&mut columns).enumerate();
    let has = |at| last.is_some_and(|last| last.has(at, lookup));
    let (reused, mut made): (Vec<_>, Vec<_>) = subjects.partition(|&(at, _)| has(at));
    if let Some(last) = last {
        last.fill(snapshot, reused, lookup);
    }
    let mut push = |row: &Row<'_>, lookup: &mut Lookup| {
        for (_, (subject, data)) in &mut made {
            data.push(subject.value(row, snapshot, lookup));
        }
    };
    let filter = settings.filter.as_ref();
    let admits =
        |row: &Row<'_>, lookup: &mut Lookup| filter.is_none_or(|filter| filter.admits(row, lookup));
    if let Some(sort) = &settings.sort {
        let mut chosen = Vec::new();
        chosen.extend(rows.filter(|row| admits(row, lookup)));
        for row in sorter.first(sort, settings.top, chosen.as_slice(), lookup) {
            push(&row, lookup);
        }
    } else {
        let mut left = settings.top;
        while left > 0 {
            let Some(row) = rows.next() else { break };
            if admits(&row, lookup) {
                push(&row, lookup);
                left -= 1;
            }
        }
    }
    let columns = settings.subjects.iter().zip(columns);
    let columns: Vec<_> = columns
        .map(|(&subject, data)| ColumnData::new(subject, data))
        .collect();
    TableData {
        len: columns.first().map_or(0, |column| column.data.len),
        columns,
        text: settings.text,
        origin: Origin::new(snapshot, lookup),
        gone: Vec::new(),
        exited: None,
    }
}
