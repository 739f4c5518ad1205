//! Finds the counters on this machine: by symbols if their addresses are shown, otherwise by structures.

use std::fs::File;

use super::{
    Error, arch, cpus,
    kinds::{Group, Groups, Scalar, int_of},
    layout::{Block, Config, Located, MAX_NODES, NUMA_EVENTS, Place, Run, SCALARS},
    object::{Loads, Object, Shape},
    report::Route,
    symbols::Symbols,
    types,
};
use crate::{
    base::timing,
    kernel::{KernelTypes, PerCpu, support::may_load},
    text::vmstat::Names,
};

/// What is known about this machine's counters.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Routes {
    pub(super) possible: Vec<u32>,
    pub(super) online: Vec<u32>,
    /// `cpuhp_state` of every CPU when `online` was read.
    pub(super) hotplug: Vec<u32>,
    pub(super) has_hotplug: bool,
    /// The indexes in `kernel_cpustat` of the ten times of the text. `None` if the kernel's enumeration is unknown.
    pub(super) times: Option<[usize; 10]>,
    pub(super) nohz_full: bool,
    pub(super) softirqs: bool,
    /// Words of `irq_cpustat_t` in the interrupts' sum.
    pub(super) arch: Vec<usize>,
    /// Whether these include error interrupts, which have no counter of their own.
    pub(super) errors_counted: bool,
    /// Whether idle times are in `kernel_cpustat`, and printed without rounding: from 7.0 on.
    pub(super) idle_in_cpustat: bool,
    pub(super) irqs: bool,
    pub(super) scalars: u32,
    pub(super) groups: Option<Groups>,
    /// The group of each block.
    pub(super) blocks: Vec<Group>,
    /// Whether pending numa events can be read.
    pub(super) zones: u32,
    pub(super) vm_route: Route,
    pub(super) symbols: bool,
    pub(super) forks_counted: bool,
}

/// The machine before anything is loaded.
#[derive(Debug)]
pub(super) struct Survey {
    types: KernelTypes,
    symbols: Symbols,
    possible: Vec<u32>,
    groups: Option<Groups>,
    max_zones: u32,
    nodes: u32,
    pub(super) shape: Shape,
    /// Raised whenever the addresses are found again.
    generation: u32,
}

impl Survey {
    /// `irqs`: columns of the interrupts' row; `names`: names in `/proc/vmstat`.
    pub(super) fn new(irqs: usize, names: &Names, use_symbols: bool) -> Result<Self, Error> {
        let read = |path| move |source| Error::Read { path, source };
        // Check this before anything expensive is done in vain.
        may_load()?;
        let types = types::load()?;
        timing::done("type information");
        let symbols = if use_symbols {
            Symbols::load()
        } else {
            Symbols::default()
        };
        timing::done("symbols");
        let possible = cpus::possible().map_err(read("/sys/devices/system/cpu/possible"))?;
        let groups = Groups::find(&types, names);
        let max_zones = types.constant("__MAX_NR_ZONES").unwrap_or(0).min(16);
        let nodes = cpus::nodes().len().clamp(1, MAX_NODES as usize) as u32;
        let arch_bytes = types
            .percpu("irq_stat")
            .map_or(0, |stat| stat.size.next_multiple_of(8));
        let longest = groups.map_or(0, |groups| {
            groups
                .zone
                .max(groups.node)
                .max(NUMA_EVENTS as usize + groups.events)
        });
        let shape = Shape {
            cpus: possible.last().map_or(1, |last| last + 1),
            // hot-plugged devices bring interrupts; beyond this the row comes from the text
            max_irqs: (irqs as u32 * 2).max(256),
            max_hot: 1024,
            row_words: longest.max(8) as u32,
            blocks: nodes * (max_zones * 2 + 1) + 3,
            zones: nodes * max_zones.max(1),
            arch_bytes: arch_bytes.min(4 * super::layout::ARCH_WORDS as u32),
        };
        Ok(Self {
            types,
            symbols,
            possible,
            groups,
            max_zones,
            nodes,
            shape,
            generation: 0,
        })
    }

