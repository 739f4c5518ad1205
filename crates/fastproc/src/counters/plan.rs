//! The loaded programs, the routes, and whether each line can be trusted.

use std::fs::File;

use super::{
    Error, Want,
    descriptors::Descriptors,
    gather::{self, DirtyLines, Known},
    kinds::Scalar,
    object::Object,
    report::{Report, Route, WhyText},
    routes::{Routes, Survey},
    trust::{Line, StatLine},
};
use crate::{base::timing, text::vmstat::Names};

/// The current source of each line.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) routes: Routes,
    pub(super) known: Known,
    /// `cpu`, every `cpuN`, then [`StatLine::ALL`].
    pub(super) stat: Vec<Line>,
    pub(super) vmstat: Vec<Line>,
    pub(super) names: Names,
    /// Lines in base pages that are printed in huge ones.
    pub(super) huge: Vec<usize>,
    pub(super) dirty: Option<DirtyLines>,
    /// Columns of the interrupts' row.
    pub(super) irq_columns: usize,
    pub(super) from_text: FromText,
}

/// What must be read from the text each time; it follows from the lines of a [`Plan`].
#[derive(Clone, Debug)]
pub(super) struct FromText {
    pub(super) stat: Vec<usize>,
    pub(super) vmstat: Vec<usize>,
    /// Lines of vmstat that the kernel calculates. They are kept for a while, so they count neither as whole nor as partly.
    pub(super) computed: Vec<usize>,
    /// Of which files all lines come from the text.
    pub(super) whole: Want,
    /// Of which at least one line does.
    pub(super) partly: Want,
}

impl FromText {
    fn of(stat: &[Line], vmstat: &[Line]) -> Self {
        let places = |lines: &[Line], is: fn(&Line) -> bool| {
            let lines = lines.iter().enumerate().filter(|(_, line)| is(line));
            lines.map(|(at, _)| at).collect()
        };
        let is_read = |line: &Line| line.is_from_text() && !line.is_computed();
        let mut found = Self {
            stat: places(stat, is_read),
            vmstat: places(vmstat, is_read),
            computed: places(vmstat, |line| line.is_from_text() && line.is_computed()),
            whole: Want::empty(),
            partly: Want::empty(),
        };
        for (part, lines) in [(Want::STAT, stat), (Want::VMSTAT, vmstat)] {
            found.whole.set(part, lines.iter().all(is_read));
            found.partly.set(part, lines.iter().any(is_read));
        }
        found
    }
}

impl Plan {
    /// The state before any comparison.
    pub(super) fn new(routes: Routes, names: Names, known: Known, irq_columns: usize) -> Self {
        let vmstat = vmstat_lines(&routes, &names);
        let position = |name| names.position(name);
        let thp = [
            "nr_anon_transparent_hugepages",
            "nr_file_hugepages",
            "nr_file_pmdmapped",
            "nr_shmem_hugepages",
            "nr_shmem_pmdmapped",
        ];
        let dirty = (|| {
            Some(DirtyLines {
                free: position("nr_free_pages")?,
                inactive_file: position("nr_inactive_file")?,
                active_file: position("nr_active_file")?,
            })
        })();
        let stat = stat_lines(&routes, &[]);
        Self {
            from_text: FromText::of(&stat, &vmstat),
            stat,
            vmstat,
            huge: thp.into_iter().filter_map(position).collect(),
            dirty: dirty.filter(|_| routes.scalars & gather::DIRTY == gather::DIRTY),
            routes,
            known,
            names,
            irq_columns,
        }
    }

    /// Decides what must be read from the text, after the lines have changed.
    pub(super) fn settle(&mut self) {
        self.from_text = FromText::of(&self.stat, &self.vmstat);
    }

    /// Renews the lines of `/proc/stat` for the CPUs that are online, keeping the results of each.
    pub(super) fn renew_stat_lines(&mut self) {
        self.stat = stat_lines(&self.routes, &self.stat);
    }

    pub(super) fn lines_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        self.stat.iter_mut().chain(&mut self.vmstat)
    }

    /// Whether any line seems wrong.
    pub(super) fn disagrees(&self) -> bool {
        self.stat
            .iter()
            .chain(&self.vmstat)
            .any(|line| !line.is_from_text() && line.disagrees())
    }

    /// Number of CPU lines that seem wrong.
    pub(super) fn disagreeing_cpus(&self) -> usize {
        let cpus = self.stat.iter().take(1 + self.routes.online.len());
        cpus.filter(|line| !line.is_from_text() && line.disagrees())
            .count()
    }

    /// The index of a line in `stat`.
    pub(super) fn stat_line(&self, line: StatLine) -> usize {
        1 + self.routes.online.len() + line as usize
    }
}

