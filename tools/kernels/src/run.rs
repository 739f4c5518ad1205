//! Runs every scenario on every kernel: a few guests at a time, with a line about each as it ends, and a table at the
//! end.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result};
use fastproc_guest::scenario::Scenario;
use fastproc_testbed::gate;

use crate::{
    architecture::Architecture,
    cache::Cache,
    evaluate::{Evaluation, evaluate},
    expected::Expected,
    image::{self, Image},
    initramfs,
    machine::Machine,
    page,
    qemu::{self, Ending, Guest},
    series::Wanted,
    summary::{self, Outcome},
};

/// How often scenarios that measure are run; the runs must agree.
const MEASUREMENTS: u8 = 3;

/// How often a kernel is booted that does not run its first program.
const ATTEMPTS: u8 = 3;

/// What to run.
pub struct Plan<'p> {
    /// Kernels.
    pub wanted: &'p [Wanted],
    /// Scenarios.
    pub scenarios: &'p [Scenario],
    /// Guests at a time.
    pub jobs: usize,
    /// Whether the findings become the expected ones.
    pub update: bool,
    /// Whether long tests run in full: repeated measurements that must agree, and the big machine on every kernel
    /// instead of only the newest.
    pub thorough: bool,
}

/// One boot, with the scenarios that share its machine.
struct Boot<'i> {
    image: &'i Image,
    scenarios: Vec<Scenario>,
    /// The number of this boot, if several must agree.
    number: u8,
}

impl<'i> Boot<'i> {
    /// The machine that its scenarios share.
    fn machine(&self) -> Machine {
        Machine::of(self.scenarios[0], self.image.series.architecture())
    }

    /// The same boot with only these scenarios, if there are any.
    fn of_scenarios(&self, wanted: impl Fn(Scenario) -> bool) -> Option<Boot<'i>> {
        let scenarios = self.scenarios.iter().copied();
        let scenarios: Vec<_> = scenarios.filter(|&scenario| wanted(scenario)).collect();
        (!scenarios.is_empty()).then_some(Boot { scenarios, ..*self })
    }
}

/// Runs all of them, and returns whether everything is as expected.
pub fn all(cache: &Cache, plan: &Plan<'_>) -> Result<bool> {
    let started = Instant::now();
    let images = image::fetch(cache, plan.wanted, false)?;
    let initramfs = initramfs(cache, &images, plan.scenarios)?;
    let results = cache.folder("results")?;
    println!(
        "{} kernels and the guests' programs ready after {:.0} s",
        images.len(),
        started.elapsed().as_secs_f64()
    );
    let mut expected = read_expected(plan.update)?;
    let unlisted = if plan.update {
        Vec::new()
    } else {
        unlisted(&images, &expected)
    };
    for line in &unlisted {
        println!("{line}");
    }
    let boots = boots(&images, plan);
    let boot_these = |boots: &[Boot<'_>], expected: &Expected| {
        boot_all(boots, plan.jobs, |boot| {
            let guest = boot_until_init(
                boot,
                &initramfs[&boot.image.series.architecture()],
                &results,
            )?;
            tell(boot, &guest, (!plan.update).then_some(expected));
            Ok(guest)
        })
    };
    let guests = boot_these(&boots, &expected)?;
    if plan.update {
        for (image, scenario, endings) in by_scenario(&boots, &guests) {
            let Evaluation { findings, wrong } = evaluate_endings(&endings);
            if wrong.is_empty() {
                expected.update(image.series, &image.release, scenario, &findings);
            }
        }
    }
    let mut outcomes = outcomes(&boots, &guests, &expected);
    if !plan.update {
        // A gauge may change and change back while a guest reads it: a real defect shows in another boot as well.
        let suspects: Vec<Boot<'_>> = boots
            .iter()
            .filter_map(|boot| {
                boot.of_scenarios(|scenario| {
                    let mut wrong = outcomes.iter().filter(|outcome| !outcome.wrong.is_empty());
                    wrong.any(|of| (of.series, of.scenario) == (boot.image.series, scenario))
                })
            })
            .collect();
        let guests = boot_these(&suspects, &expected)?;
        for again in self::outcomes(&suspects, &guests, &expected) {
            let of_this =
                |of: &&mut Outcome| (of.series, of.scenario) == (again.series, again.scenario);
            let first = outcomes.iter_mut().find(of_this);
            let first = first.expect("it was booted before");
            if again.wrong.is_empty() {
                for wrong in &first.wrong {
                    gate::repeated(&format!(
                        "Linux {}, {}: {wrong}",
                        again.series, again.scenario
                    ));
                }
            }
            *first = again;
        }
    }
    if plan.update {
        write(&Expected::path(), &expected.text()?)?;
        write(&page::path(), &page::page(&expected))?;
    }
    print!("\n{}", summary::table(&outcomes));
    for line in &unlisted {
        println!("\n{line}");
    }
    if !plan.update {
        for line in gains(&outcomes, &expected) {
            println!("\n{line}");
        }
    }
    let bad = outcomes
        .iter()
        .filter(|outcome| !outcome.wrong.is_empty())
        .count();
    println!(
        "\n{} scenarios as expected, {bad} not, in {:.0} s; reports are in {}",
        outcomes.len() - bad,
        started.elapsed().as_secs_f64(),
        results.display()
    );
    Ok(bad == 0 && !outcomes.is_empty())
}

