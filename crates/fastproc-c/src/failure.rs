//! Failures: a number for programs, a sentence for people.

use std::{
    borrow::Cow,
    cell::RefCell,
    error::Error,
    ffi::{CStr, CString, c_char, c_int},
};

use fastproc::{DetailError, Fields, cgroups, error_chain, files, text};

use crate::constants::{
    FASTPROC_ERROR_ARGUMENT, FASTPROC_ERROR_CLOSED, FASTPROC_ERROR_FORKED, FASTPROC_ERROR_INTERNAL,
    FASTPROC_ERROR_NO_PROCESS, FASTPROC_ERROR_NO_SNAPSHOT, FASTPROC_ERROR_NOT_ASKED,
    FASTPROC_ERROR_SIZES, FASTPROC_ERROR_SOURCE, FASTPROC_UNKNOWN,
};

/// Why a function returns no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A pointer is NULL.
    Null,
    /// An argument is invalid.
    Argument(String),
    /// The place does not exist.
    Place,
    Closed,
    Forked,
    Panicked,
    /// The program was compiled with another header.
    Sizes,
    /// The handle reads something else than the function is about.
    OtherKind,
    NoSnapshot,
    NotCompared,
    /// The snapshot has nothing with this id.
    NoSuchId(u64),
    NotAsked(Fields),
    CgroupNotAsked(cgroups::Fields),
    /// The value is not known.
    Unknown(&'static CStr),
    /// The value is not known, for this reason.
    Detail(DetailError),
    Source(fastproc::Error),
    Cgroups(cgroups::Error),
    Files(files::Error),
    Text(text::RenderError),
    Format(text::status::FormatError),
}

impl From<fastproc::Error> for Failure {
    fn from(error: fastproc::Error) -> Self {
        match error {
            fastproc::Error::Forked => Self::Forked,
            error => Self::Source(error),
        }
    }
}

impl From<cgroups::Error> for Failure {
    fn from(error: cgroups::Error) -> Self {
        Self::Cgroups(error)
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Self {
        Self::Files(error)
    }
}

impl From<DetailError> for Failure {
    fn from(error: DetailError) -> Self {
        Self::Detail(error)
    }
}

impl From<text::RenderError> for Failure {
    fn from(error: text::RenderError) -> Self {
        match error {
            text::RenderError::MissingFields(_) => Self::Unknown(c"this process has no such text"),
            error @ text::RenderError::KernelText { .. } => Self::Text(error),
        }
    }
}

impl From<text::status::FormatError> for Failure {
    fn from(error: text::status::FormatError) -> Self {
        Self::Format(error)
    }
}

impl Failure {
    /// The number that the function returns.
    pub(crate) fn code(&self) -> c_int {
        match self {
            Self::Null | Self::Argument(_) | Self::Place | Self::OtherKind => {
                FASTPROC_ERROR_ARGUMENT
            }
            Self::Sizes => FASTPROC_ERROR_SIZES,
            Self::Closed => FASTPROC_ERROR_CLOSED,
            Self::Forked => FASTPROC_ERROR_FORKED,
            Self::Panicked => FASTPROC_ERROR_INTERNAL,
            Self::NoSnapshot | Self::NotCompared => FASTPROC_ERROR_NO_SNAPSHOT,
            Self::NoSuchId(_) => FASTPROC_ERROR_NO_PROCESS,
            Self::NotAsked(_) | Self::CgroupNotAsked(_) => FASTPROC_ERROR_NOT_ASKED,
            Self::Unknown(_) | Self::Detail(_) => FASTPROC_UNKNOWN,
            Self::Source(_)
            | Self::Cgroups(_)
            | Self::Files(_)
            | Self::Text(_)
            | Self::Format(_) => FASTPROC_ERROR_SOURCE,
        }
    }

