//! The loaded BPF object: its maps' memory, cut into slots, and its programs.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
};

use super::{
    Error,
    forks::{Forks, WORDS},
    layout::{Block, Config, Cpu, Irq, Located, MAX_NODES, Place, Run},
};
use crate::kernel::{KernelTypes, Loader, Mapping, ObjectFile, object_file, run};

pub(crate) static OBJECT: ObjectFile = object_file!("counters.bpf");

/// How large the records are on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// One more than the highest possible CPU.
    pub(super) cpus: u32,
    /// Readers that run at once.
    pub(super) slots: u32,
    /// Interrupt descriptors that there is room for.
    pub(super) max_irqs: u32,
    pub(super) max_hot: u32,
    /// 64-bit words of a row: the pending numa events, then one group of counters.
    pub(super) row_words: u32,
    pub(super) blocks: u32,
    pub(super) zones: u32,
    pub(super) arch_bytes: u32,
}

impl Shape {
    pub(super) fn rows(&self) -> u32 {
        self.cpus + self.blocks
    }

    /// Bytes of one slot.
    pub(super) fn slot_bytes(&self) -> u64 {
        u64::from(self.cpus) * size_of::<Cpu>() as u64
            + u64::from(self.rows()) * u64::from(self.row_words) * 8
            + u64::from(self.max_irqs) * size_of::<Irq>() as u64
    }
}

/// How the programs read memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loads {
    /// Typed loads by `bpf_rdonly_cast`.
    pub(super) cast: bool,
    /// `bpf_probe_read_kernel`.
    pub(super) probe: bool,
}

/// The loaded programs and the maps that all slots share.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) shape: Shape,
    pub(super) loads: Loads,
    collect: OwnedFd,
    collect_first: OwnedFd,
    walk_irqs: OwnedFd,
    locate: OwnedFd,
    find_nodes: OwnedFd,
    config: Mapping<Config>,
    places: Mapping<Place>,
    blocks: Mapping<Block>,
    zonestats: Mapping<u64>,
    runs: Mapping<Run>,
    cpus: Mapping<Cpu>,
    rows: Mapping<u64>,
    irqs: Mapping<Irq>,
    hot: Mapping<u64>,
    forks: Forks,
    located: Mapping<Located>,
    nodes: Mapping<u64>,
    anchors: Mapping<u64>,
    fork_counter: Option<OwnedFd>,
}

impl Object {
    /// Loads the programs, sized for this machine.
    pub(super) fn load(
        shape: Shape,
        loads: Loads,
        count_forks: bool,
        types: &KernelTypes,
    ) -> Result<Self, Error> {
        let Shape {
            cpus,
            slots,
            max_irqs,
            max_hot,
            row_words,
            blocks,
            zones,
            arch_bytes,
        } = shape;
        let rows = slots * shape.rows();
        let mut loader = Loader::open(&OBJECT, types)?;
        loader.set("may_cast", &u8::from(loads.cast))?;
        loader.set("may_probe", &u8::from(loads.probe))?;
        loader.set("possible_cpus", &cpus)?;
        loader.set("row_bytes", &(row_words * 8))?;
        loader.set("arch_bytes", &arch_bytes)?;
        loader.set_value_size("rows", row_words * 8)?;
        for (map, len) in [
            ("places", cpus),
            ("anchors", cpus),
            ("forks", cpus),
            ("blocks", blocks),
            ("zonestats", zones),
            ("runs", slots),
            ("cpus", slots * cpus),
            ("rows", rows),
            ("irqs", slots * max_irqs),
            ("hot", slots * max_hot),
        ] {
            loader.set_len(map, len)?;
        }
        if !count_forks {
            loader.skip("count_fork");
        }
        let loaded = loader.load()?;
        Ok(Self {
            fork_counter: count_forks
                .then(|| loaded.attach("count_fork"))
                .transpose()?,
            collect: loaded.program("collect")?,
            collect_first: loaded.program("collect_first")?,
            walk_irqs: loaded.program("walk_irqs")?,
            locate: loaded.program("locate")?,
            find_nodes: loaded.program("find_nodes")?,
            config: loaded.map("config", 1)?,
            places: loaded.map("places", cpus)?,
            blocks: loaded.map("blocks", blocks)?,
            zonestats: loaded.map("zonestats", zones)?,
            runs: loaded.map("runs", slots)?,
            cpus: loaded.map("cpus", slots * cpus)?,
            rows: loaded.map("rows", rows * row_words)?,
            irqs: loaded.map("irqs", slots * max_irqs)?,
            hot: loaded.map("hot", slots * max_hot)?,
            forks: Forks::new(loaded.map("forks", cpus * WORDS as u32)?, cpus),
            located: loaded.map("located", 1)?,
            nodes: loaded.map("nodes", MAX_NODES)?,
            anchors: loaded.map("anchors", cpus)?,
            shape,
            loads,
        })
    }

