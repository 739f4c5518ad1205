//! `fastproc bench decimal`: numbers to text in base ten, by this program's way and by others.
//!
//! Every method does the same: it appends the digits of each number of an array to one buffer. What a method must do to
//! get them there is part of its cost, such as itoa's copy out of a buffer of its own.
//! Whatever a library lets be inlined is part of its loop; what is a call in the kernel is a call here.
#![allow(
    clippy::inline_always,
    reason = "the methods are compared by their loops"
)]

mod core_fmt;
mod counters;
mod digit_loop;
mod input;
mod itoa;
mod jones;
mod kernel_two_digit;
mod lexical_core;
mod method;
mod methods;
mod rows;
mod seqtext;
mod verify;

use std::{
    cell::Cell,
    hint::black_box,
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::thread::sched_getcpu;

use self::{
    counters::{Counters, Counts},
    input::Input,
    method::Converter,
    methods::METHODS,
    rows::{Row, verdict},
};
use super::{
    measure::{Case, Failure, Plan, measure},
    report::{Report, Spread},
};

/// How to measure, or to verify.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,

    /// How often each method converts each input
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Stay on this CPU [default: the one this starts on]
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Compare with a slow conversion instead: every u32, then the edges of wider types and random numbers until Ctrl-C
    #[arg(long, conflicts_with_all = ["json", "rounds", "cpu"])]
    verify: bool,

    /// End --verify by itself after so many seconds of random numbers
    #[arg(long, value_name = "SECONDS", requires = "verify")]
    seconds: Option<u64>,
}

/// How long a run should take, so that the clock's own cost does not count.
const RUN: Duration = Duration::from_micros(300);

/// Measures or verifies, and prints what comes of it on standard output.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.verify {
        return verify::run(args.seconds.map(Duration::from_secs));
    }
    let inputs = input::all()?;
    let mut out = vec![0; inputs.iter().map(Input::room).max().unwrap_or(0)];
    for (input, method) in pairs(&inputs) {
        let end = (method.all)(&input.numbers, &mut out);
        if out[..end] != *input.text.as_bytes() {
            return Err(format!(
                "{} is wrong on the input {}; --verify finds out more",
                method.case, input.name
            )
            .into());
        }
    }

    let mut notes = Vec::new();
    let counts = Counters::open()
        .and_then(|counters| count(counters, &inputs, &mut out))
        .unwrap_or_else(|error| {
            notes.push(format!(
                "instructions and branches are not counted here: {error}"
            ));
            Vec::new()
        });

    let out = Cell::new(out);
    let mut cases: Vec<Case<'_>> = pairs(&inputs)
        .map(|(input, method)| case(input, method, &out))
        .collect();
    let cpu = args.cpu.unwrap_or_else(sched_getcpu);
    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        repeat: 1,
        cpu: Some(cpu),
    };
    let progress = bar(u64::from(plan.runs()) * cases.len() as u64)?;
    let measured = measure(&mut cases, plan, || progress.inc(1))?;
    progress.finish_and_clear();

    let rows: Vec<Row> = pairs(&inputs)
        .zip(&measured)
        .enumerate()
        .map(|(index, ((input, method), measured))| {
            let counts = counts.get(index).copied();
            Row::new(
                method.case,
                &input.name,
                nanoseconds(measured.cpu_us()),
                counts,
            )
        })
        .collect();
    notes.extend(verdict(&rows));
    let title = format!(
        "Numbers to text on CPU {cpu}, {} of them real",
        inputs[0].numbers.len()
    );
    let mut report = Report::new("decimal", (), rows, Vec::new());
    // Programs have the numbers.
    if !args.json {
        for note in notes {
            report.note(note);
        }
    }
    report.print(&title, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Every method on every input.
fn pairs(inputs: &[Input]) -> impl Iterator<Item = (&Input, &'static Converter)> {
    inputs
        .iter()
        .flat_map(|input| METHODS.iter().map(move |method| (input, method)))
}

/// Instructions and branches of each pair.
fn count(mut counters: Counters, inputs: &[Input], out: &mut [u8]) -> io::Result<Vec<Counts>> {
    pairs(inputs)
        .map(|(input, method)| {
            // Once for the branch predictor.
            (method.all)(&input.numbers, out);
            counters.count(input.numbers.len(), || {
                black_box((method.all)(black_box(&input.numbers), black_box(out)));
            })
        })
        .collect()
}

/// A method on an input as a case, repeated until a run takes long enough. All cases share the buffer.
fn case<'a>(input: &'a Input, method: &Converter, out: &'a Cell<Vec<u8>>) -> Case<'a> {
    let all = method.all;
    let convert = move |repeats: usize| {
        let mut buffer = out.take();
        for _ in 0..repeats {
            black_box(all(black_box(&input.numbers), black_box(&mut buffer)));
        }
        out.set(buffer);
    };
    convert(1);
    let started = Instant::now();
    convert(1);
    let once = started.elapsed().max(Duration::from_nanos(1));
    let repeats = RUN.as_nanos().div_ceil(once.as_nanos()) as usize;
    Case {
        name: method.case,
        run: Box::new(move || {
            convert(repeats);
            Ok(repeats * input.numbers.len())
        }),
    }
}

/// A spread of microseconds in nanoseconds.
fn nanoseconds(Spread { min, median, max }: Spread) -> Spread {
    Spread {
        min: min * 1e3,
        median: median * 1e3,
        max: max * 1e3,
    }
}

/// On standard error, and only where that is a terminal.
fn bar(length: u64) -> Result<ProgressBar, Failure> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs")?;
    Ok(ProgressBar::new(length).with_style(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_writes_the_same() {
        let inputs = input::all().unwrap();
        for (input, method) in pairs(&inputs) {
            let mut out = vec![0; input.room()];
            let end = (method.all)(&input.numbers, &mut out);
            assert!(
                out[..end] == *input.text.as_bytes(),
                "{} on {}",
                method.case,
                input.name
            );
        }
    }

    #[test]
    fn each_method_has_its_row_for_each_input() {
        let inputs = input::all().unwrap();
        let cases: Vec<_> = METHODS.iter().map(|method| method.case).collect();
        assert_eq!(
            cases,
            [
                "digit-loop",
                "jones",
                "kernel-two-digit",
                "itoa",
                "lexical-core",
                "core-fmt",
                "seqtext"
            ]
        );
        assert_eq!(pairs(&inputs).count(), 7 * 22);
    }
}
