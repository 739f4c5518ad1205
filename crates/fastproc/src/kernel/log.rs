//! Keeps libbpf's messages instead of printing them. libbpf has one callback for the whole process; each thread
//! has its own log.

use std::{cell::RefCell, sync::OnceLock};

use libbpf_rs::{PrintCallback, PrintLevel, set_print};

/// The verifier's log can have megabytes. Its end says what went wrong.
const LONGEST: usize = 4096;

/// The callback that the application had set before. It still gets the messages of the application's own calls.
static PREVIOUS: OnceLock<Option<(PrintLevel, PrintCallback)>> = OnceLock::new();

thread_local! {
    static LOG: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps libbpf's messages to this thread until it is dropped. Every call of libbpf is made under one.
pub(crate) struct Log {
    outer: Option<String>,
}

impl Log {
    pub(crate) fn start() -> Self {
        PREVIOUS.get_or_init(|| set_print(Some((PrintLevel::Warn, keep))));
        Self {
            outer: LOG.with_borrow_mut(|log| log.replace(String::new())),
        }
    }

    /// The end of what was printed since [`start`](Self::start).
    #[allow(clippy::unused_self, reason = "while it lives there is a log")]
    pub(crate) fn end(&self) -> String {
        LOG.with_borrow(|log| {
            let log = log.as_deref().unwrap_or_default();
            let mut from = log.len().saturating_sub(LONGEST);
            while !log.is_char_boundary(from) {
                from += 1;
            }
            log[from..].trim_end().to_owned()
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LOG.with_borrow_mut(|log| *log = self.outer.take());
    }
}

/// Adds to the log of this thread, if there is one.
pub(super) fn add(text: &str) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.push_str(text);
        }
    });
}

fn keep(level: PrintLevel, message: String) {
    let rest = LOG.with_borrow_mut(|log| match log {
        Some(log) => {
            log.push_str(&message);
            None
        }
        None => Some(message),
    });
    if let (Some(message), Some(&Some((least, print)))) = (rest, PREVIOUS.get())
        && level <= least
    {
        print(level, message);
    }
}
