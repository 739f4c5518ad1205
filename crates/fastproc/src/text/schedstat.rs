//! `/proc/PID/schedstat`: one line with the run time of a thread, how long it waited for a CPU, and how often it got one
//! (`proc_pid_schedstat()` of fs/proc/base.c). The file of a process has the numbers of its leading thread.

use seqtext::{Dec, SeqBuf};

use super::{cursor::Cursor, render::RenderError};
use crate::{
    base::error::parse::ParseError,
    records::{fields::Fields, record::ThreadRecord},
};

const FILE: &str = "/proc/PID/schedstat";

/// What a thread waited, in nanoseconds, and how often it got a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The second number.
    pub run_delay_ns: u64,
    /// The third number.
    pub timeslices: u64,
}

impl Waits {
    /// Those of a thread that has never run.
    pub(crate) const NONE: Self = Self {
        run_delay_ns: 0,
        timeslices: 0,
    };
}

/// Appends the line.
///
/// # Errors
/// [`RenderError::MissingFields`] if the source did not tell these values; nothing is written then.
pub fn render(thread: &ThreadRecord, out: &mut SeqBuf<'_>) -> Result<(), RenderError> {
    let waits = thread.run_delay_ns().zip(thread.timeslices());
    // Only a thread that has never run has no run time, and /proc does not tell it.
    let run_ns = match (thread.sum_exec_ns(), waits) {
        (None, Some((_, timeslices))) if timeslices > 0 => None,
        (run_ns, _) => Some(run_ns.unwrap_or(0)),
    };
    let (Some(run_ns), Some((run_delay_ns, timeslices))) = (run_ns, waits) else {
        return Err(RenderError::MissingFields(Fields::CPU));
    };
    out.put((
        Dec(run_ns),
        b" ",
        Dec(run_delay_ns),
        b" ",
        Dec(timeslices),
        b"\n",
    ));
    Ok(())
}

/// Reads the line. `None`: three zeros, of a thread that has never run, or because the kernel does not count.
pub fn parse(text: &[u8]) -> Result<Option<Waits>, ParseError> {
    let mut numbers = Cursor::new(FILE, text);
    let run_ns = numbers.u64()?;
    numbers.byte(b' ', "a space and the next number")?;
    let run_delay_ns = numbers.u64()?;
    numbers.byte(b' ', "a space and the next number")?;
    let timeslices = numbers.u64()?;
    numbers.newline()?;
    let is_counted = (run_ns, run_delay_ns, timeslices) != (0, 0, 0);
    Ok(is_counted.then_some(Waits {
        run_delay_ns,
        timeslices,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    #[test]
    fn the_line_has_three_numbers() {
        let text = b"123 18446744073709551615 7\n";
        let waits = Waits {
            run_delay_ns: u64::MAX,
            timeslices: 7,
        };
        assert_eq!(parse(text), Ok(Some(waits)));
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_err());
        }
    }

    #[test]
    fn three_zeros_are_no_counts() {
        assert_eq!(parse(b"0 0 0\n"), Ok(None));
        // It got a CPU and has not left it yet.
        let first = Waits {
            run_delay_ns: 0,
            timeslices: 1,
        };
        assert_eq!(parse(b"0 0 1\n"), Ok(Some(first)));
    }

    #[test]
    fn a_line_is_made_only_of_known_values() {
        let mut thread = ThreadRecord::default();
        let mut text = Text::default();
        let missing = Err(RenderError::MissingFields(Fields::CPU));
        let mut line = |thread: &ThreadRecord| {
            let line = text.render(|out| render(thread, out));
            line.map(|line| String::from_utf8_lossy(line).into_owned())
        };
        assert_eq!(line(&thread), missing);
        (thread.run_delay_ns, thread.timeslices) = (5, 2);
        assert_eq!(line(&thread), missing);
        thread.sum_exec_ns = 9;
        assert_eq!(line(&thread), Ok("9 5 2\n".into()));
        (thread.sum_exec_ns, thread.timeslices) = (0, 0);
        assert_eq!(line(&thread), Ok("0 5 0\n".into()));
    }
}
