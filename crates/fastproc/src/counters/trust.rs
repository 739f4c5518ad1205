//! Compares lines with the kernel's text. A line is trusted as long as the numbers of the text lie between those
//! read before and after it.

use super::report::{Evidence, LineReport, Route, WhyText};
use crate::{records::record::TICK_NS, text::machine_stat::MachineStat};

/// Rounds of the comparison at start, and of the second one for a line that seems wrong.
pub(super) const ROUNDS: u32 = 20;
/// How often a line may be compared again before it is no longer trusted. Load changes gauges between any two
/// readings.
pub(super) const ATTEMPTS: u32 = 4;

/// One line, and the results of its comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) route: Route,
    pub(super) rounds: u32,
    pub(super) outside: u32,
    pub(super) nonzero: bool,
    /// A number that changes all the time, such as the number of running threads. No two readings need agree.
    fleeting: bool,
    batch_rounds: u32,
    batch_outside: u32,
}

impl Line {
    pub(super) fn new(name: &str, route: Route) -> Self {
        Self {
            name: name.to_owned(),
            route,
            rounds: 0,
            outside: 0,
            nonzero: false,
            fleeting: matches!(name, "procs_running" | "procs_blocked"),
            batch_rounds: 0,
            batch_outside: 0,
        }
    }

    pub(super) fn is_from_text(&self) -> bool {
        matches!(self.route, Route::Text(_))
    }

    /// Whether the kernel computes it for each reader.
    pub(super) fn is_computed(&self) -> bool {
        self.route == Route::Text(WhyText::Computed)
    }

    /// Records one round: our numbers before, the kernel's, our numbers after. Returns whether the kernel's
    /// were in between.
    fn compare(
        &mut self,
        before: &mut dyn Iterator<Item = u64>,
        text: &mut dyn Iterator<Item = u64>,
        after: &mut dyn Iterator<Item = u64>,
    ) -> bool {
        let mut inside = true;
        loop {
            match (before.next(), text.next(), after.next()) {
                (Some(before), Some(text), Some(after)) => {
                    inside &= before.min(after) <= text && text <= before.max(after);
                    self.nonzero |= text != 0;
                }
                (None, None, None) => break,
                _ => {
                    inside = false;
                    break;
                }
            }
        }
        self.rounds = self.rounds.saturating_add(1);
        self.outside = self.outside.saturating_add(u32::from(!inside));
        self.batch_rounds += 1;
        self.batch_outside += u32::from(!inside);
        inside
    }

    pub(super) fn begin_batch(&mut self) {
        self.batch_rounds = 0;
        self.batch_outside = 0;
    }

    /// The batch's verdict.
    pub(super) fn disagrees(&self) -> bool {
        let tolerated = if self.fleeting { 70 } else { 10 };
        self.batch_outside * 100 > self.batch_rounds * tolerated
    }

    pub(super) fn report(&self, file: &'static str) -> LineReport {
        let evidence = match (self.is_from_text(), self.nonzero) {
            (true, _) => Evidence::None,
            (false, true) => Evidence::NonZero,
            (false, false) => Evidence::OnlyZero,
        };
        LineReport {
            file,
            name: self.name.clone(),
            route: self.route,
            evidence,
            rounds: self.rounds,
            outside: self.outside,
        }
    }

    pub(super) fn give_up(&mut self, why: WhyText) {
        self.route = Route::Text(why);
    }
}

/// The lines of `/proc/stat` after those of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatLine {
    Intr,
    Ctxt,
    Btime,
    Processes,
    ProcsRunning,
    ProcsBlocked,
    Softirq,
}

