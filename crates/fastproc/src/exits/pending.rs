//! Makes exits from the kernel's events, and keeps processes that have ended but are not released yet.

use std::{
    collections::HashMap,
    mem::offset_of,
    time::{Duration, Instant},
};

use super::{Event, Exec, layout};
use crate::snapshot::exit::{Exit, Line, Owner, Program};
use crate::{
    base::{plain::read, proc_root},
    records::{name::until_nul, record::Io},
    rules::cputime::{CpuTime, cputime_adjust},
    snapshot::cmdline::Cmdline,
};

/// How often to search for processes that were released without a record.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The kernel releases a process some milliseconds after it has left `/proc`, and later on a busy machine.
const RECORD_AFTER: Duration = Duration::from_secs(5);
/// No record arrives later than this.
const RECORD_NEVER: Duration = Duration::from_secs(120);

/// Processes whose last thread has exited and that are not released yet: as many as there are zombies. A pid may be
/// reused before the last record of its process arrives, so the start time is part of the key.
#[derive(Debug, Default)]
pub(super) struct Pending {
    ended: HashMap<Key, Ended>,
    looked: Option<Instant>,
}

/// Pid and start time.
type Key = (u32, u64);

#[derive(Clone, Copy, Debug)]
struct Ended {
    exit: Exit,
    read: Instant,
    /// It was reported without its last record. If that record arrives after all, ignore it.
    given_up: bool,
}

impl Pending {
    /// Calls `each` for one record of the ring buffer.
    pub(super) fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(Event<'_>)) -> Option<()> {
        let event: layout::Event = read(bytes)?;
        match event.kind {
            layout::ENDED => {
                let exit = exit_of(&read(bytes)?);
                // Two threads that end at once may both be taken for the last. The first of the
                // two counts, but either may have found the fork.
                let ended = self.ended.entry(key_of(&exit)).or_insert_with(|| Ended {
                    exit,
                    read: Instant::now(),
                    given_up: false,
                });
                if ended.exit.program.exec_id == 0 {
                    take_program(&mut ended.exit, &exit);
                }
            }
            layout::EXIT => {
                let mut exit = exit_of(&read(bytes)?);
                exit.is_final = true;
                if let Some(ended) = self.ended.remove(&key_of(&exit)) {
                    if ended.given_up {
                        return None;
                    }
                    (exit.end_ns, exit.ppid) = (ended.exit.end_ns, ended.exit.ppid);
                    exit.dumpable = ended.exit.dumpable.or(exit.dumpable);
                    // A thread that is released on its CPU runs on a little, and then it seems that it was not the only one.
                    exit.run_delay_ns = exit.run_delay_ns.or(ended.exit.run_delay_ns);
                    exit.timeslices = exit.timeslices.or(ended.exit.timeslices);
                    take_program(&mut exit, &ended.exit);
                }
                each(Event::Exit(exit));
            }
            layout::THREAD => {
                let mut exit = exit_of(&read(bytes)?);
                exit.is_final = true;
                each(Event::ThreadExit(exit));
            }
            layout::EXEC => {
                let exec: layout::Exec = read(bytes)?;
                let after = |start: usize, len: usize| bytes.get(start..start + len);
                let arguments = after(size_of::<layout::Exec>(), exec.arguments_read as usize)?;
                each(Event::Exec(Exec {
                    pid: event.tgid,
                    ppid: exec.ppid,
                    start_ns: event.start_ns,
                    at_ns: exec.at_ns,
                    uid: exec.owner.users.uid,
                    euid: exec.owner.users.euid,
                    flags: exec.flags,
                    cgroup_id: exec.cgroup_id,
                    comm: until_nul(after(offset_of!(layout::Exec, comm), exec.comm.len())?),
                    path: until_nul(after(offset_of!(layout::Exec, path), exec.path.len())?),
                    cmdline: (!arguments.is_empty()).then_some(Cmdline {
                        bytes: arguments,
                        cut: exec.arguments_read < exec.arguments_bytes,
                    }),
                    number: exec.exec_id,
                    owner: owner_of(&exec.owner),
                }));
            }
            _ => {}
        }
        Some(())
    }

