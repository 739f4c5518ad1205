//! The process that serves what another one collects.

use std::{
    io,
    net::{Shutdown, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use fastproc_metrics::{
    link::{Link, Message},
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

/// What is kept for threads, and what they open.
const SPARE: usize = 8;

/// Serves until it is told to end, or the other process has ended. Its end of the link is standard input.
pub fn run(options: &Options) -> Result<(), Failure> {
    let hung_up = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, Arc::clone(&hung_up))?;
    let link = Link::from(io::stdin().as_fd().try_clone_to_owned()?);
    give_up_everything(options)?;
    let files = Files::new(link, options.groups.clone(), options.web.clone());
    let configuration = match files.read() {
        Ok(configuration) => configuration,
        // Whoever asked for all this has ended meanwhile, and nobody wants to know.
        Err(_) if files.are_gone() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some([listener, scrapes]) = files.configured(&configuration)? else {
        return Ok(());
    };
    let had_groups = configuration.rules.is_none_or(|rules| !rules.is_empty());
    let listener = TcpListener::from(descriptor(listener)?);
    let mut server = Server::new(listener, configuration.web, Limits::default());
    server.serve_metrics_at(&options.telemetry_path);
    server.reload_by(Reload {
        read: Arc::new(move || files.read_again(had_groups)),
        log: say,
        by_request: options.enable_lifecycle,
    });
    let places = options.max_connections.min(places()).max(1);
    if places < options.max_connections {
        say(&format!(
            "the limit of open descriptors (ulimit -n) leaves room for {places} connections at once"
        ));
    }
    server.limit_connections(places);
    let scrapes = descriptor(scrapes)?;
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
            // A scrape that is still waited for may never come. It fails if the other process has gone.
            let _ = link.shutdown(Shutdown::Both);
            served
        })?;
    // Ends when the web server has, which holds the only handle, or when the other process has.
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

fn descriptor(message: Message) -> io::Result<OwnedFd> {
    let descriptor = message.descriptor;
    descriptor.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// It needs no privileges: what takes some the other process opens for it.
fn give_up_everything(options: &Options) -> Result<(), Failure> {
    privileges::drop_to(options.user.as_deref(), Needs::default())?;
    // Others of the same user shall read no keys from it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Nor shall it type into the terminal of whoever has started all this. Signals from there come by the other process.
    setsid()?;
    // Without the process that collects there is nothing to serve, and nobody shall find the port taken.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// How many connections there are descriptors for.
fn places() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").map_or(16, Iterator::count);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit as usize).saturating_sub(open + SPARE)
}