impl StatLine {
    pub(super) const ALL: [(Self, &'static str); 7] = [
        (Self::Intr, "intr"),
        (Self::Ctxt, "ctxt"),
        (Self::Btime, "btime"),
        (Self::Processes, "processes"),
        (Self::ProcsRunning, "procs_running"),
        (Self::ProcsBlocked, "procs_blocked"),
        (Self::Softirq, "softirq"),
    ];
}

/// The numbers of a line as the text has them: CPU times in ticks.
fn numbers(stat: &MachineStat, line: usize) -> Box<dyn Iterator<Item = u64> + '_> {
    if line == 0 {
        return Box::new(stat.total.ns.iter().map(|ns| ns / TICK_NS));
    }
    if let Some(cpu) = stat.cpus.get(line - 1) {
        return Box::new(
            std::iter::once(u64::from(cpu.id)).chain(cpu.times.ns.iter().map(|ns| ns / TICK_NS)),
        );
    }
    match StatLine::ALL.get(line - 1 - stat.cpus.len()) {
        Some((StatLine::Intr, _)) => Box::new(
            std::iter::once(stat.intr).chain(stat.irqs.iter().map(|&count| u64::from(count))),
        ),
        Some((StatLine::Ctxt, _)) => Box::new(std::iter::once(stat.ctxt)),
        Some((StatLine::Btime, _)) => Box::new(std::iter::once(stat.btime)),
        Some((StatLine::Processes, _)) => Box::new(std::iter::once(stat.processes)),
        Some((StatLine::ProcsRunning, _)) => Box::new(std::iter::once(stat.procs_running)),
        Some((StatLine::ProcsBlocked, _)) => Box::new(std::iter::once(stat.procs_blocked)),
        Some((StatLine::Softirq, _)) => Box::new(
            std::iter::once(stat.softirq)
                .chain(stat.softirqs.iter().map(|&count| u64::from(count))),
        ),
        None => Box::new(std::iter::empty()),
    }
}

/// Compares every line that does not come from the text. Returns whether all of them agreed.
pub(super) fn compare_stat(
    lines: &mut [Line],
    before: &MachineStat,
    text: &MachineStat,
    after: &MachineStat,
) -> bool {
    let mut inside = true;
    for (at, line) in lines
        .iter_mut()
        .enumerate()
        .filter(|(_, line)| !line.is_from_text())
    {
        inside &= line.compare(
            &mut numbers(before, at),
            &mut numbers(text, at),
            &mut numbers(after, at),
        );
    }
    inside
}

/// The same for `/proc/vmstat`: one number a line.
pub(super) fn compare_vmstat(
    lines: &mut [Line],
    before: &[u64],
    text: &[u64],
    after: &[u64],
) -> bool {
    let mut inside = true;
    for (at, line) in lines
        .iter_mut()
        .enumerate()
        .filter(|(_, line)| !line.is_from_text())
    {
        let number = |values: &[u64]| values.get(at).copied().into_iter();
        inside &= line.compare(&mut number(before), &mut number(text), &mut number(after));
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line::new("ctxt", Route::Structure)
    }

    fn round(line: &mut Line, before: u64, text: u64, after: u64) {
        line.compare(
            &mut [before].into_iter(),
            &mut [text].into_iter(),
            &mut [after].into_iter(),
        );
    }

    #[test]
    fn a_wrong_line_disagrees_and_a_right_one_does_not() {
        let (mut wrong, mut right) = (line(), line());
        for n in 0..20 {
            round(&mut right, n, n + 1, n + 2);
            round(&mut wrong, n, n + 100, n + 2);
        }
        assert!(wrong.disagrees());
        assert!(!right.disagrees());
    }

    #[test]
    fn a_gauge_may_rarely_be_outside() {
        let mut gauge = line();
        for n in 0..20 {
            round(&mut gauge, 5, if n < 2 { 9 } else { 5 }, 5);
        }
        assert!(!gauge.disagrees());
        round(&mut gauge, 5, 9, 5);
        assert!(gauge.disagrees());
    }

    #[test]
    fn zero_proves_little() {
        let mut zero = line();
        round(&mut zero, 0, 0, 0);
        assert_eq!(zero.report("/proc/stat").evidence, Evidence::OnlyZero);
        round(&mut zero, 0, 1, 1);
        assert_eq!(zero.report("/proc/stat").evidence, Evidence::NonZero);
    }

    #[test]
    fn rows_of_other_lengths_disagree() {
        let mut row = line();
        assert!(!row.compare(
            &mut [1, 2].into_iter(),
            &mut [1].into_iter(),
            &mut [1, 2].into_iter()
        ));
        assert!(!row.compare(
            &mut [1].into_iter(),
            &mut [1, 2].into_iter(),
            &mut [1].into_iter()
        ));
    }
}