    /// Loads the programs: with typed loads if the kernel has them, and without the helper that lockdown
    /// forbids.
    pub(super) fn load(&self) -> Result<Object, Error> {
        let cast = self.types.has_function("bpf_rdonly_cast");
        let count_forks = self.symbols.get("total_forks").is_none()
            && self.types.has_type("btf_trace_task_newtask");
        let load = |probe, count_forks| {
            Object::load(self.shape, Loads { cast, probe }, count_forks, &self.types)
        };
        load(true, count_forks).or_else(|first| {
            let others = [(cast, false, count_forks), (count_forks, true, false)];
            let mut others = others.into_iter().filter(|&(applies, ..)| applies);
            others
                .find_map(|(_, probe, count_forks)| load(probe, count_forks).ok())
                .ok_or(first)
        })
    }

    /// Finds everything, and writes the addresses where the programs read them.
    pub(super) fn resolve(
        &mut self,
        object: &mut Object,
        irq_dir: Option<&File>,
    ) -> Result<Routes, Error> {
        self.generation += 1;
        let located = object.locate(irq_dir.as_ref())?;
        let mut config = Config {
            cpus: self.shape.cpus,
            max_irqs: self.shape.max_irqs,
            max_hot: self.shape.max_hot,
            generation: self.generation,
            ..Config::default()
        };
        let online = cpus::online().map_err(|source| Error::Read {
            path: "/sys/devices/system/cpu/online",
            source,
        })?;
        self.place_cpus(object, &mut config, &located, &online)?;

        let mut blocks = Vec::new();
        let mut vm_route = Route::Structure;
        if let Some(groups) = self.groups {
            let zones = self.find_zones(object, &mut config, groups, &mut blocks)?;
            config.zones = zones.len() as u32;
            for (index, pointer) in (0..).zip(zones) {
                object.set_zonestat(index, pointer);
            }
            let global = ["vm_zone_stat", "vm_numa_event", "vm_node_stat"]
                .map(|name| self.symbols.get(name));
            if let [Some(zone), numa, Some(node)] = global
                && (numa.is_some() || groups.numa == 0)
            {
                vm_route = Route::Symbols;
                blocks.clear();
                blocks.push((
                    Group::Zone,
                    Block {
                        address: zone,
                        bytes: groups.zone as u32 * 8,
                        unused: 0,
                    },
                ));
                blocks.push((
                    Group::Node,
                    Block {
                        address: node,
                        bytes: groups.node as u32 * 8,
                        unused: 0,
                    },
                ));
                if let Some(numa) = numa {
                    blocks.push((
                        Group::Numa,
                        Block {
                            address: numa,
                            bytes: groups.numa as u32 * 8,
                            unused: 0,
                        },
                    ));
                }
            }
            for (index, (_, block)) in (0..).zip(&blocks) {
                object.set_block(index, *block);
            }
        }
        // These come last, because the search uses them before.
        let mut scalars = 0;
        for (scalar, symbol) in Scalar::ALL {
            let counted = scalar == Scalar::IrqErrCount
                && self.types.constant("IRQ_COUNT_PIC_APIC_ERROR").is_some();
            if let Some(address) = self.symbols.get(symbol).filter(|_| !counted) {
                config.scalars[scalar as usize] = address;
                scalars |= scalar.bit();
            }
        }
        config.blocks = blocks.len() as u32;
        config.irq_dir = located.irq_dir;
        object.set_config(config);

        let run = object.collect(Run {
            want: super::layout::WANT_STAT,
            ..Run::default()
        })?;
        debug_assert_eq!(run.faults, 0, "a place cannot be read");
        Ok(Routes {
            possible: self.possible.clone(),
            hotplug: object.cpus().iter().map(|cpu| cpu.hotplug_state).collect(),
            has_hotplug: self.percpu("cpuhp_state").is_some(),
            online,
            times: self.times(),
            nohz_full: !cpus::nohz_full().is_empty(),
            softirqs: self.types.constant("NR_SOFTIRQS") == Some(super::layout::SOFTIRQS as u32),
            arch: arch::summed(&self.types, self.shape.arch_bytes),
            errors_counted: self.types.constant("IRQ_COUNT_PIC_APIC_ERROR").is_some(),
            idle_in_cpustat: self.types.offset("kernel_cpustat", "idle_elapse").is_some(),
            irqs: located.irq_dir != 0,
            scalars,
            groups: self.groups,
            blocks: blocks.into_iter().map(|(group, _)| group).collect(),
            zones: config.zones,
            vm_route,
            symbols: self.symbols.get("runqueues").is_some() || scalars != 0,
            forks_counted: object.counts_forks(),
        })
    }

