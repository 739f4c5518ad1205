//! The process that serves the metrics that another one collects.

use std::{
    io,
    net::{Shutdown, TcpListener},
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use fastproc_metrics::{
    link::Link,
    privileges::{self, Needs},
};
use rustix::process::{
    DumpableBehavior, Resource, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};
use signal_hook::{consts::SIGHUP, flag};

pub use crate::web::configuration::Failure;
use crate::{
    files::Files,
    options::Options,
    say,
    web::{Limits, ScrapeError, Server, configuration::Reload, scraper},
};

/// Descriptors kept for threads, and for files that they open.
const SPARE: usize = 8;

/// Serves until it is stopped, or the other process exits. Standard input is its end of the link.
pub fn run(options: &Options) -> Result<(), Failure> {
    let hung_up = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, Arc::clone(&hung_up))?;
    let link = Link::from(io::stdin().as_fd().try_clone_to_owned()?);
    give_up_everything(options)?;
    let files = Files::new(link, options.groups.clone(), options.web.clone());
    let configuration = match files.read() {
        Ok(configuration) => configuration,
        // The process that started this one has exited meanwhile, so there is nothing to report.
        Err(_) if files.are_gone() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some(mut descriptors) = files.configured(&configuration)? else {
        return Ok(());
    };
    let scrapes = descriptors.pop().ok_or("the link for scrapes is missing")?;
    let listeners = descriptors.into_iter().map(TcpListener::from).collect();
    let had_groups = configuration.rules.is_none_or(|rules| !rules.is_empty());
    let places = options.max_connections.min(places()).max(1);
    if places < options.max_connections {
        say(&format!(
            "the limit of open descriptors (ulimit -n) leaves room for {places} connections at once"
        ));
    }
    let server = Server {
        listeners,
        config: configuration.web,
        limits: Limits {
            connections: places,
            ..Limits::default()
        },
        metrics_path: options.telemetry_path.clone(),
        reload: Reload {
            read: Arc::new(move || files.read_again(had_groups)),
            log: say,
            by_request: options.enable_lifecycle,
        },
    };
    let link = UnixStream::from(scrapes.try_clone()?);
    let (scraper, handle) = scraper(scrapes.into(), options.min_interval);
    let confine = move || {
        if let Err(error) = fastproc_service::confine_to_descriptors() {
            say(&format!(
                "what is not needed is not forbidden, system calls are not filtered: {error}"
            ));
        }
        hung_up.load(Ordering::SeqCst)
    };
    let web = std::thread::Builder::new()
        .name("web".into())
        .spawn(move || {
            let served = server.run(handle, confine);
            // A scrape may wait forever for its answer. This makes it fail if the other process has exited.
            let _ = link.shutdown(Shutdown::Both);
            served
        })?;
    // Returns when the web server, which holds the only handle, or the other process has ended.
    match scraper.run() {
        Ok(()) => {}
        Err(ScrapeError::Ended) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    match web.join() {
        Ok(served) => Ok(served?),
        Err(_) => Err("the web server has failed".into()),
    }
}

/// Drops all privileges: the other process opens everything that needs some.
fn give_up_everything(options: &Options) -> Result<(), Failure> {
    privileges::drop_to(options.user.as_deref(), Needs::default())?;
    // Other processes of this user must not read keys from its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Nor may it type into the terminal of the user who started it. Signals from there come through the other process.
    setsid()?;
    // Without the collecting process there is nothing to serve, and the port must become free.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// The number of connections for which there are descriptors.
fn places() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").map_or(16, Iterator::count);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit as usize).saturating_sub(open + SPARE)
}
