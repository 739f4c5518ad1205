//! `--verify`: the endless comparison with a conversion so slow and plain that nobody doubts it.
//!
//! Every u32 in turn, compared with a counter of digits that is moved on by one, as the drums of an odometer are. Then
//! the edges of the wider types and random numbers, compared with one division by ten for each digit.

use std::{
    io::{self, Write as _},
    ops::Range,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use seqtext::{Dec, Piece, SeqBuf};
use signal_hook::{consts::TERM_SIGNALS, flag};

use super::{
    super::measure::Failure,
    input::{MAX_DIGITS, of_length},
    methods::METHODS,
};

/// A conversion and what it is given: what it writes, and how long that is.
type Write = fn(&mut [u8], u64) -> usize;

/// What this program has itself, beside the methods of the benchmark.
const FORMS: [(&str, Write); 4] = [
    ("seqtext, u32", |out, n| put(out, Dec(n as u32))),
    ("seqtext, u64", |out, n| put(out, Dec(n))),
    ("seqtext, i64", |out, n| put(out, Dec(n as i64))),
    ("seqtext, u128", |out, n| put(out, Dec(u128::from(n)))),
];

fn put(out: &mut [u8], piece: impl Piece) -> usize {
    let mut buf = SeqBuf::new(out);
    buf.put(piece);
    buf.count()
}

/// The methods that are other people's: they have tests of their own.
const OTHERS: [&str; 3] = ["itoa", "lexical-core", "core-fmt"];

/// Compares until told to stop, or until `limit` is over for the random numbers.
pub fn run(limit: Option<Duration>) -> Result<ExitCode, Failure> {
    match compare(limit) {
        Err(failure) if failure.is::<Mismatch>() => {
            eprintln!("fastproc-bench: {failure}");
            Ok(ExitCode::from(crate::NO))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

fn compare(limit: Option<Duration>) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        // The second one ends this at once.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    let threads = available_parallelism()?.get();
    let started = Instant::now();
    let all = every_u32(threads, &stop)?;
    say(&format!(
        "{all} of {} u32 are right, after {:.0} s\n",
        1_u64 << 32,
        started.elapsed().as_secs_f64()
    ))?;
    if all < 1 << 32 {
        return Ok(());
    }
    let edges = edges();
    for &n in &edges {
        check_wide(n)?;
    }
    say(&format!(
        "{} edges of u64, i64, u128 and i128 are right\n",
        edges.len()
    ))?;
    let random = random(threads, &stop, limit)?;
    say(&format!(
        "{random} random numbers of every length are right\n"
    ))
}

/// On standard output. That nobody reads on is not an error.
fn say(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// How many random numbers a thread takes at a time.
const NUMBERS: u64 = 1 << 12;

/// How many numbers of the u32 a thread takes at a time.
const CHUNK: u64 = 1 << 20;

/// Compares until all are done or `stop` is set, and returns how many were.
fn every_u32(threads: usize, stop: &AtomicBool) -> Result<u64, Failure> {
    let all = 1_u64 << 32;
    let style = ProgressStyle::with_template("every u32 {bar:40} {percent} %, {eta} left")?;
    let progress = ProgressBar::new(all).with_style(style);
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    on_all(threads, stop, |_| {
        let start = next.fetch_add(CHUNK, Relaxed);
        if start >= all {
            return Ok(false);
        }
        check_range(start..start + CHUNK)?;
        done.fetch_add(CHUNK, Relaxed);
        progress.inc(CHUNK);
        Ok(true)
    })?;
    progress.finish_and_clear();
    Ok(done.into_inner())
}

/// Compares random numbers until `stop` is set or `limit` is over, and returns how many.
fn random(threads: usize, stop: &AtomicBool, limit: Option<Duration>) -> Result<u64, Failure> {
    let style = ProgressStyle::with_template(
        "{spinner} {human_pos} random numbers, {per_sec}; Ctrl-C ends it",
    )?;
    let progress = ProgressBar::new_spinner().with_style(style);
    let until = limit.map(|limit| Instant::now() + limit);
    let done = AtomicU64::new(0);
    on_all(threads, stop, |rng| {
        for _ in 0..NUMBERS / 2 {
            let digits = rng.u32(1..=MAX_DIGITS);
            check_wide(of_length(rng, digits).into())?;
            check_wide(rng.u128(..) >> rng.u32(0..128))?;
        }
        done.fetch_add(NUMBERS, Relaxed);
        progress.inc(NUMBERS);
        Ok(until.is_none_or(|until| Instant::now() < until))
    })?;
    progress.finish_and_clear();
    Ok(done.into_inner())
}

/// Runs `step` over and over in so many threads, until it says that there is no more, fails, or `stop` is set.
fn on_all(
    threads: usize,
    stop: &AtomicBool,
    step: impl Fn(&mut Rng) -> Result<bool, Mismatch> + Sync,
) -> Result<(), Mismatch> {
    let failed = AtomicBool::new(false);
    let work = || {
        // Seeded by the clock and the thread: another run draws other numbers.
        let mut rng = Rng::new();
        while !stop.load(Relaxed) && !failed.load(Relaxed) {
            match step(&mut rng) {
                Ok(true) => {}
                Ok(false) => break,
                Err(mismatch) => {
                    failed.store(true, Relaxed);
                    return Err(mismatch);
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

/// What was found wrong.
#[derive(Debug, thiserror::Error)]
#[error("{case} is wrong: it writes {found:?} where the slow conversion writes {expected:?}")]
struct Mismatch {
    case: String,
    found: String,
    expected: String,
}

impl Mismatch {
    #[cold]
    fn new(case: &str, found: &[u8], expected: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            case: case.to_owned(),
            found: text(found),
            expected: text(expected),
        }
    }
}

/// A number as digits, which can only be moved on by one.
struct Odometer {
    /// As many as a u64 has, with leading zeros.
    drums: [u8; 20],
    /// Where the number starts.
    start: usize,
}

impl Odometer {
    fn at(n: u64) -> Self {
        let text = slow(n.into());
        let start = 20 - text.len();
        let mut drums = [b'0'; 20];
        drums[start..].copy_from_slice(&text);
        Self { drums, start }
    }

    fn text(&self) -> &[u8] {
        &self.drums[self.start..]
    }

    fn advance(&mut self) {
        for (place, drum) in self.drums.iter_mut().enumerate().rev() {
            if *drum < b'9' {
                *drum += 1;
                self.start = self.start.min(place);
                return;
            }
            *drum = b'0';
        }
    }
}

/// One division by ten for each digit.
fn slow(mut n: u128) -> Vec<u8> {
    let mut digits = Vec::with_capacity(39);
    loop {
        digits.push(b"0123456789"[(n % 10) as usize]);
        n /= 10;
        if n == 0 {
            digits.reverse();
            return digits;
        }
    }
}

/// Compares the numbers of `range`, all below 2^32.
fn check_range(range: Range<u64>) -> Result<(), Mismatch> {
    let ours = METHODS
        .iter()
        .filter(|method| !OTHERS.contains(&method.case))
        .map(|method| (method.case, method.one));
    let writes: Vec<(&str, Write)> = ours.chain(FORMS).collect();
    let mut expected = Odometer::at(range.start);
    let mut out = [0; 64];
    for n in range.clone() {
        for &(case, write) in &writes {
            check(case, write(&mut out, n), &out, expected.text())?;
        }
        // The same below zero.
        let len = put(&mut out, Dec((n as i64).wrapping_neg()));
        match expected.text() {
            b"0" => check("seqtext, i64", len, &out, b"0")?,
            text if out[0] == b'-' => check("seqtext, i64", len - 1, &out[1..], text)?,
            text => {
                return Err(Mismatch::new(
                    "seqtext, i64, without its sign",
                    &out[..len],
                    text,
                ));
            }
        }
        expected.advance();
    }
    // The odometer has not skipped a number.
    check(
        "the odometer",
        expected.text().len(),
        expected.text(),
        &slow(range.end.into()),
    )
}

#[inline]
fn check(case: &str, len: usize, out: &[u8], expected: &[u8]) -> Result<(), Mismatch> {
    let found = out.get(..len).unwrap_or(out);
    if found == expected {
        Ok(())
    } else {
        Err(Mismatch::new(case, found, expected))
    }
}

/// Compares one number by all types that hold it, and below zero.
fn check_wide(n: u128) -> Result<(), Mismatch> {
    let expected = slow(n);
    let mut out = [0; 64];
    check("seqtext, u128", put(&mut out, Dec(n)), &out, &expected)?;
    if let Ok(n) = u64::try_from(n) {
        for method in METHODS {
            check(method.case, (method.one)(&mut out, n), &out, &expected)?;
        }
    }
    let signed = [if n == 0 { b"" } else { &b"-"[..] }, &expected].concat();
    if let Ok(n) = i128::try_from(n) {
        check("seqtext, i128", put(&mut out, Dec(n)), &out, &expected)?;
        check("seqtext, i128", put(&mut out, Dec(-n)), &out, &signed)?;
    }
    if let Ok(n) = i64::try_from(n) {
        check("seqtext, i64", put(&mut out, Dec(n)), &out, &expected)?;
        check("seqtext, i64", put(&mut out, Dec(-n)), &out, &signed)?;
    }
    Ok(())
}

/// The powers of ten and of two, their neighbours and sums, and the ends.
fn edges() -> Vec<u128> {
    let tens: Vec<u128> = (0..39).map(|power| 10_u128.pow(power)).collect();
    let twos = (0..128).map(|power| 1_u128 << power);
    let mut edges: Vec<u128> = tens
        .iter()
        .copied()
        .chain(twos)
        .flat_map(|n| [n - 1, n, n + 1])
        .collect();
    for a in &tens {
        edges.extend((2..=9).filter_map(|digit| a.checked_mul(digit)));
        edges.extend(tens.iter().flat_map(|b| [a + b, a.abs_diff(*b)]));
    }
    edges.push(u128::MAX);
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odometer_counts() {
        let mut odometer = Odometer::at(0);
        for n in 0..120_000_u32 {
            assert_eq!(odometer.text(), n.to_string().as_bytes());
            odometer.advance();
        }
        let mut odometer = Odometer::at(999_999_999);
        odometer.advance();
        assert_eq!(odometer.text(), b"1000000000");
    }

    #[test]
    fn the_quick_form_of_the_verification() {
        for start in [0, 99_000, 9_999_000, 999_999_000, (1 << 32) - 3_000] {
            check_range(start..start + 3_000).unwrap();
        }
        for n in edges() {
            check_wide(n).unwrap();
        }
        let stop = AtomicBool::new(false);
        // Each thread does one step before it looks at the time.
        assert_eq!(random(2, &stop, Some(Duration::ZERO)).unwrap(), 2 * NUMBERS);
    }

    #[test]
    fn what_is_wrong_is_found_and_named() {
        let error = check("x", 2, b"124", b"13").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"x is wrong: it writes "12" where the slow conversion writes "13""#
        );
        assert!(check("x", 1, b"13", b"13").is_err());
        assert!(check("x", 9, b"13", b"12").is_err());
    }

    #[test]
    fn a_stop_is_obeyed_before_all_is_done() {
        assert_eq!(every_u32(1, &AtomicBool::new(true)).unwrap(), 0);
    }
}
