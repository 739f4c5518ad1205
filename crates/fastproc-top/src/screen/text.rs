//! The screen as text, and its first line.

use std::time::{Duration, Instant};

use super::{Screen, next_due};
use crate::{
    canvas::{Sheet, shortened},
    clock,
    error::Error,
    feed::Feed,
    machine::Gauge,
    state::State,
};

impl Screen {
    /// Passes on screens as text, without the last line. Each comes after one interval, so that there is a comparison.
    /// Ends after the requested number, or with the history. Returns whether any had a row.
    pub fn batch<E: From<Error>>(
        &mut self,
        width: u16,
        height: Option<u16>,
        mut each: impl FnMut(String) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut any = false;
        self.state.is_text = true;
        self.fit(width)?;
        self.begin()?;
        let is_live = self.feed.is_live();
        self.state.paused = false;
        let mut due = Instant::now();
        loop {
            if is_live {
                due = next_due(due, self.state.interval(), Instant::now());
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                self.look()?;
            }
            let text = self.text(width, height);
            any |= self.painter.shown > 0;
            each(text)?;
            // What was is compared with the walk before it from the first one on.
            let looks = self.looks - u64::from(is_live);
            if self.options.count.is_some_and(|count| looks >= count) {
                return Ok(any);
            }
            if !is_live {
                self.look()?;
                if self.state.paused {
                    return Ok(any);
                }
            }
        }
    }

    /// The screen as it is now, as text.
    fn text(&mut self, width: u16, height: Option<u16>) -> String {
        let rows = self.feed.view().map_or(0, |view| match view.cgroups {
            Some(cgroups) => cgroups.snapshot.len(),
            None => view.snapshot.len(),
        });
        let rows = u16::try_from(rows).unwrap_or(u16::MAX - 100);
        let height = height.unwrap_or(rows + 30);
        let mut sheet = Sheet::default();
        sheet.reset(width, height);
        let title = title(&self.state, &self.feed);
        if let Some(view) = self.feed.view() {
            if self.feed.is_live() {
                self.lookup.set_time(view.snapshot.stats().kernel_end_ns());
            }
            let (state, lookup) = (&mut self.state, &mut self.lookup);
            self.painter.paint(&mut sheet, &view, state, lookup, &title);
        }
        sheet.to_text()
    }
}

/// The first line.
pub(super) fn title(state: &State, feed: &Feed) -> String {
    use std::fmt::Write;
    let mut title = String::from("fastproc top");
    let Some(view) = feed.view() else {
        return title;
    };
    let get = |gauge| view.machine.get(gauge);
    if state.paused {
        title.push_str(" [PAUSED]");
    }
    if let Some(ns) = get(Gauge::Calendar) {
        let _ = write!(title, " {}", clock::time_of_day(ns, !feed.is_live()));
    }
    // Visible on a narrow screen, too: a user who has forgotten the filter misses processes.
    let (filter, source) = match view.cgroups {
        Some(cgroups) => (state.settings.cgroups.filter.clone(), cgroups.source),
        None => (state.typed_filter(), feed.name()),
    };
    if !filter.is_empty() {
        let _ = write!(title, "; filter {};", shortened(&filter, 30));
    } else if view.machine.get(Gauge::Calendar).is_some() {
        title.push(',');
    }
    if let Some(ns) = get(Gauge::Uptime) {
        let seconds = ns / 1_000_000_000;
        let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
        let _ = write!(title, " up {days}d {hours:02}:{minutes:02}");
    }
    let load = [Gauge::Load1, Gauge::Load5, Gauge::Load15].map(get);
    if let [Some(one), Some(five), Some(fifteen)] = load {
        let load = |hundredths: u64| hundredths as f64 / 100.0;
        let _ = write!(
            title,
            ", load {:.2} {:.2} {:.2}",
            load(one),
            load(five),
            load(fifteen)
        );
    }
    if let Some(degrees) = get(Gauge::Temperature) {
        let _ = write!(title, ", {}°C", degrees / 1000);
    }
    let _ = write!(title, "; {source}");
    if feed.is_live() {
        let _ = write!(title, " every {} s", state.settings.interval);
    } else if let Some(time) = view.earlier.and_then(|earlier| view.machine.since(earlier)) {
        let _ = write!(title, " every {} s", rounded(time));
    }
    title
}

/// Seconds, with a digit or two after the point if they are not zero.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let digits = if seconds < 1.0 { 2 } else { 1 };
    let text = format!("{seconds:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_no_more_digits_than_it_needs() {
        let shown = [100, 1003, 10_010, 2500].map(|ms| rounded(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.1", "1", "10", "2.5"]);
    }
}
