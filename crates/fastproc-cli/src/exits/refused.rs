//! Why `fastproc exits` cannot show events, and what helps.

/// This process cannot record events, and no service does it instead.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "this process cannot record exits, and there is no service that does \
         (start one as root: fastproc serve --no-metrics --socket)"
    )]
    Exits(#[source] fastproc::Error),
    #[error(
        "this process cannot record execs, and a service does not record them; leave out --execs"
    )]
    Execs(#[source] fastproc::Error),
}
