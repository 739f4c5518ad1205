//! How long a process was there.

use fastproc::{Fields, difference::is_same_start};

use super::{Error, history::History};
use crate::table::PROCESSES;

impl History {
    /// The first walk from a time on, in microseconds since 1970, that did not see a process which was there then. `None`: the
    /// last one saw it.
    pub fn end_of(&mut self, pid: u32, start_ns: u64, from: i64) -> Result<Option<i64>, Error> {
        let mut walks = self.walks(from, i64::MAX / 2)?;
        let boot_id = walks.first().map(|walk| walk.boot_id.clone());
        let rebooted = walks
            .iter()
            .position(|walk| Some(&walk.boot_id) != boot_id.as_ref());
        let after = rebooted.map(|at| walks.split_off(at)).unwrap_or_default();
        let Some(last) = walks.last().map(|walk| walk.time) else {
            return Ok(None);
        };
        // All processes have rows in these.
        walks.retain(|walk| walk.is_whole || walk.time == last);
        let (mut seen, mut gone) = (0, walks.len());
        while seen < gone {
            let middle = seen.midpoint(gone);
            let moment = self.at(walks[middle].time, Fields::empty())?;
            let process = moment.snapshot().get(pid);
            if process.is_some_and(|of| is_same_start(of.identity().start_ns, start_ns)) {
                seen = middle + 1;
            } else {
                gone = middle;
            }
        }
        let Some(until) = walks.get(gone).map(|walk| walk.time) else {
            return Ok(after.first().map(|walk| walk.time));
        };
        let begin = gone.checked_sub(1).map_or(from, |at| walks[at].time);
        let none = std::iter::empty();
        let rows = self.latest(&PROCESSES, (begin, until), none, |_, _, _, _| ())?;
        let row = rows.get(&(i64::from(pid), start_ns as i64));
        Ok(row.and_then(|row| row.gone).or(Some(until)))
    }
}
