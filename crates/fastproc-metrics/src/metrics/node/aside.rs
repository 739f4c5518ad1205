//! Reads values that may block on an unresponsive file system in separate threads, and omits them from a scrape that
//! would wait too long.

use std::{
    io,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

/// How long one scrape waits; later ones do not wait for a late value. A virtual CPU may stall for a while.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// A value that a separate thread reads repeatedly.
#[derive(Debug)]
pub(super) struct Aside<T> {
    /// `None` while the thread has it.
    value: Option<T>,
    ask: Sender<T>,
    answers: Receiver<T>,
    patience: Duration,
}

impl<T: Send + 'static> Aside<T> {
    /// Starts the thread. Privileges belong to threads, so drop them first.
    pub(super) fn new(
        name: &str,
        value: T,
        read: fn(&mut T),
        patience: Duration,
    ) -> io::Result<Self> {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let body = move || {
            for mut value in asked {
                read(&mut value);
                if answer.send(value).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(Self {
            value: Some(value),
            ask,
            answers,
            patience,
        })
    }

    /// Reads the value, unless the thread is still busy with an earlier call.
    pub(super) fn collect(&mut self) {
        // A value that came too late for the last scrape is too old for this one.
        if let Some(value) = self.value.take().or_else(|| self.answers.try_recv().ok()) {
            // Fails if the thread has panicked; then there will be no answer.
            let _ = self.ask.send(value);
            self.value = self.answers.recv_timeout(self.patience).ok();
        }
    }

    /// The value, if it came in time.
    pub(super) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The value, if it came in time.
    pub(super) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_is_left_out_until_it_comes() {
        let (release, go_on) = channel::<()>();
        let read = |go_on: &mut Receiver<()>| {
            let _ = go_on.recv();
        };
        let mut aside =
            Aside::new("slow", go_on, read, Duration::from_millis(1)).expect("a thread");
        for _ in 0..2 {
            aside.collect();
            assert!(aside.get().is_none(), "it waits");
        }
        // From now on the thread no longer blocks.
        drop(release);
        while aside.get().is_none() {
            thread::yield_now();
            aside.collect();
        }
    }
}