    /// What went wrong, and what to do. Failures that may occur for every process do not allocate.
    fn message(&self) -> Cow<'static, CStr> {
        let text = match self {
            Self::Null => c"a pointer to the handle or to the result is NULL",
            Self::Place => {
                c"there is no such place: places begin at 0 and end before the number that fastproc_snapshot() or \
                 fastproc_difference() returned, and change with each snapshot"
            }
            Self::Closed => c"the handle has been closed: open another one by fastproc_open()",
            Self::Forked => {
                c"the handle was opened before fork(), and its memory is the parent's: open another one in the child"
            }
            Self::Panicked => {
                c"a defect of the library: close the handle, open another one, and report the defect"
            }
            Self::NoSnapshot => c"there is no snapshot: call fastproc_snapshot() first, and check its result",
            Self::Sizes => {
                c"the program was compiled with the fastproc.h of another version, and its structures have other sizes: \
                 compile it with the header of this library, and pass FASTPROC_SIZES"
            }
            Self::OtherKind => {
                c"this function is for another kind of handle: fastproc_open() is for processes, fastproc_open_cgroups() \
                 for cgroups, fastproc_open_files() for open files"
            }
            Self::NotCompared => {
                c"the snapshot has not been compared with the one before: call fastproc_difference() after fastproc_snapshot()"
            }
            Self::Unknown(why) => why,
            Self::NoSuchId(id) => return owned(format!("the snapshot has nothing with the id {id}")),
            Self::Argument(message) => return owned(message.clone()),
            Self::NotAsked(fields) => {
                let names = Fields::NAMES.iter().filter(|(_, field)| fields.contains(*field));
                return not_asked("FASTPROC_", names.map(|(name, _)| *name));
            }
            Self::CgroupNotAsked(fields) => {
                let names = cgroups::Fields::NAMES.iter();
                let names = names.filter(|(_, field)| fields.contains(*field));
                return not_asked("FASTPROC_CGROUPS_", names.map(|(name, _)| *name));
            }
            Self::Detail(error) => return chain(error),
            Self::Source(error) => return chain(error),
            Self::Cgroups(error) => return chain(error),
            Self::Files(error) => return chain(error),
            Self::Text(error) => return chain(error),
            Self::Format(error) => return chain(error),
        };
        Cow::Borrowed(text)
    }

    /// Keeps the message for [`last`], and returns the number.
    pub(crate) fn report(&self) -> c_int {
        let message = self.message();
        // An exiting thread can no longer store it.
        let _ = LAST.try_with(|last| *last.borrow_mut() = message);
        self.code()
    }
}

fn not_asked<'a>(prefix: &str, names: impl Iterator<Item = &'a str>) -> Cow<'static, CStr> {
    let names: Vec<_> = names
        .map(|name| format!("{prefix}{}", name.replace('-', "_").to_uppercase()))
        .collect();
    owned(format!(
        "the value was not read: open with {} among the fields",
        names.join(" | ")
    ))
}

/// An error with its causes.
fn chain(error: &dyn Error) -> Cow<'static, CStr> {
    owned(error_chain(error))
}

fn owned(text: String) -> Cow<'static, CStr> {
    let mut bytes = text.into_bytes();
    bytes.retain(|&byte| byte != 0);
    CString::new(bytes).map_or(Cow::Borrowed(c"no message"), Cow::Owned)
}

thread_local! {
    static LAST: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"no function has failed in this thread")) };
}

/// The message of the last failure in this thread. It stays until the next.
pub(crate) fn last() -> *const c_char {
    let last = LAST.try_with(|last| last.borrow().as_ptr());
    last.unwrap_or(c"this thread ends".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_do() {
        let not_asked = Failure::NotAsked(Fields::IO | Fields::MEMORY_DETAILS).message();
        let text = not_asked.to_str().expect("text");
        assert!(
            text.contains("FASTPROC_IO | FASTPROC_MEMORY_DETAILS"),
            "{text}"
        );
        let error = fastproc::Error::Run(std::io::Error::other("the\0cause"));
        assert_eq!(
            chain(&error).to_bytes(),
            b"cannot run the BPF program: thecause"
        );
    }
}
