//! A frame: a snapshot, the machine, and texts.

use std::{collections::HashMap, time::Duration};

use fastproc::{
    Plain, Snapshot, SnapshotStats, SourceKind, Table,
    exits::Exit,
    record::{ExitRecord, Record, ThreadRecord},
    words, words_mut,
};

use super::{
    Error,
    coding::{Input, put, put_difference, put_words},
};
use crate::machine::{Cpu, GAUGES, Machine, Times};

/// The largest snapshot that is read, in bytes: a malicious file may request any size.
const LARGEST: usize = 1 << 30;
/// The longest text.
const LONGEST_TEXT: usize = 128 * 1024;
/// More CPUs than Linux can have.
const MOST_CPUS: usize = 1 << 16;

/// The owner of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The command line of a process, by pid and start time.
    Cmdline(u32, u64),
    /// The path of a cgroup, by its id.
    Cgroup(u64),
    /// The name of a user.
    User(u32),
    /// The name of a group.
    Group(u32),
    /// The limits of a process, by pid and start time: the lines of `/proc/PID/limits`.
    Limits(u32, u64),
    /// The open files of a process: for each a line with its number and its target.
    Files(u32, u64),
    /// The container of a cgroup, by the id of the cgroup: its id, name, pod, namespace and image, each terminated by
    /// NUL.
    Container(u64),
}

/// Texts by owner.
pub type Texts = Vec<(Key, Vec<u8>)>;

/// A snapshot and what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// When reading it began, in nanoseconds after boot.
    pub began_ns: u64,
    /// How long reading it took.
    pub read_for_ns: u64,
    /// The processes, by pid.
    pub records: Vec<Record>,
    /// Their threads.
    pub threads: Vec<ThreadRecord>,
    /// Words to which records point.
    pub pool: Vec<u64>,
    /// Exits since the frame before. `None`: unknown.
    pub exits: Option<Vec<Exit>>,
    /// Exits that were lost.
    pub lost_exits: u64,
    /// The machine.
    pub machine: Machine,
    /// Texts that the block did not have before.
    pub texts: Texts,
}

