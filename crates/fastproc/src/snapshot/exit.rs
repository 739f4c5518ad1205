//! An exited process.

use std::time::Duration;

use super::cmdline::Cmdline;
use crate::records::{
    fields::Fields,
    name::until_nul,
    record::{
        Cgroup, Cpu, Credentials, EXIT_CUT, EXIT_FINAL, EXIT_IO, EXIT_PPID, EXIT_STATUS,
        ExitRecord, Identity, Io, Record, State, Users,
    },
};

/// An exited process or thread, with its final values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Process id that it had.
    pub pid: u32,
    /// Thread id: [`pid`](Self::pid) of a process.
    pub tid: u32,
    /// Parent's process id when its last thread ended (`real_parent->tgid`). `None` for a thread, or if the
    /// process ended before the exits were opened.
    pub ppid: Option<u32>,
    /// Whether it executed nothing and ran the same program as its parent when it ended. `None` if that is not known: it
    /// was forked before the exits were opened, execs were not requested, or a service recorded it.
    pub has_program_of_parent: Option<bool>,
    /// When it started, in nanoseconds after boot (`task->start_boottime`).
    pub start_ns: u64,
    /// When its last thread ended, in nanoseconds after boot. `None`: as for [`ppid`](Self::ppid).
    pub end_ns: Option<u64>,
    /// Whether the values are those with which it left `/proc`. If not, the kernel's last record was lost, and they are
    /// those of the moment when its last thread began to exit: they lack the time to free its memory, and what other
    /// exiting threads did later.
    pub is_final: bool,
    /// Command name, NUL padded (`task->comm`).
    pub comm: [u8; 16],
    /// Real user id.
    pub uid: u32,
    /// Effective user id.
    pub euid: u32,
    /// Real group id.
    pub gid: u32,
    /// Effective group id.
    pub egid: u32,
    /// Id of its cgroup in the default hierarchy; 0 if the kernel has none.
    pub cgroup_id: u64,
    /// Exit status as waitpid(2) returns it. `None` if the kernel would have hidden it from this reader.
    pub status: Option<i32>,
    /// Kernel flags, `PF_*` (`task->flags`).
    pub flags: u32,
    /// Time in user mode, as the kernel shows it, in nanoseconds.
    pub utime_ns: u64,
    /// Time in kernel mode, in nanoseconds.
    pub stime_ns: u64,
    /// Time in a guest's code, in nanoseconds; part of [`utime_ns`](Self::utime_ns).
    pub gtime_ns: u64,
    /// The precise run time, in nanoseconds (`sum_exec_runtime`).
    pub sum_exec_ns: u64,
    /// Time that its threads waited for a CPU, in nanoseconds (`sched_info.run_delay`). `None`: the kernel does not count, or the
    /// process had several threads and the kernel does not keep what exited ones waited.
    pub run_delay_ns: Option<u64>,
    /// How often one of its threads got a CPU (`sched_info.pcount`). `None`: as for [`run_delay_ns`](Self::run_delay_ns).
    pub timeslices: Option<u64>,
    /// User time of children that it waited for, in nanoseconds. This and the next four are 0 for a thread.
    pub cutime_ns: u64,
    /// System time of these children, in nanoseconds.
    pub cstime_ns: u64,
    /// Guest time of these children, in nanoseconds.
    pub cgtime_ns: u64,
    /// Page faults without I/O of these children.
    pub cminflt: u64,
    /// Page faults with I/O of these children.
    pub cmajflt: u64,
    /// Page faults without I/O.
    pub minflt: u64,
    /// Page faults with I/O.
    pub majflt: u64,
    /// Voluntary context switches of all its threads.
    pub nvcsw: u64,
    /// Involuntary context switches of all its threads.
    pub nivcsw: u64,
    /// Largest resident set that it ever had, in bytes (`signal->maxrss`); 0 for a thread.
    pub peak_rss: u64,
    /// I/O of all its threads. `None` if the kernel would have hidden it from this reader.
    pub io: Option<Io>,
    pub(crate) owner: Owner,
    /// Whether the process was dumpable. `None` if not known.
    pub(crate) dumpable: Option<bool>,
    pub(crate) program: Program,
    pub(crate) line: Line,
}

