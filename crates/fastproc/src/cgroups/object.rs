//! The BPF source: the walk, and its maps as memory.

use std::{
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::thread::{CapabilitySet, sched_yield};

use super::{
    error::Error,
    fields::Fields,
    record::{Device, Record, STAT_SLOTS},
    stat::Lengths,
};
use crate::{
    base::{
        error,
        host::{boottime_ns, jiffy, possible_cpus},
    },
    kernel::{KernelTypes, Loader, Mapping, ObjectFile, Wanted, object_file, run, support},
};

/// Data that the program and the library exchange besides records.
pub(crate) mod layout {
    #![allow(dead_code, reason = "some members are for the program alone")]
    include!(concat!(env!("OUT_DIR"), "/cgroup_run.rs"));
}

use layout::{Run, Settings};

pub(crate) static OBJECT: ObjectFile = object_file!("cgroups.bpf");

/// How many times to read the scheduler's clock for a walk with pressure. The latest time is used: none is in the
/// future.
const CLOCK_READINGS: u32 = 3;
const COMPARE_CLOCKS: &str = "compare_clocks";

/// The most devices of a cgroup, on average, for which there is room in the end.
const MOST_DEVICES: usize = 16;
/// The most repetitions of a walk whose cgroups outgrow their array.
const MAX_GROWTHS: u32 = 8;
/// The walk does not call it, but kernels have it since the same version as the functions that the walk needs.
const SINCE_6_7: &str = "bpf_iter_css_new";

/// The loaded program.
#[derive(Debug)]
pub(super) struct Bpf {
    types: KernelTypes,
    settings: Settings,
    capacity: Capacity,
    loaded: Walk,
    section: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Capacity {
    records: u32,
    devices: u32,
}

#[derive(Debug)]
struct Walk {
    program: OwnedFd,
    /// Loaded only if pressure is read.
    compare_clocks: Option<OwnedFd>,
    run: Mapping<Run>,
    records: Mapping<Record>,
    devices: Mapping<Device>,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) records: usize,
    pub(super) devices: usize,
    /// Time since boot when the walk began.
    pub(super) began_ns: u64,
    /// The longest run of the program.
    pub(super) longest_section: Duration,
}

impl Bpf {
    /// Loads the program for about `expected` cgroups, in runs of this length.
    pub(super) fn open(fields: Fields, section: Duration, expected: u32) -> Result<Self, Error> {
        support::permitted()?;
        let effective = rustix::thread::capabilities(None)
            .map_or(CapabilitySet::empty(), |sets| sets.effective);
        if !effective.intersects(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE) {
            return Err(Error::NotPermitted);
        }
        let constants = [
            &super::stat::CONSTANTS[..],
            &["CGRP_FROZEN", "MEMCG_SWAP_FAIL"],
        ]
        .concat();
        let types = KernelTypes::read(Wanted {
            object: Some(&OBJECT),
            structures: &["memcg_vmstats", "cgroup", "psi_group", "cfs_rq"],
            functions: &["bpf_rdonly_cast", "bpf_rcu_read_lock", SINCE_6_7],
            constants: &constants,
            ..Wanted::default()
        })?;
        if !types.has_function(SINCE_6_7) {
            return Err(error::Error::KernelTooOld {
                missing: "open-coded cgroup iterator (bpf_iter_css_new)",
                since: "6.7",
            }
            .into());
        }
        let missing = |missing| Error::UnknownKernel { missing };
        let frozen_bit = types.constant("CGRP_FROZEN");
        if fields.intersects(Fields::MEMORY)
            && types.constant("MEMCG_SWAP_FAIL").is_some_and(|at| at != 8)
        {
            return Err(missing("events of memory in the known order"));
        }
        // Without these members, pressure is read from the files.
        let calculates_pressure = types.offset("psi_group", "pcpu").is_some()
            && types.offset("cgroup", "psi").is_some()
            && types.offset("cfs_rq", "rq").is_some();
        let mut groups = fields - Fields::PRESSURE_AVERAGES;
        groups.set(
            Fields::PRESSURE,
            fields.contains(Fields::PRESSURE) && calculates_pressure,
        );
        let page = rustix::param::page_size();
        let stat = Lengths::new(&types).map_or(0, Lengths::bytes);
        let settings = Settings {
            groups: groups.bits(),
            page_shift: page.trailing_zeros(),
            frozen_bit: frozen_bit.ok_or_else(|| missing("CGRP_FROZEN"))?,
            stat_bytes: if stat as usize <= STAT_SLOTS * 8 {
                stat
            } else {
                0
            },
            no_pages: i64::MAX as u64 / page as u64,
            cpus: possible_cpus()?,
            jiffy_ns: jiffy().as_nanos() as u32,
        };
        let records = expected + expected / 4 + 64;
        let capacity = Capacity {
            records,
            devices: if fields.contains(Fields::IO) {
                records * 4
            } else {
                1
            },
        };
        Ok(Self {
            loaded: Walk::load(&settings, capacity, &types)?,
            types,
            settings,
            capacity,
            section,
        })
    }

    /// The groups that the program fills.
    pub(super) fn fields(&self) -> Fields {
        Fields::from_bits_retain(self.settings.groups)
    }

    pub(super) fn types(&self) -> &KernelTypes {
        &self.types
    }

    /// Walks all cgroups, which should be `most` at most. The arrays grow until they have room for about twice as many:
    /// the walk also meets cgroups that are not below this mount.
    pub(super) fn walk(&mut self, most: usize) -> Result<Met, Error> {
        let most_records = most.saturating_mul(2);
        let most_devices = most_records.saturating_mul(MOST_DEVICES);
        for _ in 0..MAX_GROWTHS {
            let clock_ns = self.loaded.clock_ns()?;
            let began_ns = boottime_ns();
            self.loaded.run.as_mut_slice()[0] = Run {
                clock_ns,
                section_ns: self.section.as_nanos() as u64,
                ..Run::default()
            };
            while self.loaded.run.as_slice()[0].done == 0 {
                run(self.loaded.program.as_fd(), &mut [])?;
            }
            let run = self.loaded.run.as_slice()[0];
            if run.lost_records == 0 && run.lost_devices == 0 {
                return Ok(Met {
                    records: run.records as usize,
                    devices: run.devices as usize,
                    began_ns,
                    longest_section: Duration::from_nanos(run.longest_ns),
                });
            }
            let mut capacity = self.capacity;
            if run.lost_records != 0 {
                capacity.records = grown(capacity.records, most_records)?;
            }
            if run.lost_devices != 0 {
                capacity.devices = grown(capacity.devices, most_devices)?;
            } else if self.settings.groups & Fields::IO.bits() != 0 {
                // More cgroups have more devices.
                capacity.devices =
                    grown(capacity.devices, most_devices).unwrap_or(capacity.devices);
            }
            self.loaded = Walk::load(&self.settings, capacity, &self.types)?;
            self.capacity = capacity;
        }
        Err(Error::Overflow {
            capacity: self.capacity.records,
            what: "cgroups",
        })
    }

    pub(super) fn records(&self, met: Met) -> &[Record] {
        &self.loaded.records.as_slice()[..met.records]
    }

    pub(super) fn records_mut(&mut self, met: Met) -> (&mut [Record], &[Device]) {
        (
            &mut self.loaded.records.as_mut_slice()[..met.records],
            &self.loaded.devices.as_slice()[..met.devices],
        )
    }
}

/// Twice the length of an array, but `most` at most.
fn grown(len: u32, most: usize) -> Result<u32, Error> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    if len >= most {
        return Err(Error::TooMany);
    }
    Ok(len.saturating_mul(2).min(most))
}

