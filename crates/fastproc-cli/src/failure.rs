//! Why a subcommand could not run, told to a person.

use std::{error::Error, io};

/// A typed error each, of which a person reads the chain of causes.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The error and its causes, on one line.
pub fn chain(failure: &(dyn Error + 'static)) -> String {
    let causes: Vec<String> = causes(failure).map(ToString::to_string).collect();
    causes.join(": ")
}

/// Whether the failure is that nobody reads standard output any more, as in `fastproc ps | head -1`.
pub fn is_broken_pipe(failure: &(dyn Error + 'static)) -> bool {
    // What the library writes to is not standard output, but the service.
    let of_library = |error: &&(dyn Error + 'static)| {
        error.is::<fastproc::Error>() || error.is::<fastproc::source::service::Error>()
    };
    causes(failure)
        .take_while(|error| !of_library(error))
        .any(|error| {
            let io = error.downcast_ref().map(io::Error::kind);
            let json = error
                .downcast_ref()
                .and_then(serde_json::Error::io_error_kind);
            io.or(json) == Some(io::ErrorKind::BrokenPipe)
        })
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
    fn a_broken_pipe_is_found_wherever_it_is() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&broken()));
        assert!(is_broken_pipe(&OutputError::from(broken())));
        assert!(is_broken_pipe(&serde_json::Error::io(broken())));
        // The service has ended, and somebody reads all the same.
        assert!(!is_broken_pipe(&fastproc::source::service::Error::Broken(
            broken()
        )));
    }
}
