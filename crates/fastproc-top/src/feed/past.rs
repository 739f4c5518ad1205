//! What was: one walk of a recorder after the other, or those of the last minutes.

use fastproc::{Baseline, Fields, Host, exits::Exit};
use fastproc_columns::Lookup;
use fastproc_history::read::{self, LACKED, Moment, Texts, Walk, groups, shown};

use super::{Stored, recorded::Hierarchy};
use crate::{
    error::Error,
    exited::Exited,
    id::Id,
    machine::Machine,
    observation::{Line, View},
};

const SECOND: i64 = 1_000_000;
/// A spike is looked for in so many hours.
const MOST_HOURS: usize = 200;
/// After all that was recorded.
const END: i64 = i64::MAX / 2;

/// A walk, and the machine then.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub walk: Walk,
    pub machine: Machine,
}

impl Step {
    /// Whether this and the one before it can be compared.
    fn follows(&self, before: &Self) -> bool {
        self.walk.boot_id == before.walk.boot_id && self.walk.began_ns > before.walk.began_ns
    }
}

/// Consecutive walks of a time, in microseconds since 1970: from the first on, and before the second.
#[derive(Debug, Default)]
pub struct Steps {
    pub time: (i64, i64),
    pub all: Vec<Step>,
}

impl Steps {
    /// The load of the machine over this time.
    fn line(&self) -> Line {
        let pairs = self.all.windows(2).map(|pair| (&pair[0], &pair[1]));
        let busy = pairs.filter_map(|(before, now)| {
            let earlier = now.follows(before).then_some(&before.machine)?;
            let shares = now.machine.total_shares(Some(earlier))?;
            Some((now.walk.time, shares.busy()))
        });
        let time = self.time;
        let busy = busy.filter(|(at, _)| (time.0..time.1).contains(at));
        Line {
            time,
            busy: busy.collect(),
        }
    }
}

/// Why exits are not known.
pub const NOT_RECORDED: &str = "exits were not recorded then";
/// The same.
pub const NO_WALK_BEFORE: &str = "exits are not known: there is no walk shortly before";

/// Exits between two walks; `None` if they are not known.
#[derive(Debug, Default)]
pub struct Exits {
    pub all: Option<Vec<Exit>>,
    /// Why they are not known.
    pub lacking: &'static str,
    pub lost: u64,
    pub texts: Texts,
}

impl Exits {
    fn unknown(lacking: &'static str) -> Self {
        Self {
            lacking,
            ..Self::default()
        }
    }
}

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many walks forward, or back.
    Step(i32),
    /// To a walk about so many microseconds later or earlier, over what was not recorded.
    By(i64),
    /// To what was at this time, in microseconds since 1970.
    At(i64),
    /// To where the load of the machine rises next, or did last.
    Spike { forward: bool },
    /// To the first walk that saw this process, or to the last one.
    Begin(Id),
    /// See [`Begin`](Self::Begin).
    End(Id),
}

impl Goal {
    /// Whether it is surely later.
    pub const fn is_forward(self) -> bool {
        match self {
            Self::Step(by) => by > 0,
            Self::By(by) => by > 0,
            Self::Spike { forward } => forward,
            Self::End(_) => true,
            Self::At(_) | Self::Begin(_) => false,
        }
    }
}

/// A walk that is shown, compared with the one before it.
#[derive(Debug)]
pub struct Past {
    source: Stored,
    steps: Steps,
    host: Host,
    fields: Fields,
    /// The walk that was last asked for: one that is damaged is passed as well.
    asked: i64,
    now: Option<(Step, Moment)>,
    before: Option<(Step, Moment)>,
    baseline: Baseline,
    exits: Exits,
    exited: Exited,
    /// The cgroups, if they are shown.
    cgroups: Option<Hierarchy>,
    line: Line,
    /// What the user has to know about the walk, once.
    told: Option<String>,
    damaged: usize,
}

impl Past {
    /// Begins after a time in microseconds since 1970, or at the end. Nothing is shown yet.
    pub fn new(source: Stored, from: Option<i64>, fields: Fields, host: Host) -> Self {
        Self {
            source,
            steps: Steps::default(),
            host,
            fields: fields & groups(),
            asked: from.unwrap_or(END),
            now: None,
            before: None,
            baseline: Baseline::default(),
            exits: Exits::default(),
            exited: Exited::default(),
            cgroups: None,
            line: Line::default(),
            told: None,
            damaged: 0,
        }
    }