/// The initial file systems, for each architecture that is booted.
fn initramfs(
    cache: &Cache,
    images: &[Image],
    scenarios: &[Scenario],
) -> Result<BTreeMap<Architecture, PathBuf>> {
    let all = images.iter().map(|image| image.series.architecture());
    let all: BTreeSet<_> = all.collect();
    all.into_iter()
        .map(|architecture| {
            Ok((
                architecture,
                initramfs::build(cache, architecture, scenarios)?,
            ))
        })
        .collect()
}

/// Reports kernels without an entry in the table: the archive changes without this repository.
fn unlisted(images: &[Image], expected: &Expected) -> Vec<String> {
    let mut lines = Vec::new();
    for Image {
        series, release, ..
    } in images
    {
        if let Some(older) = expected.stand_in(*series)
            && older != *series
        {
            lines.push(format!(
                "ATTENTION: nothing is expected of Linux {series} ({release}) yet. It is compared with what is expected of {older}: \
                 it may gain, and may not lose. To settle what it shows: make kernels-expected KERNELS={series}"
            ));
        }
    }
    lines
}

/// Reports costs that have fallen: as long as they are not recorded, they could rise again unnoticed.
fn gains(outcomes: &[Outcome], expected: &Expected) -> Vec<String> {
    let of_outcome = |outcome: &Outcome| {
        let (series, scenario) = (outcome.series, outcome.scenario);
        let gains = expected.gains(series, scenario, &outcome.findings);
        gains.into_iter().map(move |gain| {
            format!(
                "ATTENTION: Linux {series}, {scenario}: {gain}. To guard it: make kernels-expected KERNELS={series} \
                 SCENARIOS={scenario}"
            )
        })
    };
    outcomes.iter().flat_map(of_outcome).collect()
}

/// Writes the page again from the table.
pub fn write_page() -> Result<()> {
    write(
        &page::path(),
        &page::page(&Expected::read(&Expected::path())?),
    )
}

fn read_expected(update: bool) -> Result<Expected> {
    let path = Expected::path();
    if update && !path.exists() {
        return Ok(Expected::default());
    }
    Expected::read(&path)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The longest boots come first, so that no boot runs alone at the end.
fn boots<'i>(images: &'i [Image], plan: &Plan<'_>) -> Vec<Boot<'i>> {
    let mut boots: Vec<Boot<'i>> = Vec::new();
    let scenarios = Scenario::ALL.into_iter();
    for scenario in scenarios.filter(|scenario| plan.scenarios.contains(scenario)) {
        for image in images {
            let machine = Machine::of(scenario, image.series.architecture());
            let is_newest = || {
                let mut others = images.iter().map(|image| image.series);
                !others
                    .any(|other| other.flavour() == image.series.flavour() && other > image.series)
            };
            let refused = if scenario == Scenario::Big && !plan.thorough && !is_newest() {
                Some("one machine of this size is enough, unless --thorough")
            } else {
                Machine::refuses(scenario, image.series)
            };
            if let Some(reason) = refused {
                println!("{:<8} {scenario:<13} not run: {reason}", image.series);
                continue;
            }
            let shared = boots.iter_mut().find(|boot| {
                boot.image.release == image.release && !machine.counted && boot.machine() == machine
            });
            if let Some(boot) = shared {
                boot.scenarios.push(scenario);
                continue;
            }
            let times = if plan.thorough && machine.counted {
                MEASUREMENTS
            } else {
                1
            };
            boots.extend((0..times).map(|number| Boot {
                image,
                scenarios: vec![scenario],
                number,
            }));
        }
    }
    boots.sort_by_key(|boot| {
        let is_long = boot.scenarios.len() > 1 || boot.machine().one_thread;
        !is_long
    });
    boots
}

/// Boots guests, as many at a time as `jobs`, and returns them in the order of the boots.
fn boot_all<'i>(
    boots: &[Boot<'i>],
    jobs: usize,
    boot: impl Fn(&Boot<'i>) -> Result<Guest> + Sync,
) -> Result<Vec<Guest>> {
    let next = AtomicUsize::new(0);
    let guests: Mutex<Vec<Option<Result<Guest>>>> =
        Mutex::new(boots.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..jobs.min(boots.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(what) = boots.get(index) else { break };
                    let guest = boot(what);
                    let mut guests = guests
                        .lock()
                        .expect("no thread panics while it holds the lock");
                    guests[index] = Some(guest);
                }
            });
        }
    });
    let guests = guests
        .into_inner()
        .expect("no thread panics while it holds the lock");
    guests
        .into_iter()
        .map(|guest| guest.expect("every index was taken once"))
        .collect()
}

