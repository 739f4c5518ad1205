//! Errors of subcommands.

use std::{error::Error, io};

/// Why a subcommand failed.
pub type Failure = Box<dyn Error + Send + Sync>;

pub use fastproc::error_chain as chain;

/// An error and its causes for standard error. What the verifier of BPF programs says has many lines; each line after the
/// first is indented, so that no name in it passes for another message.
pub fn shown(error: &(dyn Error + 'static)) -> String {
    let mut text = chain(error);
    // Whatever writes to a file names it.
    if io_kind(error) == Some(io::ErrorKind::StorageFull) {
        text.insert_str(0, "cannot write to standard output: ");
    }
    let mut lines = text.split('\n').map(fastproc::log_line);
    let mut shown = lines.next().unwrap_or_default();
    for line in lines {
        let is_indented = line.is_empty() || line.starts_with(' ');
        shown.extend(["\n", if is_indented { "" } else { "  " }, &line]);
    }
    shown
}

/// Whether the reader of standard output closed it, as in `fastproc ps | head -1`.
pub fn is_broken_pipe(failure: &(dyn Error + 'static)) -> bool {
    // The library writes to the service, not to standard output.
    let of_library = |error: &&(dyn Error + 'static)| {
        error.is::<fastproc::Error>()
            || error.is::<fastproc::cgroups::Error>()
            || error.is::<fastproc::source::service::Error>()
    };
    causes(failure)
        .take_while(|error| !of_library(error))
        .any(|error| io_kind(error) == Some(io::ErrorKind::BrokenPipe))
}

/// The kind of an error of the system, without its causes.
fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let io = error.downcast_ref().map(io::Error::kind);
    let json = error.downcast_ref();
    io.or_else(|| json.and_then(serde_json::Error::io_error_kind))
}

fn causes<'e>(
    failure: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let mut next = Some(failure);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputError;

    #[test]
    fn causes_follow_one_another() {
        let error = OutputError::from(io::Error::other("the disk is full"));
        assert_eq!(
            chain(&error),
            "cannot write to standard output: the disk is full"
        );
        assert!(!is_broken_pipe(&error));
    }

    #[test]
    fn a_name_in_an_error_cannot_act_on_the_terminal() {
        let error = io::Error::other("no user \x1b[2Ja\u{202e}b\nfastproc: all is well");
        assert_eq!(
            shown(&error),
            "no user \\u{1b}[2Ja\\u{202e}b\n  fastproc: all is well"
        );
    }

    #[test]
    fn a_broken_pipe_is_found_wherever_it_is() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&broken()));
        assert!(is_broken_pipe(&OutputError::from(broken())));
        assert!(is_broken_pipe(&serde_json::Error::io(broken())));
        // The service has ended; the reader of standard output is still there.
        assert!(!is_broken_pipe(&fastproc::source::service::Error::Broken(
            broken()
        )));
    }
}