    fn percpu(&self, name: &str) -> Option<PerCpu> {
        self.types.percpu(name)
    }

    fn times(&self) -> Option<[usize; 10]> {
        const ORDER: [&str; 10] = [
            "CPUTIME_USER",
            "CPUTIME_NICE",
            "CPUTIME_SYSTEM",
            "CPUTIME_IDLE",
            "CPUTIME_IOWAIT",
            "CPUTIME_IRQ",
            "CPUTIME_SOFTIRQ",
            "CPUTIME_STEAL",
            "CPUTIME_GUEST",
            "CPUTIME_GUEST_NICE",
        ];
        let mut times = [0; 10];
        for (to, name) in times.iter_mut().zip(ORDER) {
            *to = self.types.constant(name)? as usize;
            if *to >= super::layout::CPUSTATS {
                return None;
            }
        }
        Some(times)
    }

    /// The run queue of the CPU that ran `locate` gives the base of the per-CPU section there. The elements
    /// of the anchor map give the offsets of the other CPUs. Every run queue holds the number of its CPU,
    /// which confirms it.
    fn place_cpus(
        &self,
        object: &mut Object,
        config: &mut Config,
        located: &Located,
        online: &[u32],
    ) -> Result<(), Error> {
        let missing = |what| move || Error::NotFound { what };
        let queue = self
            .percpu("runqueues")
            .ok_or_else(missing("the run queues' place in the kernel's types"))?;
        let cpu_offset = self
            .types
            .offset("rq", "cpu")
            .ok_or_else(missing("struct rq's CPU number"))?;
        if located.rq == 0 || located.percpu_pointer == 0 || located.rq_cpu >= self.shape.cpus {
            return Err(Error::NotFound {
                what: "the running CPU's run queue",
            });
        }
        let here = object.anchor(located.rq_cpu);
        let base = |cpu: u32| {
            let distance = object.anchor(cpu).wrapping_sub(here);
            located
                .rq
                .wrapping_sub(u64::from(queue.offset))
                .wrapping_add(distance)
        };
        let at = |base: u64, variable: Option<PerCpu>| {
            variable.map_or(0, |found| base + u64::from(found.offset))
        };
        for &cpu in &self.possible {
            let base = base(cpu);
            object.set_place(
                cpu,
                Place {
                    cpustat: at(base, self.percpu("kernel_cpustat")),
                    kstat: at(base, self.percpu("kstat")),
                    arch: at(base, self.percpu("irq_stat")),
                    mce_exception: at(base, self.percpu("mce_exception_count")),
                    mce_poll: at(base, self.percpu("mce_poll_count")),
                    rq: base + u64::from(queue.offset),
                    tick: at(base, self.percpu("tick_cpu_sched")),
                    hotplug: at(base, self.percpu("cpuhp_state")),
                    vm_events: at(base, self.percpu("vm_event_states")),
                    percpu: object.anchor(cpu).wrapping_sub(located.percpu_pointer),
                    online: u32::from(online.binary_search(&cpu).is_ok()),
                    unused: 0,
                },
            );
        }
        let queues: Vec<u64> = self
            .possible
            .iter()
            .map(|&cpu| base(cpu) + u64::from(queue.offset) + u64::from(cpu_offset))
            .collect();
        for (&cpu, word) in self.possible.iter().zip(peek(object, config, &queues)?) {
            if int_of(word) != cpu {
                return Err(Error::NotFound {
                    what: "the run queue of every CPU",
                });
            }
        }
        if let Some(symbol) = self.symbols.get("runqueues") {
            let cpu = located.rq_cpu;
            if symbol.wrapping_add(object.place(cpu).percpu) != located.rq {
                return Err(Error::NotFound {
                    what: "the run queue that /proc/kallsyms shows",
                });
            }
        }
        Ok(())
    }

