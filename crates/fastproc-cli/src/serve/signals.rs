//! The effects of signals, before the exporter serves and after that.

use std::{
    ffi::c_int,
    io::{self, Read},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use nix::sys::signal::{SigSet, Signal};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
    low_level::pipe,
};

/// From now on SIGHUP does not end this process, but is remembered.
pub fn remember_hangup() -> io::Result<Arc<AtomicBool>> {
    let hung_up = Arc::new(AtomicBool::new(false));
    register(SIGHUP, Arc::clone(&hung_up))?;
    Ok(hung_up)
}

/// Calls `act` in a separate thread whenever one of these signals arrives.
pub fn on(signals: &[c_int], act: impl Fn() + Send + 'static) -> io::Result<()> {
    let (mut told, tell) = UnixStream::pair()?;
    for &signal in signals {
        pipe::register(signal, tell.try_clone()?)?;
    }
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            while matches!(told.read(&mut [0; 64]), Ok(1..)) {
                act();
            }
        })?;
    Ok(())
}

/// SIGTERM and SIGINT end this process with status 0 while it starts.
pub struct Signals {
    starting: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
    told_to_end: Arc<AtomicBool>,
}

impl Signals {
    pub fn new(hung_up: Arc<AtomicBool>) -> io::Result<Self> {
        let signals = Self {
            starting: Arc::new(AtomicBool::new(true)),
            hung_up,
            told_to_end: Arc::default(),
        };
        for signal in [SIGTERM, SIGINT] {
            register(signal, Arc::clone(&signals.told_to_end))?;
            register_conditional_shutdown(signal, 0, Arc::clone(&signals.starting))?;
        }
        Ok(signals)
    }

    /// From now on the exporter handles signals. Returns whether SIGHUP came before.
    pub fn leave_to_exporter(&self) -> bool {
        self.starting.store(false, Ordering::SeqCst);
        self.hung_up.load(Ordering::SeqCst)
    }

    /// Whether a signal has stopped this process.
    pub fn told_to_end(&self) -> bool {
        self.told_to_end.load(Ordering::SeqCst)
    }
}

/// Leaves the signals of the process to the threads that [`on`] has started. This thread, and those that it starts, may
/// block forever in a read, and then could not handle a signal.
pub fn leave_to_other_threads() -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGHUP);
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    Ok(signals.thread_block()?)
}