impl Walk {
    fn load(settings: &Settings, capacity: Capacity, types: &KernelTypes) -> Result<Self, Error> {
        let mut loader = Loader::open(&OBJECT, types)?;
        loader.set("settings", settings)?;
        loader.set_len("records", capacity.records)?;
        loader.set_len("places", capacity.records)?;
        loader.set_len("devices", capacity.devices)?;
        let has_pressure = settings.groups & Fields::PRESSURE.bits() != 0;
        if !has_pressure {
            loader.skip(COMPARE_CLOCKS);
        }
        let loaded = loader.load()?;
        Ok(Self {
            compare_clocks: has_pressure
                .then(|| loaded.program(COMPARE_CLOCKS))
                .transpose()?,
            program: loaded.program("walk")?,
            run: loaded.map(".data.run", 1)?,
            records: loaded.map("records", capacity.records)?,
            devices: loaded.map("devices", capacity.devices)?,
        })
    }
}

impl Walk {
    /// How far the scheduler's clock is from `CLOCK_MONOTONIC`. A thread that yields the CPU finds the clock's time in
    /// the run queue.
    fn clock_ns(&mut self) -> Result<i64, Error> {
        let Some(program) = &self.compare_clocks else {
            return Ok(0);
        };
        let mut latest = i64::MIN;
        for _ in 0..CLOCK_READINGS {
            sched_yield();
            run(program.as_fd(), &mut [])?;
            latest = latest.max(self.run.as_slice()[0].clock_ns);
        }
        Ok(latest)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, fs, os::unix::fs::MetadataExt};