    /// Where it is read from.
    pub const fn source(&self) -> &Stored {
        &self.source
    }

    /// Ends.
    pub fn into_source(self) -> Stored {
        self.source
    }

    /// Goes there. Returns false, and stays, if nothing was recorded in that direction.
    pub fn go(&mut self, goal: Goal) -> Result<bool, Error> {
        let to = match goal {
            Goal::Step(by) => self.neighbour(self.asked, by > 0)?,
            Goal::By(by) => self.nearest(self.asked.saturating_add(by), by > 0)?,
            Goal::At(time) => Some(self.at(time)?),
            Goal::Spike { forward } => self.spike(forward)?,
            Goal::Begin(id) => self.begin_of(id)?,
            Goal::End(id) => self.end_of(id)?,
        };
        let Some(to) = to else { return Ok(false) };
        // Further ones are shown one after the other as well.
        if let Goal::Step(by) = goal
            && self.asked < END
        {
            self.tell_of_gap(self.asked.min(to), self.asked.max(to), by > 0)?;
        }
        self.asked = to;
        self.show(to)?;
        Ok(true)
    }

    /// The walk that says what was at a time.
    fn at(&mut self, time: i64) -> Result<i64, Error> {
        self.load(time)?;
        let last = self.last_until(time).map(|at| &self.steps.all[at].walk);
        if let Some(walk) = last.filter(|walk| walk.lasts_until(time)) {
            return Ok(walk.time);
        }
        let gap = self.source.gap(time)?;
        // The screen stays where it is, and so does the line below it.
        self.load(self.asked).ok();
        Err(gap.into())
    }

    /// The last walk until a time or, going forward, the first one from it on; at the ends of the history those.
    fn nearest(&mut self, time: i64, forward: bool) -> Result<Option<i64>, Error> {
        let edge = if forward { time - 1 } else { time + 1 };
        let found = match self.neighbour(edge, forward)? {
            None => self.neighbour(edge, !forward)?,
            found => found,
        };
        Ok(found.filter(|found| *found != self.asked))
    }

    /// The walk after a time, or before it.
    fn neighbour(&mut self, time: i64, forward: bool) -> Result<Option<i64>, Error> {
        self.load(time)?;
        let found = self.next_to(time, forward);
        if found.is_some() {
            return Ok(found);
        }
        // A recorder may have added one.
        self.steps = Steps::default();
        self.load(time)?;
        let found = self.next_to(time, forward);
        if found.is_some() {
            return Ok(found);
        }
        let (before, after) = self.source.around(time)?;
        Ok(if forward { after } else { before })
    }