    /// Cuts the maps into slots. A slot is the only owner of its part, so this takes the object.
    pub(super) fn into_slots(self) -> (Arc<Self>, Vec<Slot>) {
        let object = Arc::new(self);
        let slots = (0..object.shape.slots)
            .map(|index| Slot {
                index,
                object: Arc::clone(&object),
            })
            .collect();
        (object, slots)
    }

    pub(super) fn set_config(&self, config: Config) {
        self.config.store(0, config);
    }

    pub(super) fn place(&self, cpu: u32) -> Place {
        self.places.load(cpu as usize)
    }

    pub(super) fn set_place(&self, cpu: u32, place: Place) {
        self.places.store(cpu as usize, place);
    }

    pub(super) fn set_block(&self, index: u32, block: Block) {
        self.blocks.store(index as usize, block);
    }

    pub(super) fn set_zonestat(&self, index: u32, pointer: u64) {
        self.zonestats.store(index as usize, pointer);
    }

    pub(super) fn node(&self, index: u32) -> u64 {
        self.nodes.load(index as usize)
    }

    pub(super) fn anchor(&self, cpu: u32) -> u64 {
        self.anchors.load(cpu as usize)
    }

    /// Whether forks are counted.
    pub(super) fn counts_forks(&self) -> bool {
        self.fork_counter.is_some()
    }

    /// Forks since boot, if they are counted.
    pub(super) fn forks(&self) -> &Forks {
        &self.forks
    }

    /// Finds the programs and the interrupts' directory.
    pub(super) fn locate(&self, irq_dir: Option<&impl AsFd>) -> Result<Located, Error> {
        let fd = irq_dir.map_or(-1, |dir| dir.as_fd().as_raw_fd());
        self.located.store(
            0,
            Located {
                irq_dir_fd: fd,
                ..Located::default()
            },
        );
        run(self.locate.as_fd(), &mut [0])?;
        Ok(self.located.load(0))
    }

    /// Finds the memory nodes; they are then in [`node`](Self::node).
    pub(super) fn find_nodes(&self) -> Result<Located, Error> {
        run(self.find_nodes.as_fd(), &mut [0])?;
        Ok(self.located.load(0))
    }
}

/// One reader's records.
#[derive(Debug)]
pub(super) struct Slot {
    index: u32,
    object: Arc<Object>,
}

impl Slot {
    pub(super) fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Collects once. `run` says what, and how far the interrupts' short cut reaches.
    pub(super) fn collect(&mut self, what: Run) -> Result<Run, Error> {
        self.object.runs.store(self.index as usize, what);
        match self.index {
            0 => run(self.object.collect_first.as_fd(), &mut [])?,
            index => run(self.object.collect.as_fd(), &mut [index])?,
        };
        Ok(self.object.runs.load(self.index as usize))
    }

    /// Lists the interrupt descriptors. `Ok(None)`: the list changed meanwhile, or does not fit.
    pub(super) fn walk_irqs(&mut self) -> Result<Option<Run>, Error> {
        let failed = run(self.object.walk_irqs.as_fd(), &mut [self.index])?;
        let run = self.object.runs.load(self.index as usize);
        Ok((failed == 0).then_some(run))
    }

    /// The records by CPU number.
    pub(super) fn cpus(&self) -> &[Cpu] {
        let cpus = self.object.shape.cpus as usize;
        // SAFETY: only this slot's runs write here, and they take `&mut self`.
        unsafe { self.object.cpus.slice(self.index as usize * cpus, cpus) }
    }

    /// The rows of CPUs, then of blocks.
    pub(super) fn row(&self, row: u32) -> &[u64] {
        let Shape { row_words, .. } = self.object.shape;
        let first = (self.index * self.object.shape.rows() + row) * row_words;
        // SAFETY: as for `cpus`.
        unsafe { self.object.rows.slice(first as usize, row_words as usize) }
    }

    pub(super) fn irqs(&self, count: u32) -> &[Irq] {
        let first = self.index * self.object.shape.max_irqs;
        // SAFETY: as for `cpus`.
        unsafe {
            self.object.irqs.slice(
                first as usize,
                count.min(self.object.shape.max_irqs) as usize,
            )
        }
    }

    pub(super) fn irqs_mut(&mut self, count: u32) -> &mut [Irq] {
        let first = self.index * self.object.shape.max_irqs;
        // SAFETY: `&mut self` is the slot's only owner, and no run is under way.
        unsafe {
            self.object.irqs.slice_mut(
                first as usize,
                count.min(self.object.shape.max_irqs) as usize,
            )
        }
    }

    pub(super) fn hot_mut(&mut self) -> &mut [u64] {
        let max_hot = self.object.shape.max_hot;
        // SAFETY: as for `irqs_mut`.
        unsafe {
            self.object
                .hot
                .slice_mut((self.index * max_hot) as usize, max_hot as usize)
        }
    }
}