/// `cpu`, a line for each CPU that is online, and [`StatLine::ALL`]; a line that was there before stays.
fn stat_lines(routes: &Routes, old: &[Line]) -> Vec<Line> {
    let times = match (routes.nohz_full, routes.times) {
        (true, _) => Route::Text(WhyText::NohzFull),
        (false, None) => Route::Text(WhyText::NoRoute),
        (false, Some(_)) => Route::Structure,
    };
    let cpus = routes.online.iter().map(|cpu| (format!("cpu{cpu}"), times));
    let rest = StatLine::ALL.into_iter().map(|(line, name)| {
        let route = match line {
            StatLine::Intr if !routes.irqs => Route::Text(WhyText::NoRoute),
            StatLine::Softirq if !routes.softirqs => Route::Text(WhyText::NoRoute),
            StatLine::Btime => Route::Clock,
            StatLine::Processes if routes.scalars & Scalar::TotalForks.bit() != 0 => Route::Symbols,
            StatLine::Processes if routes.forks_counted => Route::Tracepoint,
            StatLine::Processes => Route::Text(WhyText::NoRoute),
            _ => Route::Structure,
        };
        (name.to_owned(), route)
    });
    std::iter::once(("cpu".to_owned(), times))
        .chain(cpus)
        .chain(rest)
        .map(|(name, route)| {
            old.iter()
                .find(|line| line.name == name)
                .cloned()
                .unwrap_or_else(|| Line::new(&name, route))
        })
        .collect()
}

/// The lines of `/proc/vmstat` in its order: counters of zones, of NUMA events by zone, of nodes, calculated values, events,
/// and values that never change.
fn vmstat_lines(routes: &Routes, names: &Names) -> Vec<Line> {
    let route = |at: usize, name: &str| {
        let Some(groups) = routes.groups else {
            return Route::Text(WhyText::NoRoute);
        };
        if at < groups.first_computed() {
            let by_zone = (groups.zone..groups.first_node()).contains(&at);
            let is_found = !routes.blocks.is_empty() && (!by_zone || routes.zones > 0);
            return if is_found {
                routes.vm_route
            } else {
                Route::Text(WhyText::NoRoute)
            };
        }
        if at < groups.first_event() {
            let shown = |scalars: u32| routes.scalars & scalars == scalars;
            match name {
                "nr_dirty_threshold" | "nr_dirty_background_threshold" if shown(gather::DIRTY) => {
                    Route::Symbols
                }
                "nr_memmap_pages" if shown(Scalar::NrMemmapPages.bit()) => Route::Symbols,
                "nr_memmap_boot_pages" if shown(Scalar::NrMemmapBootPages.bit()) => Route::Symbols,
                _ => Route::Text(WhyText::Computed),
            }
        } else if at < groups.end() {
            Route::Structure
        } else {
            Route::Constant
        }
    };
    names
        .iter()
        .enumerate()
        .map(|(at, name)| Line::new(name, route(at, name)))
        .collect()
}

/// The BPF part, if it can be used.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) object: Object,
    pub(super) descriptors: Descriptors,
    survey: Survey,
    irq_dir: Option<File>,
    pub(super) plan: Plan,
}

impl Kernel {
    /// Loads the programs, and finds everything. `known` comes from the texts.
    pub(super) fn open(
        mut survey: Survey,
        names: Names,
        known: Known,
        irq_columns: usize,
    ) -> Result<Self, Error> {
        let irq_dir = File::open("/sys/kernel/irq").ok();
        let mut object = survey.load()?;
        timing::done("memory of the maps");
        let routes = survey.resolve(&mut object, irq_dir.as_ref())?;
        timing::done("addresses");
        Ok(Self {
            object,
            descriptors: Descriptors::default(),
            survey,
            irq_dir,
            plan: Plan::new(routes, names, known, irq_columns),
        })
    }

    /// Finds everything again.
    pub(super) fn resolve(&mut self) -> Result<(), Error> {
        let routes = self.survey.resolve(&mut self.object, self.irq_dir.as_ref());
        self.plan.routes = routes?;
        Ok(())
    }

    pub(super) fn report(&self, checks: u64) -> Report {
        let plan = &self.plan;
        let stat = plan.stat.iter().map(|line| line.report("/proc/stat"));
        let vmstat = plan.vmstat.iter().map(|line| line.report("/proc/vmstat"));
        Report {
            unavailable: None,
            symbols: plan.routes.symbols,
            typed_loads: self.object.loads.cast,
            latency_knob: !plan.from_text.partly.contains(Want::STAT),
            checks,
            lines: stat.chain(vmstat).collect(),
        }
    }
}
