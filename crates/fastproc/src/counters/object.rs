//! The loaded BPF object: its maps' memory, cut into slots, and its programs.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
};

use libbpf_rs::{Link, MapCore, ObjectBuilder, OpenObject, btf::Btf, btf::types::DataSec};

use super::{
    Error,
    forks::Forks,
    layout::{Block, Config, Cpu, IRQ_ROWS, Irq, IrqWords, Located, MAX_NODES, Place, Run},
    mapping::Mapping,
};
use crate::source::bpf::Log;

/// libbpf reads ELF structures in place.
#[repr(C)]
struct Aligned<T: ?Sized> {
    align: [u64; 0],
    bytes: T,
}

static ALIGNED: &Aligned<[u8]> = &Aligned {
    align: [],
    bytes: *include_bytes!(concat!(env!("OUT_DIR"), "/counters.bpf.o")),
};

pub(super) static OBJECT: &[u8] = &ALIGNED.bytes;

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

    /// What one slot takes, in bytes.
    pub(super) fn slot_bytes(&self) -> u64 {
        u64::from(self.cpus) * size_of::<Cpu>() as u64
            + u64::from(self.rows()) * u64::from(self.row_words) * 8
            + u64::from(self.max_irqs) * size_of::<Irq>() as u64
            + IRQ_ROWS as u64 * (u64::from(self.cpus) * 4 + size_of::<IrqWords>() as u64)
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
    read_irq_rows: OwnedFd,
    nothing: OwnedFd,
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
    irq_rows: Mapping<u32>,
    irq_words: Mapping<IrqWords>,
    forks: Forks,
    located: Mapping<Located>,
    nodes: Mapping<u64>,
    anchors: Mapping<u64>,
    fork_counter: Option<Link>,
    /// Closes the programs and maps when the last slot is gone.
    _loaded: libbpf_rs::Object,
}

/// A 32-bit word of the object's read-only data.
fn set_constant(
    data: &mut [u8],
    section: &[(String, u32, usize)],
    name: &str,
    value: u32,
) -> Result<(), Error> {
    let unknown = || Error::Layout {
        what: format!("the constant {name}"),
    };
    let (_, offset, size) = section
        .iter()
        .find(|(known, _, _)| known == name)
        .ok_or_else(unknown)?;
    let to = data
        .get_mut(*offset as usize..*offset as usize + size)
        .ok_or_else(unknown)?;
    match size {
        1 => to[0] = u8::from(value != 0),
        4 => to.copy_from_slice(&value.to_ne_bytes()),
        _ => return Err(unknown()),
    }
    Ok(())
}

fn constants() -> Result<Vec<(String, u32, usize)>, Error> {
    let broken = |error: libbpf_rs::Error| Error::Layout {
        what: error.to_string(),
    };
    let btf = Btf::from_raw("counters", OBJECT).map_err(broken)?;
    let btf = btf.ok_or_else(|| Error::Layout {
        what: "the object's types".into(),
    })?;
    let section: DataSec<'_> = btf.type_by_name(".rodata").ok_or_else(|| Error::Layout {
        what: "the object's constants".into(),
    })?;
    let mut constants = Vec::new();
    for variable in (0..section.len()).filter_map(|index| section.get(index)) {
        let var: Option<libbpf_rs::btf::BtfType<'_>> = btf.type_by_id(variable.ty);
        if let Some(name) = var
            .and_then(|var| var.name())
            .and_then(|name| name.to_str())
        {
            constants.push((name.to_owned(), variable.offset, variable.size));
        }
    }
    Ok(constants)
}