/// The credentials of a process. They decide which readers may see all about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) users: Users,
    pub(crate) user_ns: u32,
    pub(crate) cap_permitted: u64,
}

impl Owner {
    pub(crate) fn new(users: &Users, credentials: &Credentials) -> Self {
        Self {
            users: *users,
            user_ns: credentials.user_ns,
            cap_permitted: credentials.cap_permitted,
        }
    }
}

/// The exec that began the program of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    /// The process that executed it. If the exited one executed nothing, that is the process that forked it, or the one that
    /// forked that, and so on.
    pub(crate) pid: u32,
    pub(crate) start_ns: u64,
    /// The number of the exec in that process (`task->self_exec_id`); 0 if that is unknown.
    pub(crate) exec_id: u64,
}

/// The place of the command line of an exit among those of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u32,
    pub(crate) len: u32,
    pub(crate) cut: bool,
}

impl Exit {
    pub(crate) fn put_line(&mut self, line: Cmdline<'_>, lines: &mut Vec<u8>) {
        self.line = Line {
            at: lines.len() as u32,
            len: line.bytes.len() as u32,
            cut: line.cut,
        };
        lines.extend_from_slice(line.bytes);
    }

    /// Its command line, among those of the same snapshot.
    pub(crate) fn line<'a>(&self, lines: &'a [u8]) -> Option<Cmdline<'a>> {
        let Line { at, len, cut } = self.line;
        let bytes = lines.get(at as usize..)?.get(..len as usize)?;
        (!bytes.is_empty()).then_some(Cmdline { bytes, cut })
    }

    /// Command name, without the padding.
    pub fn comm(&self) -> &[u8] {
        until_nul(&self.comm)
    }

    /// Its exit code, if no signal ended it.
    pub fn code(&self) -> Option<i32> {
        let status = self.status?;
        self.signal().is_none().then_some(status >> 8 & 0xff)
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.status? & 0x7f;
        (signal != 0).then_some(signal)
    }

    /// The exit as a record, for programs that show processes: dead, with its ids, its name, [`Fields::CPU`],
    /// [`Fields::IO`] and [`Fields::CGROUP`]. Other members, such as its process group, session and terminal,
    /// are not known. Its context switches are those of all its threads, not of the leading one alone.
    pub fn to_record(&self) -> Record {
        let mut groups = Fields::CPU | Fields::CGROUP;
        groups.set(Fields::IO, self.io.is_some());
        Record {
            identity: Identity {
                start_ns: self.start_ns,
                tgid: self.pid,
                ppid: self.ppid.unwrap_or(0),
                tpgid: -1,
                flags: self.flags,
                exit_code: self.status.unwrap_or(0),
                masked: self.status.is_none().into(),
                state_bits: State::Dead.bits(),
                groups: groups.bits(),
                comm: self.comm,
                ..Identity::default()
            },
            cpu: Cpu {
                utime_ns: self.utime_ns,
                stime_ns: self.stime_ns,
                gtime_ns: self.gtime_ns,
                sum_exec_ns: self.sum_exec_ns,
                run_delay_ns: self.run_delay_ns.unwrap_or(u64::MAX),
                timeslices: self.timeslices.unwrap_or(u64::MAX),
                minflt: self.minflt,
                majflt: self.majflt,
                nvcsw: self.nvcsw,
                nivcsw: self.nivcsw,
                cutime_ns: self.cutime_ns,
                cstime_ns: self.cstime_ns,
                cgtime_ns: self.cgtime_ns,
                cminflt: self.cminflt,
                cmajflt: self.cmajflt,
                sampled_utime_ns: self.utime_ns,
                sampled_stime_ns: self.stime_ns,
                prev_utime_ns: self.utime_ns,
                prev_stime_ns: self.stime_ns,
            },
            io: self.io.unwrap_or_default(),
            cgroup: Cgroup { id: self.cgroup_id },
            ..Record::default()
        }
    }

    /// How long it lived. `None` if the end is unknown.
    pub fn lifetime(&self) -> Option<Duration> {
        let end_ns = self.end_ns?;
        Some(Duration::from_nanos(end_ns.saturating_sub(self.start_ns)))
    }
}