impl Frame {
    /// The snapshot.
    pub fn snapshot(&self) -> Snapshot<'_> {
        let table = Table {
            records: &self.records,
            threads: &self.threads,
            pool: &self.pool,
        };
        // The recorder has already hidden what it may not see.
        let read_for = Duration::from_nanos(self.read_for_ns);
        let stats = SnapshotStats::recorded(SourceKind::Procfs, self.began_ns, read_for);
        let snapshot = Snapshot::recorded(table, stats);
        match &self.exits {
            Some(exits) => snapshot.with_exits(exits, self.lost_exits),
            None => snapshot,
        }
    }

    /// Fills the frame with a snapshot.
    pub fn fill(&mut self, snapshot: &Snapshot<'_>, machine: &Machine) {
        let stats = snapshot.stats();
        self.began_ns = stats.kernel_boottime_ns();
        self.read_for_ns = stats.read_for.as_nanos() as u64;
        let pools = snapshot.pools();
        self.pool.clear();
        self.pool.extend_from_slice(pools.own);
        self.pool.extend_from_slice(pools.from_text);
        self.records.clear();
        for process in snapshot.iter() {
            let mut record = *process.record();
            if !std::ptr::eq(process.pool(), pools.own) {
                record.move_in_pool(pools.own.len() as u32);
            }
            self.records.push(record);
        }
        self.threads.clear();
        self.threads.extend(snapshot.threads().copied());
        match (&mut self.exits, snapshot.exits()) {
            (Some(exits), Some(now)) => {
                exits.clear();
                exits.extend_from_slice(now);
            }
            (exits, now) => *exits = now.map(<[Exit]>::to_vec),
        }
        self.lost_exits = stats.lost_exits;
        self.machine.clone_from(machine);
        self.texts.clear();
    }

    /// Appends the frame as differences to another one.
    pub fn write(&self, before: &Self, to: &mut Vec<u8>) {
        put(self.texts.len() as u64, to);
        for (key, text) in &self.texts {
            let numbers = match *key {
                Key::Cmdline(pid, start_ns) => [0, pid.into(), start_ns],
                Key::Cgroup(id) => [1, id, 0],
                Key::User(id) => [2, id.into(), 0],
                Key::Group(id) => [3, id.into(), 0],
                Key::Limits(pid, start_ns) => [4, pid.into(), start_ns],
                Key::Files(pid, start_ns) => [5, pid.into(), start_ns],
                Key::Container(id) => [6, id, 0],
            };
            for number in numbers {
                put(number, to);
            }
            let text = &text[..text.len().min(LONGEST_TEXT)];
            put(text.len() as u64, to);
            to.extend_from_slice(text);
        }
        put_difference(self.began_ns, before.began_ns, to);
        put(self.read_for_ns, to);
        write_machine(&self.machine, &before.machine, to);
        put(self.records.len() as u64, to);
        let nothing = zeros();
        let (mut last, mut at) = (0, 0);
        for record in &self.records {
            let pid = record.identity.tgid;
            put(u64::from(pid.wrapping_sub(last)), to);
            last = pid;
            let base = find_from(&before.records, &mut at, pid);
            put_words(words(record), words(base.unwrap_or(&nothing)), to);
        }
        put(self.threads.len() as u64, to);
        let nothing = zeros();
        let bases = by_tid(&before.threads);
        for thread in &self.threads {
            put(thread.tid.into(), to);
            let base = bases.get(&thread.tid).map(|&at| &before.threads[at]);
            put_words(words(thread), words(base.unwrap_or(&nothing)), to);
        }
        put(self.pool.len() as u64, to);
        let mut base = before.pool.clone();
        base.resize(self.pool.len(), 0);
        put_words(&self.pool, &base, to);
        self.write_exits(to);
    }

    /// Appends the number of exits plus one; 0: unknown.
    fn write_exits(&self, to: &mut Vec<u8>) {
        let Some(exits) = &self.exits else {
            return put(0, to);
        };
        put(exits.len() as u64 + 1, to);
        put(self.lost_exits, to);
        let nothing: ExitRecord = zeros();
        for exit in exits {
            let record = ExitRecord::new(exit, 0, None, 0);
            put_words(words(&record), words(&nothing), to);
        }
    }

    /// Changes this frame to the one that follows it.
    pub fn read(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        self.texts.clear();
        for _ in 0..input.count()? {
            let (kind, number, start_ns) = (input.byte()?, input.number()?, input.number()?);
            let key = match kind {
                0 => Key::Cmdline(number as u32, start_ns),
                1 => Key::Cgroup(number),
                2 => Key::User(number as u32),
                3 => Key::Group(number as u32),
                4 => Key::Limits(number as u32, start_ns),
                5 => Key::Files(number as u32, start_ns),
                6 => Key::Container(number),
                _ => return Err(Error::Damaged("a text is of no kind")),
            };
            let length = input.number()?;
            if length > LONGEST_TEXT as u64 {
                return Err(Error::Damaged("a text is too long"));
            }
            self.texts.push((key, input.bytes(length)?.to_vec()));
        }
        self.began_ns = input.difference(self.began_ns)?;
        self.read_for_ns = input.number()?;
        read_machine(&mut self.machine, input)?;
        self.read_processes(input)?;
        self.read_threads(input)?;
        let words = input.small()? as usize;
        check(words, size_of::<u64>())?;
        self.pool.resize(words, 0);
        input.words(&mut self.pool)?;
        self.read_exits(input)
    }

    fn read_processes(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        let count = input.count()?;
        check(count, size_of::<Record>())?;
        let before = std::mem::take(&mut self.records);
        let (mut last, mut at) = (0_u32, 0);
        for i in 0..count {
            let gap = input.small()?;
            let pid = last.checked_add(gap).filter(|_| i == 0 || gap > 0);
            last = pid.ok_or(Error::Damaged("processes are not in order"))?;
            let base = find_from(&before, &mut at, last);
            let mut record = base.copied().unwrap_or_else(zeros);
            input.words(words_mut(&mut record))?;
            // Readers search by this id, so it must match.
            if record.identity.tgid != last {
                return Err(Error::Damaged("a process has two ids"));
            }
            self.records.push(record);
        }
        Ok(())
    }

    fn read_threads(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        let count = input.count()?;
        check(count, size_of::<ThreadRecord>())?;
        let before = std::mem::take(&mut self.threads);
        let bases = by_tid(&before);
        for _ in 0..count {
            let tid = input.small()?;
            let base = bases.get(&tid).map(|&at| before[at]);
            let mut thread = base.unwrap_or_else(zeros);
            input.words(words_mut(&mut thread))?;
            if thread.tid != tid {
                return Err(Error::Damaged("a thread has two ids"));
            }
            self.threads.push(thread);
        }
        Ok(())
    }

    fn read_exits(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        let count = input.count()?;
        (self.exits, self.lost_exits) = (None, 0);
        let Some(count) = count.checked_sub(1) else {
            return Ok(());
        };
        check(count, size_of::<Exit>())?;
        self.lost_exits = input.number()?;
        let mut exits = Vec::new();
        for _ in 0..count {
            let mut record: ExitRecord = zeros();
            input.words(words_mut(&mut record))?;
            exits.push(record.to_exit());
        }
        self.exits = Some(exits);
        Ok(())
    }
}

/// A record without one before it is stored as the differences to zeros.
fn zeros<T: Default + Plain>() -> T {
    let mut record = T::default();
    words_mut(&mut record).fill(0);
    record
}

fn check(count: usize, size: usize) -> Result<(), Error> {
    if count > LARGEST / size {
        return Err(Error::Damaged("a snapshot is too large"));
    }
    Ok(())
}

