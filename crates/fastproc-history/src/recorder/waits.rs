//! What threads wait for, for `waits`.

use std::ffi::CString;

use fastproc::{
    Details, Host, Process, Snapshot,
    record::{State, ThreadRecord},
};

use super::{
    cells::{Held, Members, Row, place},
    store::Key,
};
use crate::table::WAITS;

/// Rows of a walk. Whoever starts many threads must not push out what is older.
const MOST: usize = 1_000;

/// Reads what threads wait for.
#[derive(Debug)]
pub struct Waits {
    details: Details,
    members: Members,
}

impl Waits {
    /// Privileges must have been dropped before, if that is to happen.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
    pub fn open(host: &Host) -> Result<Self, fastproc::Error> {
        Ok(Self {
            details: Details::open(host)?,
            members: Members::of(&WAITS),
        })
    }

    /// The rows of a snapshot with [`fastproc::Fields::THREADS`].
    pub fn rows(&mut self, snapshot: &Snapshot<'_>) -> Vec<(Key, Row)> {
        let own = rustix::thread::gettid().as_raw_pid().cast_unsigned();
        let mut threads: Vec<_> = snapshot
            .threads_with_processes()
            .filter_map(|(process, thread)| {
                let state = match State::from_bits(thread.state_bits) {
                    State::DiskSleep => "D",
                    State::Running if thread.tid != own => "R",
                    _ => return None,
                };
                Some((state, process, thread))
            })
            .collect();
        // D before R.
        threads.sort_by_key(|(state, ..)| *state);
        threads.truncate(MOST);
        let rows = threads.into_iter().map(|(state, process, thread)| {
            let mut row = self.members.row(thread, Held::ALL);
            row[place(&WAITS, "state")] = state.into();
            let start_ns = process.identity().start_ns;
            row[place(&WAITS, "start_ns")] = start_ns.cast_signed().into();
            if let Some(file) = self.file(process, thread, "wchan") {
                // It says 0 as well if there is none.
                if !matches!(file, b"" | b"0") {
                    row[place(&WAITS, "wait_channel")] = file.into();
                }
            }
            let call = self.file(process, thread, "syscall").and_then(call);
            row[place(&WAITS, "system_call")] = call.into();
            ((thread.tgid.into(), thread.tid.into()), row)
        });
        rows.collect()
    }

    fn file(&mut self, process: Process<'_>, thread: &ThreadRecord, name: &str) -> Option<&[u8]> {
        let path = CString::new(format!("task/{}/{name}", thread.tid)).ok()?;
        self.details.file(process, &path).ok()
    }
}

/// The number of `/proc/PID/syscall`, which says `running`, or `-1` outside of one.
fn call(text: &[u8]) -> Option<u64> {
    let number = text.split(|&byte| byte == b' ').next()?;
    std::str::from_utf8(number).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use fastproc::{Collector, Fields};
    use fastproc_testbed::{Options, Testbed};

    use super::*;
    use crate::recorder::Cell;

    #[test]
    fn a_parent_waits_in_the_kernel_for_its_vfork_child() {
        let bed = Testbed::open(&Options::only(["vfork-parent"])).expect("the testbed starts");
        let parent = bed.process("vfork-parent").expect("it is one of them");
        let builder = Collector::builder().fields(Fields::THREADS);
        let mut collector = builder.open().expect("/proc is there");
        let mut waits = Waits::open(&Host::read().expect("the host")).expect("/proc is there");
        let rows = waits.rows(&collector.snapshot().expect("a snapshot"));
        let key = (parent.pid.into(), parent.pid.into());
        let found = rows.iter().find(|(of, _)| *of == key);
        let row = &found.expect("it waits").1;
        let cell = |name: &str| &row[place(&WAITS, name)];
        assert_eq!(*cell("state"), "D".into());
        assert_ne!(*cell("comm"), Cell::Null);
        // Which ones differs from machine to machine, and not everybody may know.
        if fastproc::access::may_trace_all() {
            assert!(matches!(cell("system_call"), Cell::Number(_)), "{row:?}");
            assert!(matches!(cell("wait_channel"), Cell::Text(_)), "{row:?}");
        }
    }

    #[test]
    fn a_thread_that_runs_is_in_no_system_call() {
        for (text, number) in [
            (&b"running\n"[..], None),
            (b"-1 0x7ffd 0x7f3c\n", None),
            (b"0 0x3 0x7ffd 0x400 0x0 0x0 0x0 0x7ffd 0x7f3c\n", Some(0)),
            (b"232 0x5", Some(232)),
        ] {
            assert_eq!(call(text), number);
        }
    }
}