    /// The next rise of the load, or the one before.
    fn spike(&mut self, forward: bool) -> Result<Option<i64>, Error> {
        let mut time = self.asked;
        for _ in 0..MOST_HOURS {
            self.load(time)?;
            if let Some(found) = self.line.spike(self.asked, forward) {
                return Ok(Some(found));
            }
            let (from, to) = self.steps.time;
            match self.neighbour(if forward { to - 1 } else { from }, forward)? {
                Some(next) => time = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The walk where this is.
    fn walk(&mut self) -> Result<Option<Walk>, Error> {
        self.load(self.asked)?;
        let at = self.last_until(self.asked);
        Ok(at.map(|at| self.steps.all[at].walk.clone()))
    }

    /// The first walk that saw a process.
    fn begin_of(&mut self, id: Id) -> Result<Option<i64>, Error> {
        let Some(walk) = self.walk()? else {
            return Ok(None);
        };
        let after_boot = i64::try_from(id.process_start_ns / 1000).unwrap_or(0);
        let start = walk.boot_time.saturating_add(after_boot);
        self.load(start)?;
        // A walk is called by the second in which it began, and it takes a while.
        let last = self.last_until(start).map(|at| &self.steps.all[at].walk);
        let saw = last
            .filter(|walk| walk.began_ns.saturating_add(walk.read_for_ns) >= id.process_start_ns);
        let found = match saw {
            Some(walk) => Some(walk.time),
            None => self.neighbour(start, true)?,
        };
        if self.next_to(start, false).is_none() && self.source.around(start)?.0.is_none() {
            self.tell(format!("process {} began before what was recorded", id.pid));
        }
        Ok(found)
    }

    /// The last walk that saw a process.
    fn end_of(&mut self, id: Id) -> Result<Option<i64>, Error> {
        let Some(walk) = self.walk()? else {
            return Ok(None);
        };
        let end = self.source.end_of(id.pid, id.process_start_ns, walk.time)?;
        if end.is_none() {
            self.tell(format!(
                "process {} has not ended in what was recorded",
                id.pid
            ));
        }
        self.neighbour(end.unwrap_or(END), false)
    }

    fn next_to(&self, time: i64, forward: bool) -> Option<i64> {
        let all = &self.steps.all;
        let at = if forward {
            all.partition_point(|step| step.walk.time <= time)
        } else {
            let before = all.partition_point(|step| step.walk.time < time);
            before.checked_sub(1)?
        };
        all.get(at).map(|step| step.walk.time)
    }

    fn last_until(&self, time: i64) -> Option<usize> {
        let all = &self.steps.all;
        let after = all.partition_point(|step| step.walk.time <= time);
        after.checked_sub(1)
    }

    /// Reads the walks around a time, unless they are known.
    fn load(&mut self, time: i64) -> Result<(), Error> {
        if !(self.steps.time.0..self.steps.time.1).contains(&time) {
            self.steps = self.source.steps(time)?;
            self.line = self.steps.line();
        }
        Ok(())
    }

    /// Says that nothing was recorded between two neighbours.
    fn tell_of_gap(&mut self, from: i64, to: i64, forward: bool) -> Result<(), Error> {
        let walk = |past: &Self, time| {
            let at = past.last_until(time).map(|at| &past.steps.all[at].walk);
            at.filter(|walk| walk.time == time).cloned()
        };
        self.load(from)?;
        let (first, last) = (walk(self, from), walk(self, to));
        let text = match (&first, &last) {
            (Some(first), Some(last)) if first.boot_id != last.boot_id => "the machine was booted",
            (Some(first), _) if first.lasts_until(to) => return Ok(()),
            (None, Some(_)) if !forward => return Ok(()),
            _ => "nothing was recorded",
        };
        self.tell(format!("{text} between {} and {}", shown(from), shown(to)));
        Ok(())
    }

    /// Shows this walk, compared with the one before it.
    fn show(&mut self, time: i64) -> Result<(), Error> {
        self.load(time)?;
        let at = self.last_until(time);
        let at = at.filter(|at| self.steps.all[*at].walk.time == time);
        let Some(at) = at else {
            return Err(self.source.gap(time)?.into());
        };
        let step = self.steps.all[at].clone();
        let earlier = at.checked_sub(1).map(|at| self.steps.all[at].clone());
        let earlier = earlier.filter(|earlier| step.follows(earlier));
        let has_earlier = earlier.is_some();
        let now = self.moment(&step)?;
        // Without it only differences are not known.
        let before = earlier.and_then(|earlier| Some((self.moment(&earlier).ok()?, earlier)));
        let exits = match &before {
            Some((_, earlier)) => self.source.exits(&earlier.walk, &step.walk, &now),
            None if has_earlier => Ok(Exits::unknown(
                "exits are not known: the walk before is damaged",
            )),
            None => Ok(Exits::unknown(NO_WALK_BEFORE)),
        };
        let exits = match exits {
            Err(read::Error::Damaged { .. }) => Exits::unknown(
                "the exits there are damaged; fastproc history check lists the files",
            ),
            exits => exits?,
        };
        if exits.lacking.contains("damaged") && exits.lacking != self.exits.lacking {
            self.tell(exits.lacking.into());
        }
        self.exits = exits;
        self.baseline = Baseline::default();
        if let Some((before, _)) = &before {
            self.baseline.set(&before.snapshot());
        }
        self.baseline
            .set_cpus(step.walk.cpus.unwrap_or(self.host.possible_cpus));
        self.before = before.map(|(moment, step)| (step, moment));
        self.now = Some((step, now));
        let before = self.before.is_some().then_some(&self.baseline);
        let snapshot = self
            .now
            .as_ref()
            .map(|(_, now)| with_exits(now, &self.exits));
        if let Some(snapshot) = snapshot {
            self.exited.look(before, &snapshot);
        }
        if self.cgroups.is_some() {
            self.read_cgroups();
        }
        if let Some((count, text)) = self.source.damage(self.damaged) {
            self.damaged = count;
            self.tell(text);
        }
        Ok(())
    }

    /// Shows cgroups as well, or no longer.
    pub fn need_cgroups(&mut self, shows: bool) -> Result<(), Error> {
        if !shows || matches!(self.source, Stored::Memory(_)) {
            self.cgroups = None;
            return if shows { Err(Error::NoCgroups) } else { Ok(()) };
        }
        if self.cgroups.is_none() {
            self.read_cgroups();
        }
        Ok(())
    }

    /// Reads the cgroups of the walk that is shown.
    fn read_cgroups(&mut self) {
        let (Some((step, now)), Stored::History(history)) = (&self.now, &mut self.source) else {
            return;
        };
        let before = self.before.as_ref().map(|(step, _)| step.walk.time);
        let read = Hierarchy::read(|time| history.cgroups_at(time), step.walk.time, before);
        let mut cgroups = read.unwrap_or_default();
        let before = self.before.is_some().then_some(&self.baseline);
        cgroups.count(&now.snapshot(), before);
        if cgroups.view().snapshot.is_empty() {
            self.told = Some("the cgroups of that time were not recorded, or are damaged".into());
        }
        self.cgroups = Some(cgroups);
    }

    /// The processes of a walk.
    fn moment(&mut self, step: &Step) -> Result<Moment, Error> {
        for known in [&mut self.now, &mut self.before] {
            if let Some((_, moment)) = known.take_if(|(of, _)| of.walk == step.walk) {
                return Ok(moment);
            }
        }
        Ok(self.source.moment(&step.walk, self.fields)?)
    }

    /// Reads these groups of fields too. Returns whether they are new.
    pub fn need(&mut self, needs: Fields) -> Result<bool, Error> {
        let needs = needs & groups();
        if self.fields.contains(needs) {
            return Ok(false);
        }
        self.fields |= needs;
        (self.now, self.before) = (None, None);
        self.show(self.asked)?;
        Ok(true)
    }

    fn tell(&mut self, text: String) {
        self.told = Some(text);
    }

    /// What the user has to know, since the last call.
    pub fn take_told(&mut self) -> Option<String> {
        self.told.take()
    }

    /// The time of the walk that is shown, in microseconds since 1970.
    pub fn time(&self) -> i64 {
        self.now.as_ref().map_or(0, |(step, _)| step.walk.time)
    }

    /// Why the exits before the walk that is shown are not known; empty if they are.
    pub const fn lacks_exits(&self) -> &'static str {
        self.exits.lacking
    }

    /// A lookup of the values of that time.
    pub fn lookup(&self) -> Option<Lookup> {
        let (_, now) = self.now.as_ref()?;
        let mut lookup = now.lookup(self.host.clone());
        lookup.lacks = Some(&LACKED);
        self.exits.texts.keep(&mut lookup);
        Some(lookup)
    }

    /// The machine at the walks until this one, each with the one before.
    pub fn earlier(&self, most: usize) -> impl Iterator<Item = (&Machine, Option<&Machine>)> {
        let until = self.last_until(self.time()).unwrap_or(0);
        let from = until.saturating_sub(most);
        (from..until).map(|at| {
            let now = &self.steps.all[at];
            let before = at.checked_sub(1).map(|at| &self.steps.all[at]);
            let before = before.filter(|before| now.follows(before));
            (&now.machine, before.map(|before| &before.machine))
        })
    }

    pub(super) fn view(&self) -> Option<View<'_>> {
        let (step, now) = self.now.as_ref()?;
        Some(View {
            snapshot: with_exits(now, &self.exits),
            before: self.before.is_some().then_some(&self.baseline),
            machine: &step.machine,
            earlier: self.before.as_ref().map(|(step, _)| &step.machine),
            line: Some(&self.line),
            exited: &self.exited,
            cgroups: self.cgroups.as_ref().map(Hierarchy::view),
        })
    }
}

fn with_exits<'a>(now: &'a Moment, exits: &'a Exits) -> fastproc::Snapshot<'a> {
    let snapshot = now.snapshot();
    match &exits.all {
        Some(all) => snapshot.with_exits(all, exits.lost),
        None => snapshot,
    }
}

/// Microseconds of a number of minutes.
pub const fn minutes(count: i32) -> i64 {
    count as i64 * 60 * SECOND
}
