//! One run of a recorder: its row groups, and what happened to the time meanwhile.

use std::{io, sync::Arc, time::Duration};

use fastproc::Snapshot;

use super::{
    cells::{Cell, Row, place, row_of},
    clock::Moment,
    group::Group,
    hierarchy,
    shares::Shares,
    store::{Boot, Key},
    taken::Taken,
    texts::Texts,
    walk::{Sink, Walker},
    writing::{Event, Job, Place, Writing},
};
use crate::table::{EVENTS, EXITS, MACHINE, Table, WAITS};

const SECOND: i64 = 1_000_000;
/// What a row group covers, in microseconds.
pub(super) const GROUP: i64 = 900 * SECOND;
/// What a part covers, unless the interval is longer, or the user says otherwise.
const PART: i64 = 5 * SECOND;
/// Exits of one user but root in a quarter of an hour. Further ones are lost.
const MOST_EXITS: usize = if cfg!(test) { 100 } else { 200_000 };
/// No row group takes more memory, in bytes.
const MOST_BYTES: usize = 24 << 20;

/// One look at the machine.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// When it began.
    pub moment: Moment,
    /// The processes: the next snapshot of the same collector.
    pub snapshot: &'a Snapshot<'a>,
    /// The row of `machine`.
    pub machine: &'a Row,
    /// The rows of `cgroups` by id, in the order of these.
    pub cgroups: &'a [(i64, Row)],
    /// The rows of `waits`, if they are wanted.
    pub waits: &'a [(Key, Row)],
}

/// What is not written yet.
#[derive(Debug)]
struct Open {
    group: Group,
    part: Group,
    /// The last row of `machine`.
    machine: Option<Row>,
    /// The last rows of `cgroups`.
    cgroups: Vec<(i64, Row)>,
    events: i64,
    /// When the newest rows were read.
    last: i64,
    /// Whether its beginning was removed to make room. Its parts are all there will be of it.
    is_dropped: bool,
}

/// Records looks.
#[derive(Debug)]
pub struct Session {
    walker: Walker,
    boot: Boot,
    interval: i64,
    part: i64,
    /// Whether the look is the last one.
    ends: bool,
    taken: Taken,
    open: Option<Open>,
    last: Option<Moment>,
    /// A row group that takes more memory ends early, in bytes.
    most_of_group: usize,
    /// Since when nothing was recorded because it was recorded already.
    blind_since: Option<i64>,
    events: Vec<Event>,
    shares: Shares,
    writing: Writing,
}