impl ExitRecord {
    /// The exit as the service sends it. `line_at` is the place of its command line among those of all exits.
    pub fn new(exit: &Exit, number: u64, line: Option<Cmdline<'_>>, line_at: u32) -> Self {
        let bits = [
            (EXIT_FINAL, exit.is_final),
            (EXIT_PPID, exit.ppid.is_some()),
            (EXIT_STATUS, exit.status.is_some()),
            (EXIT_IO, exit.io.is_some()),
            (EXIT_CUT, line.is_some_and(|line| line.cut)),
        ];
        let known = bits.iter().filter(|(_, is_set)| *is_set);
        Self {
            number,
            start_ns: exit.start_ns,
            end_ns: exit.end_ns.unwrap_or(0),
            utime_ns: exit.utime_ns,
            stime_ns: exit.stime_ns,
            gtime_ns: exit.gtime_ns,
            sum_exec_ns: exit.sum_exec_ns,
            run_delay_ns: exit.run_delay_ns.unwrap_or(u64::MAX),
            timeslices: exit.timeslices.unwrap_or(u64::MAX),
            cutime_ns: exit.cutime_ns,
            cstime_ns: exit.cstime_ns,
            cgtime_ns: exit.cgtime_ns,
            cminflt: exit.cminflt,
            cmajflt: exit.cmajflt,
            minflt: exit.minflt,
            majflt: exit.majflt,
            nvcsw: exit.nvcsw,
            nivcsw: exit.nivcsw,
            peak_rss: exit.peak_rss,
            cgroup_id: exit.cgroup_id,
            io: exit.io.unwrap_or_default(),
            known: known.fold(0, |bits, (bit, _)| bits | bit),
            pid: exit.pid,
            ppid: exit.ppid.unwrap_or(0),
            flags: exit.flags,
            uid: exit.uid,
            euid: exit.euid,
            gid: exit.gid,
            egid: exit.egid,
            status: exit.status.unwrap_or(0),
            line_at,
            line_bytes: line.map_or(0, |line| line.bytes.len() as u32),
            reserved: 0,
            comm: exit.comm,
        }
    }

    /// The exit of a record that a service sent, or that was recorded. It lacks the values that only the recording
    /// process knows.
    pub fn to_exit(&self) -> Exit {
        let is_known = |bit| self.known & bit != 0;
        Exit {
            pid: self.pid,
            tid: self.pid,
            ppid: is_known(EXIT_PPID).then_some(self.ppid),
            has_program_of_parent: None,
            start_ns: self.start_ns,
            end_ns: (self.end_ns != 0).then_some(self.end_ns),
            is_final: is_known(EXIT_FINAL),
            comm: self.comm,
            uid: self.uid,
            euid: self.euid,
            gid: self.gid,
            egid: self.egid,
            cgroup_id: self.cgroup_id,
            status: is_known(EXIT_STATUS).then_some(self.status),
            flags: self.flags,
            utime_ns: self.utime_ns,
            stime_ns: self.stime_ns,
            gtime_ns: self.gtime_ns,
            sum_exec_ns: self.sum_exec_ns,
            run_delay_ns: self.run_delay_ns(),
            timeslices: self.timeslices(),
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
            io: is_known(EXIT_IO).then_some(self.io),
            owner: Owner::default(),
            dumpable: None,
            program: Program::default(),
            line: Line {
                at: self.line_at,
                len: self.line_bytes,
                cut: is_known(EXIT_CUT),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::Io;

    #[test]
    fn an_exit_arrives_as_it_was_sent() {
        let whole = Exit {
            pid: 7,
            tid: 7,
            ppid: Some(1),
            has_program_of_parent: None,
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
            run_delay_ns: Some(26),
            timeslices: Some(27),
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
            dumpable: None,
            program: Program::default(),
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
            run_delay_ns: None,
            timeslices: None,
            status: None,
            io: None,
            line: Line::default(),
            ..whole
        };
        let line = Cmdline {
            bytes: b"abc",
            cut: true,
        };
        let sent = ExitRecord::new(&whole, 1, Some(line), 2);
        assert_eq!(sent.to_exit(), whole);
        let sent = ExitRecord::new(&nothing, 1, None, 0);
        assert_eq!(sent.to_exit(), nothing);
    }
}
