//! The loaded BPF object: its maps' memory, and its programs.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

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
}

/// How the programs read memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loads {
    /// Typed loads by `bpf_rdonly_cast`.
    pub(super) cast: bool,
    /// `bpf_probe_read_kernel`.
    pub(super) probe: bool,
}

/// The loaded programs and their maps.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) shape: Shape,
    pub(super) loads: Loads,
    collect: OwnedFd,
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
            max_irqs,
            max_hot,
            row_words,
            blocks,
            zones,
            arch_bytes,
        } = shape;
        let rows = shape.rows();
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
            ("cpus", cpus),
            ("rows", rows),
            ("irqs", max_irqs),
            ("hot", max_hot),
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
            walk_irqs: loaded.program("walk_irqs")?,
            locate: loaded.program("locate")?,
            find_nodes: loaded.program("find_nodes")?,
            config: loaded.map("config", 1)?,
            places: loaded.map("places", cpus)?,
            blocks: loaded.map("blocks", blocks)?,
            zonestats: loaded.map("zonestats", zones)?,
            runs: loaded.map("runs", 1)?,
            cpus: loaded.map("cpus", cpus)?,
            rows: loaded.map("rows", rows * row_words)?,
            irqs: loaded.map("irqs", max_irqs)?,
            hot: loaded.map("hot", max_hot)?,
            forks: Forks::new(loaded.map("forks", cpus * WORDS as u32)?, cpus),
            located: loaded.map("located", 1)?,
            nodes: loaded.map("nodes", MAX_NODES)?,
            anchors: loaded.map("anchors", cpus)?,
            shape,
            loads,
        })
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
    pub(super) fn forks(&mut self) -> &mut Forks {
        &mut self.forks
    }

    /// Whether only the text knows the number of forks now, although they are counted.
    pub(super) fn lacks_forks(&self) -> bool {
        self.counts_forks() && !self.forks.are_certain()
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

    /// Collects once. `what` says what, and how far the interrupts' short cut reaches.
    pub(super) fn collect(&mut self, what: Run) -> Result<Run, Error> {
        self.runs.store(0, what);
        run(self.collect.as_fd(), &mut [])?;
        Ok(self.runs.load(0))
    }

    /// Lists the interrupt descriptors. `Ok(None)`: the list changed meanwhile, or does not fit.
    pub(super) fn walk_irqs(&mut self) -> Result<Option<Run>, Error> {
        let failed = run(self.walk_irqs.as_fd(), &mut [])?;
        Ok((failed == 0).then(|| self.runs.load(0)))
    }

    /// The records by CPU number.
    pub(super) fn cpus(&self) -> &[Cpu] {
        self.cpus.as_slice()
    }

    /// The rows of CPUs, then of blocks.
    pub(super) fn row(&self, row: u32) -> &[u64] {
        let words = self.shape.row_words as usize;
        &self.rows.as_slice()[row as usize * words..][..words]
    }

    pub(super) fn irqs(&self, count: u32) -> &[Irq] {
        &self.irqs.as_slice()[..count.min(self.shape.max_irqs) as usize]
    }

    pub(super) fn irqs_mut(&mut self, count: u32) -> &mut [Irq] {
        &mut self.irqs.as_mut_slice()[..count.min(self.shape.max_irqs) as usize]
    }

    pub(super) fn hot_mut(&mut self) -> &mut [u64] {
        self.hot.as_mut_slice()
    }
}