/// An emulated kernel may crash during its start: then no program of the guest has run, and it is tried again.
fn boot_until_init(boot: &Boot<'_>, initramfs: &Path, results: &Path) -> Result<Guest> {
    let Boot {
        image,
        scenarios,
        number,
    } = boot;
    let once = || qemu::boot(image, initramfs, scenarios, *number, results);
    let mut guest = once()?;
    for _ in 1..ATTEMPTS {
        if guest.began {
            break;
        }
        println!(
            "{:<8} {:<13} never came to its first program: {}; again",
            image.series, scenarios[0], guest.endings[0]
        );
        guest = once()?;
    }
    Ok(guest)
}

/// The outcome of each scenario on each kernel, and how it differs from what is expected.
fn outcomes(boots: &[Boot<'_>], guests: &[Guest], expected: &Expected) -> Vec<Outcome> {
    let outcome = |(image, scenario, endings): (&Image, Scenario, Vec<&Ending>)| {
        let Evaluation {
            findings,
            mut wrong,
        } = evaluate_endings(&endings);
        wrong.extend(expected.differences(image.series, scenario, &findings));
        Outcome {
            series: image.series,
            scenario,
            findings,
            wrong,
        }
    };
    let groups = by_scenario(boots, guests).into_iter();
    groups.map(outcome).collect()
}

/// The endings of each scenario on each kernel, in the order of the kernels.
fn by_scenario<'g>(
    boots: &[Boot<'g>],
    guests: &'g [Guest],
) -> Vec<(&'g Image, Scenario, Vec<&'g Ending>)> {
    let mut groups = BTreeMap::new();
    for (boot, guest) in boots.iter().zip(guests) {
        for (&scenario, ending) in boot.scenarios.iter().zip(&guest.endings) {
            let group = groups
                .entry((boot.image.series, scenario))
                .or_insert_with(|| (boot.image, Vec::new()));
            group.1.push(ending);
        }
    }
    groups
        .into_iter()
        .map(|((_, scenario), (image, endings))| (image, scenario, endings))
        .collect()
}

/// Evaluates the reports; an ending without a complete report is an error.
fn evaluate_endings(endings: &[&Ending]) -> Evaluation {
    let mut reports = Vec::new();
    let mut wrong = Vec::new();
    for ending in endings {
        match ending {
            Ending::Reported(report) => reports.push(report),
            other => wrong.push(other.to_string()),
        }
    }
    let mut evaluation = evaluate(&reports);
    evaluation.wrong.extend(wrong);
    evaluation
}

/// Prints a line about each scenario of a guest that has ended, and more if it did not report.
fn tell(boot: &Boot<'_>, guest: &Guest, expected: Option<&Expected>) {
    let series = boot.image.series;
    let which = if boot.number > 0 {
        format!(" (again, {})", boot.number)
    } else {
        String::new()
    };
    let (seconds, cpu) = (guest.took.as_secs_f64(), guest.cpu.as_secs_f64());
    // One call, so that lines of several guests do not mix.
    let mut text = format!(
        "{series:<8} {} scenarios in {seconds:.1} s, {cpu:.1} s of CPU time{which}\n",
        boot.scenarios.len()
    );
    for (scenario, ending) in boot.scenarios.iter().zip(&guest.endings) {
        let mut evaluation = evaluate_endings(&[ending]);
        if let (Ending::Reported(_), Some(expected)) = (ending, expected) {
            let differences = expected.differences(series, *scenario, &evaluation.findings);
            evaluation.wrong.extend(differences);
        }
        let word = match (evaluation.wrong.as_slice(), expected) {
            ([], Some(_)) => "as expected".into(),
            ([], None) => "done".into(),
            ([one], _) => one.clone(),
            (all, _) => format!("{} things are not as expected", all.len()),
        };
        let _ = writeln!(text, "{series:<8} {scenario:<13} {word}");
    }
    let is_whole = |ending: &Ending| matches!(ending, Ending::Reported(_));
    if !guest.endings.iter().all(is_whole) {
        for (whose, path) in [("kernel", &guest.console), ("emulator", &guest.emulator)] {
            let _ = writeln!(text, "    the {whose}'s last lines, of {}:", path.display());
            for line in last_lines(path, 20) {
                let _ = writeln!(text, "    | {line}");
            }
        }
    }
    print!("{text}");
}

/// The last lines of a text file, without control characters.
fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(count));
    shown
        .map(|line| line.chars().filter(|c| !c.is_control()).collect())
        .collect()
}
