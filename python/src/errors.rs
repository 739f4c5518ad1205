//! Converts errors to exceptions, each with its cause.

use std::{error, fmt, io};

use fastproc_history::read;
use pyo3::{
    create_exception,
    exceptions::{PyException, PyOSError, PyValueError},
    prelude::*,
};

use crate::columns::Subject;

create_exception!(
    fastproc,
    Error,
    PyException,
    "What fastproc raises: it says what was tried, why it failed, and what to do. Its cause is in __cause__."
);
create_exception!(
    fastproc,
    ServiceError,
    Error,
    "The service cannot be used, and it is the only source that was allowed."
);
create_exception!(
    fastproc,
    Forked,
    Error,
    "This process was forked from the one that opened the collector: open another one here."
);
create_exception!(
    fastproc,
    UnknownField,
    Error,
    "There is no field of this name."
);
create_exception!(
    fastproc,
    FilterError,
    Error,
    "A filter that cannot be understood."
);

/// The exception for an unknown field, with a hint where the names are.
pub fn unknown_field(error: impl fmt::Display) -> PyErr {
    UnknownField::new_err(format!("{error} (fastproc.fields() has them all)"))
}

/// The exception for a column that cannot be used for sorting or filtering, although a table may have it.
pub fn not_before(text: &str) -> Option<PyErr> {
    text.contains(Subject::READ_AT.0).then(|| {
        PyValueError::new_err(
            "read_at is not known before a table is there: sort and filter the table itself by it",
        )
    })
}

/// The message of an error of the library. It tells a command what to do where Python needs something else.
pub fn message(error: &(dyn error::Error + 'static)) -> String {
    if let Some(fastproc::Error::MissingCapability { missing }) = error.downcast_ref() {
        return format!(
            "{missing} missing: run Python as root, or start the service, as root: fastproc serve --no-metrics --socket"
        );
    }
    if let Some(read::Error::Empty(path)) = error.downcast_ref() {
        return format!(
            "{} holds no history: fastproc record writes one, and folder= names another",
            path.display()
        );
    }
    error.to_string()
}

/// The exception for an error of the library.
pub fn of_collector(py: Python<'_>, error: &fastproc::Error) -> PyErr {
    let exception = match error {
        fastproc::Error::Forked => Forked::new_err(error.to_string()),
        fastproc::Error::Service(_) => ServiceError::new_err(error.to_string()),
        _ => Error::new_err(message(error)),
    };
    with_cause(py, exception, error)
}

/// The exception for any other error.
pub fn to_py_err(py: Python<'_>, error: &(dyn error::Error + 'static)) -> PyErr {
    with_cause(py, Error::new_err(message(error)), error)
}

fn with_cause(py: Python<'_>, exception: PyErr, error: &(dyn error::Error + 'static)) -> PyErr {
    if let Some(cause) = error.source() {
        let number = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        // From a system call: an OSError with its errno.
        let of_cause = match number {
            Some(number) => PyOSError::new_err((number, cause.to_string())),
            None => Error::new_err(message(cause)),
        };
        exception.set_cause(py, Some(with_cause(py, of_cause, cause)));
    }
    exception
}
