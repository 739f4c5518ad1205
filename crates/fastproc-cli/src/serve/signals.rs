//! What signals do before the server sees to them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};

/// SIGHUP ends nothing from now on. It is remembered.
pub fn remember_hangup() -> io::Result<Arc<AtomicBool>> {
    let hung_up = Arc::new(AtomicBool::new(false));
    register(SIGHUP, Arc::clone(&hung_up))?;
    Ok(hung_up)
}

/// SIGTERM and SIGINT end this process with status 0 while it starts.
pub struct Signals {
    starting: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
}

impl Signals {
    pub fn new(hung_up: Arc<AtomicBool>) -> io::Result<Self> {
        let starting = Arc::new(AtomicBool::new(true));
        for signal in [SIGTERM, SIGINT] {
            register_conditional_shutdown(signal, 0, Arc::clone(&starting))?;
        }
        Ok(Self { starting, hung_up })
    }

    /// From now on the server sees to them. Returns whether SIGHUP came before.
    pub fn leave_to_server(&self) -> bool {
        self.starting.store(false, Ordering::SeqCst);
        self.hung_up.load(Ordering::SeqCst)
    }
}
