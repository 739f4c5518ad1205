//! Compares records with the kernel's own text, to find out facts that are not in the type information.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

use crate::{
    base::{error::Error, proc_root},
    records::{
        fields::Fields,
        name::{Name, until_nul},
        record::{NAME_FULL, NAME_LEN, NAME_WORKER, Record, WORKER_BUSY, WORKER_POOL},
    },
    snapshot::calibration::Calibration,
    source::{bpf::Bpf, procfs::Procfs},
};

/// How many processes to compare: enough to be sure, few enough to be cheap. All give the same answer, except one that
/// changes between the walk and the reading of its text.
const SAMPLE: usize = 16;

/// Compares one walk with the text. It is the last one.
pub(crate) fn calibrate(
    bpf: &mut Bpf,
    procfs: &mut Procfs,
    fields: Fields,
) -> Result<Calibration, Error> {
    let mut calibration = Calibration::default();
    if fields.contains(Fields::MEMORY_DETAILS) {
        calibration.thp_disable_bit = thp_disable_bit(bpf)?;
        // Processes that the walk misses are read from the text, and must use the same bit.
        procfs.set_thp_disable_bit(calibration.thp_disable_bit);
    }
    compare_own(bpf, procfs, fields)?;
    let records = bpf.table().records;
    calibration.workers_by_comm = workers_by_comm(records, procfs)?;
    if fields.contains(Fields::MEMORY) {
        calibration.exact_rss = exact_rss(records, procfs)?;
        if calibration.exact_rss == Some(false) {
            bpf.set_exact_rss(false);
        }
    }
    calibration.thread_features = fields.contains(Fields::CREDENTIALS) && bpf.has_thread_features();
    Ok(calibration)
}

/// Reads one process from the text. `None`: it has exited.
fn text_of(procfs: &mut Procfs, pid: u32) -> Result<Option<Record>, Error> {
    let mut record = Record::default();
    let alive = procfs.read_one(pid, &mut record, &mut Vec::new(), &mut vec![0])?;
    Ok(alive.then_some(record))
}

/// Walks before a difference is reported: memory and CPU time of a process with other threads change all the time.
const WALKS: usize = 16;

/// A value of this process. If there are two ways to count it, the kernel's text uses one of them. `walked` has the
/// least and the most that walks found by each.
struct Own {
    value: &'static str,
    walked: [[u64; 2]; 2],
}

/// Refuses records if they contradict what the kernel itself says about this process: then a value is not where the
/// programs read it, and they cannot notice.
fn compare_own(bpf: &mut Bpf, procfs: &mut Procfs, fields: Fields) -> Result<(), Error> {
    let mut seen: Vec<Own> = Vec::new();
    let mut differs = None;
    for _ in 0..WALKS {
        let before_ns = cpu_time_ns();
        let Some(record) = own_record(bpf)? else {
            continue;
        };
        let Some(text) = text_of(procfs, record.identity.tgid)? else {
            return Ok(());
        };
        let after_ns = cpu_time_ns();
        for (value, walked) in own_values(&record, fields) {
            match seen.iter_mut().find(|own| own.value == value) {
                Some(own) => {
                    for (range, walked) in own.walked.iter_mut().zip(walked) {
                        *range = [range[0].min(walked), range[1].max(walked)];
                    }
                }
                None => seen.push(Own {
                    value,
                    walked: walked.map(|walked| [walked; 2]),
                }),
            }
        }
        differs = seen.iter().find_map(|own| {
            // The kernel's value may be from any time between the first walk and the last.
            let said = match own.value {
                CPU_TIME => [[before_ns, after_ns]; 2],
                other => {
                    let own = own_values(&text, fields);
                    own.into_iter()
                        .find(|(value, _)| *value == other)
                        .map(|(_, said)| said.map(|said| [said; 2]))?
                }
            };
            let mut both = own.walked.iter().zip(said);
            let agrees = both.any(|(walked, said)| walked[0] <= said[1] && said[0] <= walked[1]);
            (!agrees).then_some(Error::Differs {
                value: own.value,
                records: own.walked[0][1],
                kernel: said[0][0],
            })
        });
        if differs.is_none() {
            return Ok(());
        }
    }
    differs.map_or(Ok(()), Err)
}

const CPU_TIME: &str = "CPU time";

/// The values to compare, each counted in both ways.
fn own_values(record: &Record, fields: Fields) -> Vec<(&'static str, [u64; 2])> {
    let mut values = Vec::new();
    if fields.contains(Fields::MEMORY) {
        // Kernels differ in which of the two the text shows.
        let both = [record.memory.rss(), record.memory.rss_approx];
        values.push(("resident set", both));
        values.push(("virtual size", [record.memory.vsize; 2]));
    }
    let identity = &record.identity;
    if fields.contains(Fields::CPU) && identity.seen_threads == identity.num_threads {
        values.push((CPU_TIME, [record.cpu.sum_exec_ns; 2]));
    }
    if fields.contains(Fields::USERS) {
        let users = &record.users;
        for (name, id) in [
            ("real user", users.uid),
            ("effective user", users.euid),
            ("saved user", users.suid),
            ("user for access to files", users.fsuid),
            ("real group", users.gid),
            ("effective group", users.egid),
            ("saved group", users.sgid),
            ("group for access to files", users.fsgid),
        ] {
            values.push((name, [id.into(); 2]));
        }
    }
    if fields.contains(Fields::CREDENTIALS) {
        let credentials = &record.credentials;
        for (name, set) in [
            ("inheritable capabilities", credentials.cap_inheritable),
            ("permitted capabilities", credentials.cap_permitted),
            ("effective capabilities", credentials.cap_effective),
            ("bounding set of capabilities", credentials.cap_bounding),
            ("ambient capabilities", credentials.cap_ambient),
            ("seccomp mode", credentials.seccomp_mode.into()),
            ("number of supplementary groups", credentials.ngroups.into()),
        ] {
            values.push((name, [set; 2]));
        }
    }
    values
}

