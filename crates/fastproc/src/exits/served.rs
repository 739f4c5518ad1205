//! Exits on their way through a service.

use std::convert::Infallible;

use super::{Exit, Line, Owner, handout::Handout};
use crate::{
    Cmdline, Snapshot,
    record::{EXIT_CUT, EXIT_FINAL, EXIT_IO, EXIT_PPID, EXIT_STATUS, ExitRecord},
};

/// What the service hands to one reader, from snapshot to snapshot.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Number of the last exit that came; 0 before anything is known.
    pub(crate) last: u64,
    /// `None`: not all are known that belong to the last snapshot.
    handout: Option<Handout>,
}

/// An answer of the service, as far as it is about exits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// Every exit with a larger number is here, or was lost,
    pub(crate) after: u64,
    /// up to this one; 0: they are not recorded.
    pub(crate) last: u64,
    pub(crate) exits: &'a [ExitRecord],
    pub(crate) lines: &'a [u8],
}

impl Served {
    /// Takes what has ended and is not in `snapshot`. If the service has not recorded since the last time, for it was
    /// started in between, then this snapshot has no exits, and what is missing is in no other.
    pub(crate) fn take(&mut self, answer: Answer<'_>, snapshot: &Snapshot<'_>) {
        let before = std::mem::replace(&mut self.last, answer.last);
        if before == 0 || answer.last == 0 || answer.after != before {
            self.handout = None;
            return;
        }
        let handout = self.handout.get_or_insert_default();
        let Ok(()) = handout.turn(snapshot, |exits, lines| {
            exits.extend(answer.exits.iter().map(Exit::of_exit_record));
            lines.extend_from_slice(answer.lines);
            let all = answer.last.saturating_sub(before);
            Ok::<_, Infallible>(all.saturating_sub(answer.exits.len() as u64))
        });
    }

    /// What was taken last.
    pub(crate) fn ends(&self) -> Option<(crate::snapshot::Ends<'_>, u64)> {
        self.handout.as_ref().map(Handout::ends)
    }
}

impl Exit {
    /// As the service hands it out. `line_at`: where its command line, if there is one, stands among those of all.
    pub fn to_exit_record(
        &self,
        number: u64,
        line: Option<Cmdline<'_>>,
        line_at: u32,
    ) -> ExitRecord {
        let bits = [
            (EXIT_FINAL, self.is_final),
            (EXIT_PPID, self.ppid.is_some()),
            (EXIT_STATUS, self.status.is_some()),
            (EXIT_IO, self.io.is_some()),
            (EXIT_CUT, line.is_some_and(|line| line.cut)),
        ];
        let known = bits.iter().filter(|(_, is_set)| *is_set);
        ExitRecord {
            number,
            start_ns: self.start_ns,
            end_ns: self.end_ns.unwrap_or(0),
            utime_ns: self.utime_ns,
            stime_ns: self.stime_ns,
            gtime_ns: self.gtime_ns,
            sum_exec_ns: self.sum_exec_ns,
            cutime_ns: self.cutime_ns,
            cstime_ns: self.cstime_ns,
            cgtime_ns: self.cgtime_ns,
            cminflt: self.cminflt,
            cmajflt: self.cmajflt,
            minflt: self.minflt,
            majflt: self.majflt,
            nvcsw: self.nvcsw,
            nivcsw: self.nivcsw,
            peak_rss: self.peak_rss,
            cgroup_id: self.cgroup_id,
            io: self.io.unwrap_or_default(),
            known: known.fold(0, |bits, (bit, _)| bits | bit),
            pid: self.pid,
            ppid: self.ppid.unwrap_or(0),
            flags: self.flags,
            uid: self.uid,
            euid: self.euid,
            gid: self.gid,
            egid: self.egid,
            status: self.status.unwrap_or(0),
            line_at,
            line_bytes: line.map_or(0, |line| line.bytes.len() as u32),
            reserved: 0,
            comm: self.comm,
        }
    }

    /// What the service has handed out, or what was kept: without what only the kernel side knows.
    pub fn of_exit_record(record: &ExitRecord) -> Self {
        let is_known = |bit| record.known & bit != 0;
        Self {
            pid: record.pid,
            tid: record.pid,
            ppid: is_known(EXIT_PPID).then_some(record.ppid),
            start_ns: record.start_ns,
            end_ns: (record.end_ns != 0).then_some(record.end_ns),
            is_final: is_known(EXIT_FINAL),
            comm: record.comm,
            uid: record.uid,
            euid: record.euid,
            gid: record.gid,
            egid: record.egid,
            cgroup_id: record.cgroup_id,
            status: is_known(EXIT_STATUS).then_some(record.status),
            flags: record.flags,
            utime_ns: record.utime_ns,
            stime_ns: record.stime_ns,
            gtime_ns: record.gtime_ns,
            sum_exec_ns: record.sum_exec_ns,
            cutime_ns: record.cutime_ns,
            cstime_ns: record.cstime_ns,
            cgtime_ns: record.cgtime_ns,
            cminflt: record.cminflt,
            cmajflt: record.cmajflt,
            minflt: record.minflt,
            majflt: record.majflt,
            nvcsw: record.nvcsw,
            nivcsw: record.nivcsw,
            peak_rss: record.peak_rss,
            io: is_known(EXIT_IO).then_some(record.io),
            owner: Owner::default(),
            line: Line {
                at: record.line_at,
                len: record.line_bytes,
                cut: is_known(EXIT_CUT),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Io;

    #[test]
    fn an_exit_arrives_as_it_was_sent() {
        let whole = Exit {
            pid: 7,
            tid: 7,
            ppid: Some(1),
            start_ns: 10,
            end_ns: Some(20),
            is_final: true,
            comm: *b"0123456789abcde\0",
            uid: 1,
            euid: 2,
            gid: 3,
            egid: 4,
            cgroup_id: 5,
            status: Some(-6),
            flags: 8,
            utime_ns: 9,
            stime_ns: 11,
            gtime_ns: 12,
            sum_exec_ns: 13,
            cutime_ns: 14,
            cstime_ns: 15,
            cgtime_ns: 16,
            cminflt: 17,
            cmajflt: 18,
            minflt: 19,
            majflt: 21,
            nvcsw: 22,
            nivcsw: 23,
            peak_rss: 24,
            io: Some(Io {
                rchar: 25,
                ..Io::default()
            }),
            owner: Owner::default(),
            line: Line {
                at: 2,
                len: 3,
                cut: true,
            },
        };
        let nothing = Exit {
            ppid: None,
            end_ns: None,
            is_final: false,
            status: None,
            io: None,
            line: Line::default(),
            ..whole
        };
        let line = Cmdline {
            bytes: b"abc",
            cut: true,
        };
        let sent = whole.to_exit_record(1, Some(line), 2);
        assert_eq!(Exit::of_exit_record(&sent), whole);
        let sent = nothing.to_exit_record(1, None, 0);
        assert_eq!(Exit::of_exit_record(&sent), nothing);
    }
}
