//! What signals do: before the exporter serves, and from then on.

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

/// SIGHUP ends nothing from now on. It is remembered.
pub fn remember_hangup() -> io::Result<Arc<AtomicBool>> {
    let hung_up = Arc::new(AtomicBool::new(false));
    register(SIGHUP, Arc::clone(&hung_up))?;
    Ok(hung_up)
}

/// Does this each time one of these signals comes, by a thread of its own.
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

    /// From now on the exporter sees to them. Returns whether SIGHUP came before.
    pub fn leave_to_exporter(&self) -> bool {
        self.starting.store(false, Ordering::SeqCst);
        self.hung_up.load(Ordering::SeqCst)
    }

    /// Whether this process was told to end.
    pub fn told_to_end(&self) -> bool {
        self.told_to_end.load(Ordering::SeqCst)
    }
}

/// Leaves the signals of the process to the threads that [`on`] has started. What this thread reads, and each that it starts,
/// may not come, and then it handles no signal.
pub fn leave_to_other_threads() -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGHUP);
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    Ok(signals.thread_block()?)
}