/// The CPU time of all threads of this process. The call makes the kernel add what this thread has used until now.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The record of this process, if it is whole.
fn own_record(bpf: &mut Bpf) -> Result<Option<Record>, Error> {
    // The /proc of an outer pid namespace shows this process under another pid.
    let own = proc_root::own_pid().unwrap_or_else(std::process::id);
    let table = bpf.collect()?;
    let mut records = table.records.iter();
    let record = records.find(|record| record.identity.tgid == own);
    let Some(mut record) = record.filter(|record| record.identity.torn == 0).copied() else {
        return Ok(None);
    };
    if record.identity.seen_threads < record.identity.num_threads {
        // A walk by the iterator does not add threads to their processes.
        let threads = table.threads.iter();
        for thread in threads.filter(|thread| thread.tgid == own && thread.tid != own) {
            record.identity.seen_threads += 1;
            record.cpu.sum_exec_ns += thread.sum_exec_ns;
        }
    }
    Ok(Some(record))
}

fn exact_rss(records: &[Record], procfs: &mut Procfs) -> Result<Option<bool>, Error> {
    let differ = records.iter().filter(|record| {
        record.identity.torn == 0
            && record.identity.has_mm == 1
            && record.memory.rss() != record.memory.rss_approx
    });
    let (mut exact, mut approximate) = (0, 0);
    for record in differ.take(SAMPLE) {
        let Some(text) = text_of(procfs, record.identity.tgid)? else {
            continue;
        };
        if text.memory.rss() == record.memory.rss() {
            exact += 1;
        } else if text.memory.rss() == record.memory.rss_approx {
            approximate += 1;
        }
    }
    Ok(if exact + approximate == 0 {
        None
    } else {
        Some(exact >= approximate)
    })
}

/// Disables huge pages for this process during a walk, and returns the bit that changes.
fn thp_disable_bit(bpf: &mut Bpf) -> Result<Option<u32>, Error> {
    let flags = |bpf: &mut Bpf| -> Result<Option<u64>, Error> {
        Ok(own_record(bpf)?.map(|record| record.memory_details.mm_flags))
    };
    // A kernel without huge pages lacks both the switch and the line in status.
    let Ok(disabled) = transparent_huge_pages_are_disabled() else {
        return Ok(None);
    };
    let before = flags(bpf)?;
    if disable_transparent_huge_pages(!disabled).is_err() {
        return Ok(None);
    }
    let after = flags(bpf);
    let restored = disable_transparent_huge_pages(disabled);
    let (Some(before), Some(after), Ok(())) = (before, after?, restored) else {
        return Ok(None);
    };
    let changed = before ^ after;
    Ok(changed.is_power_of_two().then(|| changed.trailing_zeros()))
}

fn workers_by_comm(records: &[Record], procfs: &mut Procfs) -> Result<bool, Error> {
    let (mut by_id, mut by_comm) = (0, 0);
    for record in records
        .iter()
        .filter(|record| record.name.kind == NAME_WORKER)
    {
        let (id, comm) = (Name::from_record(record), worker_by_comm(record));
        if id == comm {
            continue;
        }
        let Some(text) = text_of(procfs, record.identity.tgid)? else {
            continue;
        };
        let text = Name::from_record(&text);
        by_id += usize::from(text == id);
        by_comm += usize::from(text == comm);
        if by_id + by_comm >= SAMPLE {
            break;
        }
    }
    Ok(by_comm > by_id)
}

/// `wq_worker_comm()` before 6.11: the thread's own name, then the description of its work.
fn worker_by_comm(record: &Record) -> Name {
    let parts = &record.name;
    let mut name = Name::new(until_nul(&record.identity.comm));
    let description = until_nul(&parts.text[..NAME_LEN / 2]);
    // A rescuer keeps the description of its last work, but shows it only while it works.
    if parts.worker_flags & WORKER_POOL != 0 && !description.is_empty() {
        name.push(if parts.worker_flags & WORKER_BUSY != 0 {
            b"+"
        } else {
            b"-"
        });
        name.push(description);
    }
    name
}

/// Rewrites the names of all workers in this older form.
pub(crate) fn name_workers_by_comm(records: &mut [Record]) {
    for record in records
        .iter_mut()
        .filter(|record| record.name.kind == NAME_WORKER)
    {
        let name = worker_by_comm(record);
        record.name.text = [0; NAME_LEN];
        record.name.text[..name.len()].copy_from_slice(&name);
        record.name.kind = NAME_FULL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_worker_shows_its_work_only_in_a_pool() {
        let mut record = Record::default();
        record.identity.comm[..6].copy_from_slice(b"rcu_gp");
        record.name.text[..6].copy_from_slice(b"rcu_gp");
        assert_eq!(&*worker_by_comm(&record), b"rcu_gp");
        record.name.worker_flags = WORKER_POOL;
        assert_eq!(&*worker_by_comm(&record), b"rcu_gp-rcu_gp");
        record.name.worker_flags = WORKER_POOL | WORKER_BUSY;
        assert_eq!(&*worker_by_comm(&record), b"rcu_gp+rcu_gp");
    }
}