    /// Processes that have ended, and may still get their last record.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Exit> {
        let ended = self.ended.values().filter(|ended| !ended.given_up);
        ended.map(|ended| &ended.exit)
    }

    /// Reports processes that were released without a record, with the values at their end: the ring had no
    /// room for the record, or the kernel did not run the program.
    pub(super) fn give_up(&mut self, each: &mut impl FnMut(Event<'_>)) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        self.ended.retain(|_, ended| {
            let age = ended.read.elapsed();
            if !ended.given_up && age >= RECORD_AFTER && !is_there(&ended.exit) {
                ended.given_up = true;
                each(Event::Exit(ended.exit));
            }
            !ended.given_up || age < RECORD_NEVER
        });
    }
}

fn take_program(to: &mut Exit, from: &Exit) {
    (to.program, to.has_program_of_parent) = (from.program, from.has_program_of_parent);
}

fn key_of(exit: &Exit) -> Key {
    (exit.pid, exit.start_ns)
}

/// Whether the process is not released yet: a process with its pid is exiting or a zombie. A new process with the
/// same pid is neither, as a rule; if it is, the check is repeated later.
fn is_there(exit: &Exit) -> bool {
    let stat = std::fs::read(proc_root::path(&format!("/proc/{}/stat", exit.pid)));
    stat.is_ok_and(|stat| is_ending(&stat).unwrap_or(true))
}

/// Whether this `stat` is of an exiting process: its kernel flags are the seventh field after the name.
fn is_ending(stat: &[u8]) -> Option<bool> {
    const PF_EXITING: u32 = 0x4;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let flags = stat.get(end + 2..)?.split(|&byte| byte == b' ').nth(6)?;
    let flags: u32 = std::str::from_utf8(flags).ok()?.parse().ok()?;
    Some(flags & PF_EXITING != 0)
}

fn owner_of(owner: &layout::Owner) -> Owner {
    Owner {
        users: owner.users,
        user_ns: owner.user_ns,
        cap_permitted: owner.cap_permitted,
    }
}

/// A value of the event that has all bits set if it is unknown.
fn known(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

fn exit_of(exit: &layout::Exit) -> Exit {
    let sampled = CpuTime {
        utime_ns: exit.sampled_utime_ns,
        stime_ns: exit.sampled_stime_ns,
    };
    let shown = CpuTime {
        utime_ns: exit.prev_utime_ns,
        stime_ns: exit.prev_stime_ns,
    };
    let time = cputime_adjust(exit.sum_exec_ns, sampled, shown);
    let ended = exit.end_ns != 0;
    let program = Program {
        pid: exit.program.tgid,
        start_ns: exit.program.start_ns,
        exec_id: exit.program.exec_id,
    };
    Exit {
        pid: exit.event.tgid,
        tid: exit.tid,
        ppid: ended.then_some(exit.ppid),
        has_program_of_parent: (ended && program.exec_id != 0).then_some(exit.as_parent != 0),
        start_ns: exit.event.start_ns,
        end_ns: ended.then_some(exit.end_ns),
        is_final: false,
        comm: exit.comm,
        uid: exit.owner.users.uid,
        euid: exit.owner.users.euid,
        gid: exit.owner.users.gid,
        egid: exit.owner.users.egid,
        cgroup_id: exit.cgroup_id,
        status: Some(exit.status),
        flags: exit.flags,
        utime_ns: time.utime_ns,
        stime_ns: time.stime_ns,
        gtime_ns: exit.gtime_ns,
        sum_exec_ns: exit.sum_exec_ns,
        run_delay_ns: known(exit.run_delay_ns),
        timeslices: known(exit.timeslices),
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
        io: Some(Io {
            rchar: exit.rchar,
            wchar: exit.wchar,
            syscr: exit.syscr,
            syscw: exit.syscw,
            read_bytes: exit.read_bytes,
            write_bytes: exit.write_bytes,
            cancelled_write_bytes: exit.cancelled_write_bytes,
        }),
        owner: owner_of(&exit.owner),
        dumpable: match exit.dumpable {
            layout::DUMPABLE_YES => Some(true),
            layout::DUMPABLE_NO => Some(false),
            _ => None,
        },
        program,
        line: Line::default(),
    }
}

#[cfg(test)]
mod tests;