    use fastproc_testbed::{Cgroup, gate, needs, wait_until};

    use super::*;

    #[test]
    fn arrays_grow_up_to_their_bound() {
        assert_eq!(grown(100, usize::MAX).ok(), Some(200));
        assert_eq!(grown(100, 150).ok(), Some(150));
        assert!(matches!(grown(150, 150), Err(Error::TooMany)));
        assert!(matches!(grown(u32::MAX, usize::MAX), Err(Error::TooMany)));
    }

    /// Between two runs all cgroups that the walk met last are removed: it looks for remaining ones, one cgroup in each
    /// run.
    #[test]
    fn the_way_back_takes_sections_too() {
        needs!(gate::bpf());
        let Some(cgroup) = Cgroup::new("parent") else {
            return;
        };
        let folder = cgroup.folder();
        let children: Vec<_> = (0..40).map(|at| folder.join(format!("c{at}"))).collect();
        let mut ids = HashSet::new();
        for child in &children {
            fs::create_dir(child).expect("root may make a cgroup");
            ids.insert(fs::metadata(child).expect("the path exists").ino());
        }
        let mut bpf =
            Bpf::open(Fields::empty(), Duration::ZERO, 2000).expect("the BPF source opens");
        let walk = &mut bpf.loaded;
        walk.run.as_mut_slice()[0] = Run::default();
        let met = |walk: &Walk, records: u32| {
            let records = &walk.records.as_slice()[..records as usize];
            let known = records.iter().map(|record| record.identity.id);
            known.filter(|id| ids.contains(id)).count()
        };
        let step = |walk: &mut Walk| {
            run(walk.program.as_fd(), &mut []).expect("the BPF program runs");
            walk.run.as_slice()[0]
        };
        let mut now = Run::default();
        while met(walk, now.records) < 30 {
            now = step(walk);
            assert_eq!(now.done, 0);
        }
        for child in &children {
            fs::remove_dir(child).expect("it is empty");
        }
        wait_until("the kernel to forget them", || {
            let stat = fs::read_to_string(folder.join("cgroup.stat")).expect("a file");
            stat.contains("nr_dying_descendants 0\n")
        });
        let mut back = now.records;
        for _ in 0..30 {
            now = step(walk);
            back -= 1;
            assert_eq!((now.css, now.back), (0, back));
        }
        while now.done == 0 {
            now = step(walk);
        }
        assert_eq!((now.back, met(walk, now.records)), (0, 0));
        let parent = fs::metadata(&folder).expect("the path exists").ino();
        let records = &walk.records.as_slice()[..now.records as usize];
        let parents = records.iter().filter(|record| record.identity.id == parent);
        assert_eq!(parents.count(), 1);
    }
}