impl Session {
    /// Begins. `taken` has the times that the folder has already.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub fn new(
        place_of_rows: impl Place,
        boot_id: &str,
        interval: Duration,
        taken: Taken,
        told: Vec<Event>,
    ) -> io::Result<Self> {
        let boot = Boot {
            id: boot_id.into(),
            time: 0,
        };
        Ok(Self {
            walker: Walker::default(),
            boot,
            interval: (interval.as_micros() as i64).max(1),
            part: PART,
            ends: false,
            taken,
            open: None,
            last: None,
            most_of_group: place_of_rows.most_of_group().min(MOST_BYTES),
            blind_since: None,
            events: told,
            shares: Shares::new(MOST_EXITS, ["exits", ""]),
            writing: Writing::start(place_of_rows)?,
        })
    }

    /// Writes a part this often: a crash loses what is not in one. A slow disk has less to do with fewer. The default is five
    /// seconds.
    #[must_use]
    pub fn with_parts(mut self, every: Duration) -> Self {
        self.part = (every.as_micros() as i64).clamp(SECOND, GROUP);
        self
    }

    /// Whether the next look at this moment would be a later one than the last one.
    pub fn is_due(&self, moment: Moment) -> bool {
        let last = self.last.map(|last| self.time_of(last));
        last != Some(self.time_of(moment))
    }

    /// The final look is no later than its second: the next multiple of the interval may be far.
    fn step(&self) -> i64 {
        let most = if self.ends { SECOND } else { i64::MAX };
        self.interval.min(most)
    }

    fn time_of(&self, moment: Moment) -> i64 {
        moment.tick(self.step())
    }

    /// How long to wait for the next look.
    pub fn until_next(&self, moment: Moment) -> Duration {
        moment.until_next_tick(self.interval)
    }

    /// Adds an event to the next look.
    pub fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The problems among the events that the next look will record, for the log.
    pub fn take_told(&mut self) -> Vec<String> {
        let told = self.writing.told();
        if let Some(open) = &mut self.open {
            let is_of = |event: &Event| event.until.is_some_and(|until| until > open.group.from);
            let mut dropped = told.iter().filter(|event| event.event == "dropped");
            open.is_dropped |= dropped.any(is_of);
        }
        let said = told.iter();
        let said = said
            .map(|event| format!("{}: {}", event.event, event.detail))
            .collect();
        self.events.extend(told);
        said
    }

    /// Records the final look before [`finish`](Self::finish). If the one before it was of the same time, only its exits.
    pub fn push_last(&mut self, look: &Look<'_>, texts: &mut dyn Texts) {
        self.ends = true;
        if self.is_due(look.moment) {
            self.push(look, texts);
        } else {
            texts.begin(look.snapshot, false);
            let (later, _) = self.push_exits(look, self.time_of(look.moment), texts);
            if let Some(open) = &mut self.open {
                open.exits(later);
            }
        }
        self.tell_left_out(None, texts);
    }

    /// Records a look.
    pub fn push(&mut self, look: &Look<'_>, texts: &mut dyn Texts) {
        let time = self.time_of(look.moment);
        let fits = |open: &Open| !open.is_dropped && open.last < time && time < open.group.to;
        let has_jumped = self.compare_clocks(look.moment, time);
        let begins = has_jumped || !self.open.as_ref().is_some_and(fits);
        texts.begin(look.snapshot, begins);
        self.tell_left_out(Some(time.div_euclid(GROUP)), texts);
        let (later, left_out) = self.push_exits(look, time, texts);
        if begins {
            self.close(time);
            if self.taken.contains(time) {
                self.blind_since.get_or_insert(time);
                return;
            }
            self.open(look.moment, time);
        }
        let Some(open) = &mut self.open else { return };
        if time >= open.part.to {
            let to = end_of_part(time, (self.part, self.interval), open.group.to);
            let part = Group::new(time, to, &self.boot);
            let part = std::mem::replace(&mut open.part, part);
            self.writing.push(Job::Part(part));
        }
        open.last = time;
        open.exits(later);
        self.walker.walk(look.snapshot, texts, open);
        let mut machine = look.machine.clone();
        machine[place(&MACHINE, "whole")] = i64::from(begins).into();
        if let Cell::Number(lost) = &mut machine[place(&MACHINE, "lost_exits")] {
            *lost += left_out;
        }
        let before = open.machine.replace(machine.clone());
        open.row(&MACHINE, (0, 0), before.as_ref(), &machine);
        let before = std::mem::replace(&mut open.cgroups, look.cgroups.to_vec());
        hierarchy::differences(&before, look.cgroups, open);
        for (key, row) in look.waits {
            open.row(&WAITS, *key, None, row);
        }
        self.push_events(time);
        if let Some(open) = &mut self.open
            && open.group.bytes() > self.most_of_group
        {
            open.group.to = open.group.to.min(time + self.interval);
            open.part.to = open.part.to.min(open.group.to);
        }
    }

    /// Tells what happened to the time since the look before. Returns whether the wall clock was set.
    fn compare_clocks(&mut self, moment: Moment, time: i64) -> bool {
        let Some(last) = self.last.replace(moment) else {
            let end = self.taken.end_before(time);
            self.events.push(Event {
                event: "started",
                since: end,
                until: Some(time),
                detail: format!("fastproc {}", env!("CARGO_PKG_VERSION")),
            });
            return true;
        };
        let happened = moment.since(last);
        let between = |event, detail| Event {
            event,
            since: Some(last.tick(self.interval)),
            until: Some(time),
            detail,
        };
        let seconds = |micros: i64| micros.unsigned_abs() as f64 / 1e6;
        if let Some(by) = happened.jumped {
            let way = if by < 0 { "back" } else { "forward" };
            let detail = format!("the clock was set {way} by {:.1} s", seconds(by));
            self.events.push(between("clock", detail));
        }
        if let Some(by) = happened.slept {
            let detail = format!("the machine slept for {:.1} s", seconds(by));
            self.events.push(between("slept", detail));
        }
        let late = moment.awake - last.awake;
        if late > (3 * self.interval).max(PART) {
            let detail = format!(
                "no walk for {:.1} s: the recorder did not run, or the machine was too busy",
                seconds(late)
            );
            self.events.push(between("blind", detail));
        }
        happened.jumped.is_some()
    }

    /// Reports of whom something was left out in the quarter that is over, if this is another one, or if this is the end.
    fn tell_left_out(&mut self, quarter: Option<i64>, texts: &mut dyn Texts) {
        self.events.extend(self.shares.at(quarter));
        self.events.extend(texts.left_out(quarter));
    }

    /// Adds the exits of a look that belong to the part before it. Returns the others, and how many are left out.
    fn push_exits(
        &mut self,
        look: &Look<'_>,
        time: i64,
        texts: &mut dyn Texts,
    ) -> (Vec<(i64, Key, Row)>, i64) {
        let (mut later, mut left_out) = (Vec::new(), 0);
        let (open, shares) = (&mut self.open, &mut self.shares);
        self.walker
            .exits(look.snapshot, texts, |exit, number, row| {
                if !shares.take(exit.uid, 1) {
                    left_out += 1;
                    return;
                }
                let end = exit
                    .end_ns
                    .map(|end| (end / 1000) as i64 + look.moment.boot_time());
                let end = end.unwrap_or(time);
                let key = (end, i64::from(exit.pid) << 20 | number & 0xf_ffff);
                match open {
                    Some(open) if end < open.part.to => {
                        open.exit(end.max(open.part.from), key, &row);
                    }
                    _ => later.push((end, key, row)),
                }
            });
        (later, left_out)
    }

    fn push_events(&mut self, time: i64) {
        if let Some(since) = self.blind_since.take() {
            self.events.push(Event {
                event: "blind",
                since: Some(since),
                until: Some(time),
                detail: "the clock showed times that were recorded already".into(),
            });
        }
        let Some(open) = &mut self.open else { return };
        for event in self.events.drain(..) {
            let mut row = row_of(&EVENTS, &[]);
            let number = |time: Option<i64>| time.map_or(Cell::Null, Cell::Number);
            row[place(&EVENTS, "event")] = event.event.into();
            row[place(&EVENTS, "since")] = number(event.since);
            row[place(&EVENTS, "until")] = number(event.until);
            row[place(&EVENTS, "detail")] = event.detail.as_str().into();
            open.events += 1;
            open.push(&EVENTS, (time, open.events), time, None, &row);
        }
    }

    fn open(&mut self, moment: Moment, time: i64) {
        // Otherwise the small steps of NTP would give each row group another time of boot.
        if (moment.boot_time() - self.boot.time).abs() > SECOND / 4 {
            self.boot.time = moment.boot_time();
        }
        let end = (time.div_euclid(GROUP) + 1) * GROUP;
        let end = self.taken.next(time).map_or(end, |next| next.min(end));
        let part = end_of_part(time, (self.part, self.interval), end);
        self.open = Some(Open {
            group: Group::new(time, end, &self.boot),
            part: Group::new(time, part, &self.boot),
            machine: None,
            cgroups: Vec::new(),
            events: 0,
            last: time,
            is_dropped: false,
        });
        self.walker.begin_group();
    }

    /// Hands the row group to the thread. `now`: the time of the next look.
    fn close(&mut self, now: i64) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        if now < open.group.to {
            open.group.to = open.group.to.min(open.last + self.step());
        }
        self.taken.add(open.group.from, open.group.to);
        // The thread seals them when it has written this.
        self.taken.seal(open.group.seconds().1 * SECOND);
        self.writing.push(if open.is_dropped {
            open.part.to = open.part.to.min(open.group.to);
            Job::Part(open.part)
        } else {
            Job::Group(open.group)
        });
    }

    /// Ends, with the reason in words, and writes what is not written yet.
    ///
    /// Returns whether everything is written: a disk that hangs or is full gets twenty seconds. Afterwards
    /// [`take_told`](Self::take_told) says why not.
    pub fn finish(&mut self, why: &str) -> bool {
        self.events.extend(self.writing.told());
        self.events.push(Event {
            event: "stopped",
            detail: why.into(),
            ..Event::default()
        });
        if let Some(time) = self.open.as_ref().map(|open| open.last) {
            self.push_events(time);
        }
        self.close(i64::MIN);
        self.writing.finish()
    }
}

