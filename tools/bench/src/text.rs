//! `fastproc bench text`: what the texts of a process cost, by each way of making them.

mod core_fmt;
mod input;
mod kernel;
mod rows;

use std::{cell::RefCell, hint::black_box, rc::Rc, time::Instant};

use fastproc::{
    access::Access,
    text::{Text, stat, statm},
};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::thread::sched_getcpu;

use self::{
    core_fmt::CoreFmt,
    input::Input,
    kernel::{Files, Kept, Opened},
    rows::{Head, verdict},
};
use super::{
    idle::Idle,
    measure::{Case, Failure, Plan, measure},
    report::{Report, Skipped},
    scan_proc::raise_open_files,
};

/// Arguments of `fastproc bench text`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where fewer processes of users run, let idle ones join them; they are gone afterwards.
    #[arg(long, value_name = "N", default_value_t = 64)]
    processes: usize,
    /// Stay on this CPU. If not set, on the one that it runs on at the start.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    name: &'static str,
    files: &'static [&'static str],
}

/// `all` is the three texts of a process, counted as one.
const FILES: [File; 4] = [
    File {
        name: "stat",
        files: &["stat"],
    },
    File {
        name: "statm",
        files: &["statm"],
    },
    File {
        name: "status",
        files: &["status"],
    },
    File {
        name: "all",
        files: &["stat", "statm", "status"],
    },
];

/// How long a run should take, so that the clock's own cost does not count.
const RUN_NS: u128 = 300_000;

/// Measures, and prints the report on standard output.
pub fn run(args: &Args) -> Result<(), Failure> {
    let running = input::user_processes()?;
    let idle = (running < args.processes)
        .then(|| Idle::start(args.processes - running))
        .transpose()?;
    let input = Input::take()?;
    let skipped = check(&input)?;

    let dead = RefCell::new(vec![false; input.samples.len()]);
    raise_open_files();
    let [.., all] = FILES;
    let kept = Files::open(all.files, &input.samples, &mut dead.borrow_mut())?;
    let mut cases = Vec::new();
    let mut files = Vec::new();
    for file in FILES {
        let of_file = [
            kernel_open(file, &input, &dead),
            kernel_pread(file, &kept, &dead),
            plain(file, &input),
        ];
        let printf = skipped.is_empty().then(|| printf(file, &input));
        for case in of_file.into_iter().chain(printf) {
            cases.push(long_enough(case)?);
            files.push(file.name);
        }
    }
    let cpu = args.cpu.unwrap_or_else(sched_getcpu);
    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        repeat: 1,
        cpu: Some(cpu),
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs")?;
    let progress = ProgressBar::new(u64::from(plan.runs()) * cases.len() as u64).with_style(style);
    let measured = measure(&mut cases, plan, || progress.inc(1))?;
    progress.finish_and_clear();
    drop(cases);
    drop(idle);

    let rows = rows::of(files.iter().copied().zip(&measured));
    let verdict = verdict(&rows);
    let head = Head {
        processes: input.samples.len(),
    };
    let title = format!("The texts of {} processes, on CPU {cpu}", head.processes);
    let mut report = Report::new("text", head, rows, skipped);
    if let Some(verdict) = verdict {
        report.note(verdict);
    }
    report.print(&title, args.json)?;
    Ok(())
}

/// Refuses to measure what does not write the same bytes. The printf way knows fewer kernels than the other: where it
/// writes something else, it is not measured.
fn check(input: &Input) -> Result<Vec<Skipped>, Failure> {
    let mut skipped = Vec::new();
    let mut status = input.renderer();
    let mut printf = CoreFmt::new(input);
    let mut text = Text::default();
    for sample in &input.samples {
        let (process, kernel) = (input.process(sample), sample.kernel_text());
        let plain = text
            .render(|out| {
                stat::render(process, &input.units, Access::Granted, out)?;
                statm::render(process, &input.units, out)?;
                status.render(process, kernel, out)
            })?
            .to_vec();
        printf.clear();
        printf.stat(process)?;
        printf.statm(process)?;
        printf.status(process, kernel)?;
        if printf.text() != plain && skipped.is_empty() {
            skipped.push(Skipped {
                case: "core-fmt",
                reason: format!("it writes another text for process {}", sample.pid),
            });
        }
    }
    Ok(skipped)
}

/// Repeats a case until a run of it takes long enough.
fn long_enough(mut case: Case<'_>) -> Result<Case<'_>, Failure> {
    (case.run)()?;
    let started = Instant::now();
    (case.run)()?;
    let once = started.elapsed().as_nanos().max(1);
    let repeats = RUN_NS.div_ceil(once);
    let mut run = case.run;
    Ok(Case {
        name: case.name,
        run: Box::new(move || (0..repeats).try_fold(0, |count, _| Ok(count + run()?))),
    })
}

/// Opens each file, reads it, and closes it.
fn kernel_open<'a>(file: File, input: &'a Input, dead: &'a RefCell<Vec<bool>>) -> Case<'a> {
    let mut opened = Opened::new(file.files, &input.samples);
    Case {
        name: "kernel-open",
        run: Box::new(move || Ok(opened.read(&mut dead.borrow_mut()))),
    }
}

/// Reads each file again by a descriptor that is kept.
fn kernel_pread<'a>(file: File, kept: &Rc<Files>, dead: &'a RefCell<Vec<bool>>) -> Case<'a> {
    let mut kept = Kept::new(kept, file.files);
    Case {
        name: "kernel-pread",
        run: Box::new(move || Ok(kept.read(&mut dead.borrow_mut()))),
    }
}

/// By `write!`.
fn printf(file: File, input: &Input) -> Case<'_> {
    let mut printf = CoreFmt::new(input);
    Case {
        name: "core-fmt",
        run: Box::new(move || {
            for sample in &input.samples {
                let process = input.process(sample);
                printf.clear();
                if file.files.contains(&"stat") {
                    printf.stat(process)?;
                }
                if file.files.contains(&"statm") {
                    printf.statm(process)?;
                }
                if file.files.contains(&"status") {
                    printf.status(process, sample.kernel_text())?;
                }
                black_box(printf.text());
            }
            Ok(input.samples.len())
        }),
    }
}

/// By the renderers, each text in whole.
fn plain(file: File, input: &Input) -> Case<'_> {
    let mut status = input.renderer();
    let mut text = Text::default();
    Case {
        name: "seqtext",
        run: Box::new(move || {
            for sample in &input.samples {
                let process = input.process(sample);
                let rendered = text.render(|out| {
                    if file.files.contains(&"stat") {
                        stat::render(process, &input.units, Access::Granted, out)?;
                    }
                    if file.files.contains(&"statm") {
                        statm::render(process, &input.units, out)?;
                    }
                    if file.files.contains(&"status") {
                        status.render(process, sample.kernel_text(), out)?;
                    }
                    Ok::<_, fastproc::text::RenderError>(())
                })?;
                black_box(rendered);
            }
            Ok(input.samples.len())
        }),
    }
}