/// The record with this pid, at or after a place; the caller searches for increasing pids.
fn find_from<'a>(records: &'a [Record], at: &mut usize, pid: u32) -> Option<&'a Record> {
    let rest = records.get(*at..).unwrap_or_default();
    *at += rest
        .iter()
        .take_while(|record| record.identity.tgid < pid)
        .count();
    records
        .get(*at)
        .filter(|record| record.identity.tgid == pid)
}

fn by_tid(threads: &[ThreadRecord]) -> HashMap<u32, usize> {
    let places = threads.iter().enumerate();
    places.map(|(at, thread)| (thread.tid, at)).collect()
}

fn write_machine(now: &Machine, before: &Machine, to: &mut Vec<u8>) {
    let known = now.values().iter().enumerate();
    let known = known.fold(0, |bits, (i, value)| bits | u64::from(value.is_some()) << i);
    put(known, to);
    for (now, before) in now.values().iter().zip(before.values()) {
        if let Some(now) = now {
            put_difference(*now, before.unwrap_or(0), to);
        }
    }
    put_words(&now.total, &before.total, to);
    put(now.cpus.len() as u64, to);
    for (i, cpu) in now.cpus.iter().enumerate() {
        put(cpu.id.into(), to);
        let before = before.cpus.get(i).map_or(Times::default(), |cpu| cpu.times);
        put_words(&cpu.times, &before, to);
    }
}

fn read_machine(machine: &mut Machine, input: &mut Input<'_>) -> Result<(), Error> {
    let known = input.number()?;
    // A later version with more numbers uses another version of the format.
    if known >> GAUGES != 0 {
        return Err(Error::Damaged("a number of the machine is not known"));
    }
    for (i, value) in machine.values_mut().iter_mut().enumerate() {
        *value = match known >> i & 1 {
            0 => None,
            _ => Some(input.difference(value.unwrap_or(0))?),
        };
    }
    input.words(&mut machine.total)?;
    let count = input.count()?;
    if count > MOST_CPUS {
        return Err(Error::Damaged("there are too many CPUs"));
    }
    machine.cpus.resize(count, Cpu::default());
    for cpu in &mut machine.cpus {
        cpu.id = input.small()?;
        input.words(&mut cpu.times)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(pids: &[(u32, u64)], cpus: u32) -> Frame {
        let mut frame = Frame::default();
        for &(pid, time) in pids {
            let mut record = Record::default();
            record.identity.tgid = pid;
            record.cpu.utime_ns = time;
            frame.records.push(record);
            let mut thread = ThreadRecord::default();
            (thread.tid, thread.tgid, thread.utime_ns) = (pid, pid, time);
            frame.threads.push(thread);
            frame.pool.push(time);
        }
        frame.machine.cpus = (0..cpus)
            .map(|id| Cpu {
                id,
                times: [u64::from(id); 10],
            })
            .collect();
        frame.machine.values_mut()[3] = Some(7);
        frame.exits = (cpus > 1).then(|| {
            let exit = |&(pid, time): &(u32, u64)| {
                let mut record = ExitRecord::default();
                (record.pid, record.utime_ns) = (pid, time);
                record.to_exit()
            };
            pids.iter().map(exit).collect()
        });
        frame.lost_exits = if cpus > 1 { 3 } else { 0 };
        frame.texts.push((Key::Cmdline(1, 2), b"a\0b".to_vec()));
        frame.texts.push((Key::Cgroup(u64::MAX), b"/".to_vec()));
        frame
            .texts
            .push((Key::Container(7), b"1f\0web\0\0\0\0".to_vec()));
        frame
    }

    fn same(a: &Frame, b: &Frame) -> bool {
        format!("{a:?}") == format!("{b:?}")
    }

    #[test]
    fn frames_come_back() {
        let frames = [
            frame(&[(1, 5), (2, 6), (9, 7)], 2),
            frame(&[(2, 8), (3, 1), (9, 7), (4_000_000_000, u64::MAX)], 3),
            frame(&[], 0),
            frame(&[(7, 0)], 1),
        ];
        let (mut bytes, mut before) = (Vec::new(), &Frame::default());
        for frame in &frames {
            frame.write(before, &mut bytes);
            before = frame;
        }
        let mut input = Input(&bytes);
        let mut read = Frame::default();
        for frame in &frames {
            read.read(&mut input).expect("what was written");
            assert!(same(&read, frame), "{read:?}\n{frame:?}");
        }
        assert!(input.0.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..200, flip in 0_usize..200) {
            let mut read = Frame::default();
            let _ = read.read(&mut Input(&bytes));
            let mut whole = Vec::new();
            frame(&[(1, 5), (2, 6), (9, 7)], 2).write(&Frame::default(), &mut whole);
            let cut = cut % whole.len();
            prop_assert!(Frame::default().read(&mut Input(&whole[..cut])).is_err());
            let flip = flip % whole.len();
            whole[flip] ^= bytes.first().copied().unwrap_or(1);
            let _ = Frame::default().read(&mut Input(&whole));
        }
    }
}