impl Open {
    fn push(
        &mut self,
        table: &'static Table,
        key: Key,
        time: i64,
        before: Option<&Row>,
        now: &Row,
    ) {
        for group in [&mut self.group, &mut self.part] {
            group.push(table, key, time, before, now);
        }
    }

    /// Adds exits that are not known to be of an earlier part.
    fn exits(&mut self, exits: Vec<(i64, Key, Row)>) {
        for (at, key, row) in exits {
            self.exit(at.clamp(self.part.from, self.part.to - 1), key, &row);
        }
    }

    fn exit(&mut self, time: i64, key: Key, row: &Row) {
        self.push(&EXITS, (time, key.1), time, None, row);
    }
}

/// Rows of the present second.
impl Sink for Open {
    fn row(&mut self, table: &'static Table, key: Key, before: Option<&Row>, now: &Row) {
        self.push(table, key, self.last, before, now);
    }
}

fn end_of_part(time: i64, (part, interval): (i64, i64), end_of_group: i64) -> i64 {
    let part = part.max(interval);
    let end = (time.div_euclid(part) + 1) * part;
    end.max(time + interval).min(end_of_group)
}

/// The id of this boot of the machine.
///
/// # Errors
/// The file cannot be read.
pub fn boot_id() -> io::Result<Arc<str>> {
    let path = fastproc::proc_root::path("/proc/sys/kernel/random/boot_id");
    Ok(std::fs::read_to_string(path)?.trim_end().into())
}