impl Object {
    /// Loads the programs, sized for this machine.
    pub(super) fn load(shape: Shape, loads: Loads, count_forks: bool) -> Result<Self, Error> {
        let log = Log::start();
        let refused = |error: libbpf_rs::Error| match log.refusal(&error) {
            crate::Error::Verifier { reason, log } => Error::Load { reason, log },
            other => Error::Load {
                reason: other.to_string(),
                log: String::new(),
            },
        };
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(refused)?;
        size_maps(&mut open, shape, loads).map_err(|error| match error {
            Sizing::Libbpf(error) => refused(error),
            Sizing::Layout(error) => error,
        })?;
        for mut program in open.progs_mut() {
            if program.name() == "count_fork" {
                program.set_autoload(count_forks);
            }
        }
        let loaded = open.load().map_err(refused)?;

        let program = |name: &str| {
            let found = loaded.progs().find(|program| program.name() == name);
            let found = found.ok_or_else(|| Error::Layout {
                what: format!("the program {name}"),
            })?;
            found.as_fd().try_clone_to_owned().map_err(Error::Run)
        };
        let fork_counter = if count_forks {
            let counter = loaded
                .progs_mut()
                .find(|program| program.name() == "count_fork");
            counter
                .map(|program| program.attach().map_err(refused))
                .transpose()?
        } else {
            None
        };
        let Shape {
            cpus,
            slots,
            max_irqs,
            max_hot,
            row_words,
            blocks,
            zones,
            ..
        } = shape;
        let object = Self {
            collect: program("collect")?,
            collect_first: program("collect_first")?,
            walk_irqs: program("walk_irqs")?,
            read_irq_rows: program("read_irq_rows")?,
            nothing: program("nothing")?,
            locate: program("locate")?,
            find_nodes: program("find_nodes")?,
            config: map(&loaded, "config", 1)?,
            places: map(&loaded, "places", cpus)?,
            blocks: map(&loaded, "blocks", blocks)?,
            zonestats: map(&loaded, "zonestats", zones)?,
            runs: map(&loaded, "runs", slots)?,
            cpus: map(&loaded, "cpus", slots * cpus)?,
            rows: map(&loaded, "rows", slots * shape.rows() * row_words)?,
            irqs: map(&loaded, "irqs", slots * max_irqs)?,
            hot: map(&loaded, "hot", slots * max_hot)?,
            irq_rows: map(
                &loaded,
                "irq_rows",
                slots * IRQ_ROWS as u32 * irq_row_words(cpus),
            )?,
            irq_words: map(&loaded, "irq_words", slots * IRQ_ROWS as u32)?,
            forks: Forks::new(map(&loaded, "forks", 1)?),
            located: map(&loaded, "located", 1)?,
            nodes: map(&loaded, "nodes", MAX_NODES as u32)?,
            anchors: map(&loaded, "anchors", cpus)?,
            shape,
            loads,
            fork_counter,
            _loaded: loaded,
        };
        Ok(object)
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

    /// Where the programs and the interrupts' directory lie.
    pub(super) fn locate(&self, irq_dir: Option<&impl AsFd>) -> Result<Located, Error> {
        let fd = irq_dir.map_or(-1, |dir| dir.as_fd().as_raw_fd());
        self.located.store(
            0,
            Located {
                irq_dir_fd: fd,
                ..Located::default()
            },
        );
        test_run(&self.locate, &mut [0])?;
        Ok(self.located.load(0))
    }

    /// Looks for the memory nodes; they are then in [`node`](Self::node).
    pub(super) fn find_nodes(&self) -> Result<Located, Error> {
        test_run(&self.find_nodes, &mut [0])?;
        Ok(self.located.load(0))
    }

    /// What it costs to run a program that does nothing.
    pub(super) fn run_nothing(&self) -> Result<(), Error> {
        test_run(&self.nothing, &mut []).map(drop)
    }
}

enum Sizing {
    Libbpf(libbpf_rs::Error),
    Layout(Error),
}

impl From<libbpf_rs::Error> for Sizing {
    fn from(error: libbpf_rs::Error) -> Self {
        Self::Libbpf(error)
    }
}

fn irq_row_words(cpus: u32) -> u32 {
    cpus.next_multiple_of(2)
}

fn size_maps(open: &mut OpenObject, shape: Shape, loads: Loads) -> Result<(), Sizing> {
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
    let section = constants().map_err(Sizing::Layout)?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let entries = match name.as_str() {
            "places" | "anchors" => cpus,
            "blocks" => blocks,
            "zonestats" => zones,
            "runs" => slots,
            "cpus" => slots * cpus,
            "rows" => {
                map.set_value_size(row_words * 8)?;
                slots * shape.rows()
            }
            "irqs" => slots * max_irqs,
            "hot" => slots * max_hot,
            "irq_rows" => {
                map.set_value_size(irq_row_words(cpus) * 4)?;
                slots * IRQ_ROWS as u32
            }
            "irq_words" => slots * IRQ_ROWS as u32,
            _ => {
                if name.ends_with(".rodata")
                    && let Some(data) = map.initial_value_mut()
                {
                    for (name, value) in [
                        ("may_cast", u32::from(loads.cast)),
                        ("may_probe", u32::from(loads.probe)),
                        ("possible_cpus", cpus),
                        ("row_bytes", row_words * 8),
                        ("arch_bytes", arch_bytes),
                    ] {
                        set_constant(data, &section, name, value).map_err(Sizing::Layout)?;
                    }
                }
                continue;
            }
        };
        map.set_max_entries(entries.max(1))?;
    }
    Ok(())
}