    /// The populated zones' per-CPU counters; and, for the structural route, every zone's and node's own.
    fn find_zones(
        &self,
        object: &mut Object,
        config: &mut Config,
        groups: Groups,
        blocks: &mut Vec<(Group, Block)>,
    ) -> Result<Vec<u64>, Error> {
        let offsets = (|| {
            Some((
                u64::from(self.types.offset("pglist_data", "node_zones")?),
                u64::from(self.types.offset("pglist_data", "vm_stat")?),
                u64::from(self.types.size("zone")?),
                u64::from(self.types.offset("zone", "present_pages")?),
                u64::from(self.types.offset("zone", "per_cpu_zonestats")?),
                u64::from(self.types.offset("zone", "vm_stat")?),
                self.types.offset("zone", "vm_numa_event").map(u64::from),
            ))
        })();
        let Some((node_zones, node_stat, zone_size, present, zonestats, zone_stat, zone_numa)) =
            offsets
        else {
            return Ok(Vec::new());
        };
        let mut found = object.find_nodes()?;
        for _ in 0..8 {
            if found.walk_closed != 0 {
                break;
            }
            found = object.find_nodes()?;
        }
        let mut pointers = Vec::new();
        for index in 0..found.nodes.min(self.nodes) {
            let node = object.node(index);
            let zones: Vec<u64> = (0..u64::from(self.max_zones))
                .map(|zone| node + node_zones + zone * zone_size)
                .collect();
            let fields: Vec<u64> = zones
                .iter()
                .flat_map(|zone| [zone + present, zone + zonestats])
                .collect();
            for (zone, fields) in zones
                .iter()
                .zip(peek(object, config, &fields)?.chunks_exact(2))
            {
                if fields[0] == 0 {
                    continue;
                }
                pointers.push(fields[1]);
                let block = |address, count: usize| Block {
                    address,
                    bytes: count as u32 * 8,
                    unused: 0,
                };
                match zone_numa {
                    Some(numa) if numa == zone_stat + groups.zone as u64 * 8 => blocks.push((
                        Group::ZoneAndNuma,
                        block(zone + zone_stat, groups.first_node()),
                    )),
                    _ => blocks.push((Group::Zone, block(zone + zone_stat, groups.zone))),
                }
                if let Some(numa) = zone_numa
                    && !matches!(blocks.last(), Some((Group::ZoneAndNuma, _)))
                {
                    blocks.push((Group::Numa, block(zone + numa, groups.numa)));
                }
            }
            let bytes = groups.node as u32 * 8;
            blocks.push((
                Group::Node,
                Block {
                    address: node + node_stat,
                    bytes,
                    unused: 0,
                },
            ));
        }
        if groups.numa > NUMA_EVENTS as usize {
            pointers.clear();
        }
        Ok(pointers)
    }
}

/// Reads 64-bit words of the kernel's memory. It uses the scalars of the configuration, which are free before
/// they are set.
fn peek(object: &mut Object, config: &mut Config, addresses: &[u64]) -> Result<Vec<u64>, Error> {
    let mut words = Vec::with_capacity(addresses.len());
    for chunk in addresses.chunks(SCALARS) {
        config.scalars = [0; SCALARS];
        config.scalars[..chunk.len()].copy_from_slice(chunk);
        object.set_config(*config);
        let wanted = (1_u32 << chunk.len()) - 1;
        let run = object.collect(Run {
            scalars_wanted: wanted,
            ..Run::default()
        })?;
        words.extend_from_slice(&run.scalars[..chunk.len()]);
    }
    config.scalars = [0; SCALARS];
    Ok(words)
}