fn map<T: super::mapping::Plain>(
    loaded: &libbpf_rs::Object,
    name: &'static str,
    len: u32,
) -> Result<Mapping<T>, Error> {
    let found = loaded.maps().find(|map| map.name() == name);
    let found = found.ok_or_else(|| Error::Layout {
        what: format!("the map {name}"),
    })?;
    let size = found.value_size() as usize;
    if !size.next_multiple_of(8).is_multiple_of(size_of::<T>()) {
        return Err(Error::Layout {
            what: format!("the map {name}, whose values have {size} bytes"),
        });
    }
    Mapping::new(found.as_fd(), (len as usize).max(1))
        .map_err(|source| Error::Map { map: name, source })
}

/// Runs a program once, with `arguments` as its context. Returns what it returned.
fn test_run(program: &OwnedFd, arguments: &mut [u32]) -> Result<u32, Error> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        ctx_in: if arguments.is_empty() {
            std::ptr::null_mut()
        } else {
            arguments.as_mut_ptr().cast()
        },
        ctx_size_in: size_of_val(arguments) as u32,
        ..Default::default()
    };
    // SAFETY: the descriptor is a loaded program; `options` and the context it points to live across the call.
    let result =
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if result < 0 {
        Err(Error::Run(io::Error::from_raw_os_error(-result)))
    } else {
        Ok(options.retval)
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
    pub(super) fn collect(&mut self, run: Run) -> Result<Run, Error> {
        self.object.runs.store(self.index as usize, run);
        match self.index {
            0 => test_run(&self.object.collect_first, &mut [])?,
            index => test_run(&self.object.collect, &mut [index])?,
        };
        Ok(self.object.runs.load(self.index as usize))
    }

    /// Lists the interrupt descriptors. `Ok(None)`: the list changed meanwhile, or does not fit.
    pub(super) fn walk_irqs(&mut self) -> Result<Option<Run>, Error> {
        let failed = test_run(&self.object.walk_irqs, &mut [self.index])?;
        let run = self.object.runs.load(self.index as usize);
        Ok((failed == 0).then_some(run))
    }

    /// Counts by CPU of up to [`IRQ_ROWS`] descriptors.
    pub(super) fn read_irq_rows(&mut self, first: u32, count: u32) -> Result<(), Error> {
        match test_run(&self.object.read_irq_rows, &mut [self.index, first, count])? {
            0 => Ok(()),
            _ => Err(Error::Layout {
                what: "the table of interrupts".into(),
            }),
        }
    }

    /// By CPU number.
    pub(super) fn cpus(&self) -> &[Cpu] {
        let cpus = self.object.shape.cpus as usize;
        // SAFETY: only this slot's runs write here, and they take `&mut self`.
        unsafe { self.object.cpus.slice(self.index as usize * cpus, cpus) }
    }

    /// CPUs first, then blocks.
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

    pub(super) fn irq_row(&self, row: u32) -> (&IrqWords, &[u32]) {
        let cpus = self.object.shape.cpus;
        let index = self.index * IRQ_ROWS as u32 + row;
        // SAFETY: as for `cpus`.
        unsafe {
            let words = self.object.irq_words.slice(index as usize, 1);
            let counts = self
                .object
                .irq_rows
                .slice((index * irq_row_words(cpus)) as usize, cpus as usize);
            (&words[0], counts)
        }
    }
}
