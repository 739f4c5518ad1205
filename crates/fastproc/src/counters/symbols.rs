//! The kernel's symbols, if it shows the addresses of its data: with `CONFIG_KALLSYMS_ALL=y`, to a reader who may see
//! addresses.

use std::{collections::HashMap, os::fd::AsFd};

use crate::{
    base::error::Error,
    kernel::{KernelTypes, Loader, ObjectFile, object_file, run},
};

pub(crate) static OBJECT: ObjectFile = object_file!("symbols.bpf");

/// Global data without a route by structures, or with a longer one.
pub(super) const WANTED: &[&str] = &[
    "runqueues",
    "total_forks",
    "irq_err_count",
    "vm_zone_stat",
    "vm_node_stat",
    "vm_numa_event",
    "nr_memmap_pages",
    "nr_memmap_boot_pages",
    "totalreserve_pages",
    "vm_dirty_ratio",
    "vm_dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
];

/// The beginning and the end of the kernel's own symbols; those of modules do not count.
const IMAGE: [&str; 2] = ["_text", "_end"];
/// In some kernels per-CPU variables have offsets as addresses, all below this.
const HIGHEST_OFFSET: u64 = 1 << 24;
/// As in `bpf/symbols.bpf.c`.
const NAME_SIZE: usize = 64;

/// Addresses by name. A symbol that does not exist or is hidden is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols(HashMap<&'static str, u64>);

impl Symbols {
    /// Asks the kernel for each name. A kernel that cannot answer (before 5.16) also lacks `bpf_loop()`, which the programs of
    /// the counters need.
    pub(super) fn load() -> Self {
        let wanted: Vec<_> = IMAGE.iter().chain(WANTED).copied().collect();
        ask(&wanted).map_or_else(|_| Self::default(), Self::from_image)
    }

    /// Keeps the symbols in the kernel's own image. If its end is hidden, all data are.
    fn from_image(mut found: HashMap<&'static str, u64>) -> Self {
        let [from, to] = IMAGE.map(|name| found.remove(name));
        found.retain(|_, address| match (from, to) {
            (Some(from), Some(to)) => (from..to).contains(address) || *address < HIGHEST_OFFSET,
            _ => false,
        });
        Self(found)
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        debug_assert!(WANTED.contains(&name), "{name} is not collected");
        self.0.get(name).copied()
    }
}

/// The addresses that `bpf_kallsyms_lookup_name()` returns.
fn ask(wanted: &[&'static str]) -> Result<HashMap<&'static str, u64>, Error> {
    let types = KernelTypes::default();
    let mut loader = Loader::open(&OBJECT, &types)?;
    loader.set_len("names", wanted.len() as u32)?;
    loader.set_len("addresses", wanted.len() as u32)?;
    let loaded = loader.load()?;
    let words = NAME_SIZE / size_of::<u64>();
    let mut names = loaded.map::<u64>("names", (wanted.len() * words) as u32)?;
    for (name, place) in wanted.iter().zip(names.as_mut_slice().chunks_mut(words)) {
        for (word, bytes) in place
            .iter_mut()
            .zip(name.as_bytes().chunks(size_of::<u64>()))
        {
            let mut padded = [0; size_of::<u64>()];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
    }
    let addresses = loaded.map::<u64>("addresses", wanted.len() as u32)?;
    run(loaded.program("find_symbols")?.as_fd(), &mut [])?;
    let found = wanted
        .iter()
        .copied()
        .zip(addresses.as_slice().iter().copied());
    Ok(found.filter(|&(_, address)| address != 0).collect())
}

#[cfg(test)]
mod tests {
    use fastproc_testbed::{gate, needs};

    use super::*;

    #[test]
    fn symbols_beyond_the_kernels_image_are_absent() {
        let mut found = HashMap::from([
            ("_text", 0xffff_ffff_8100_0000),
            ("_end", 0xffff_ffff_8300_0000),
            ("total_forks", 0xffff_ffff_82ff_ffff),
            ("runqueues", 0x33d40),
            ("vm_zone_stat", 0xffff_ffff_c000_0000),
        ]);
        let symbols = Symbols::from_image(found.clone());
        assert_eq!(symbols.get("total_forks"), Some(0xffff_ffff_82ff_ffff));
        assert_eq!(symbols.get("runqueues"), Some(0x33d40));
        assert_eq!(symbols.get("vm_zone_stat"), None);
        found.remove("_end");
        assert!(Symbols::from_image(found).0.is_empty());
    }

    #[test]
    fn the_kernel_answers_what_it_prints() {
        needs!(gate::bpf());
        let names = ["_text", "schedule", "vfs_read", "no_such_symbol"];
        // Kernels before 5.16 lack the function.
        let Ok(asked) = ask(&names) else { return };
        let text = std::fs::read_to_string("/proc/kallsyms").expect("it can be read");
        for name in names {
            let printed = text.lines().find_map(|line| {
                let (address, rest) = line.split_once(' ')?;
                let address = u64::from_str_radix(address, 16).ok()?;
                (rest.get(2..)? == name && address != 0).then_some(address)
            });
            assert_eq!(asked.get(name).copied(), printed, "{name}");
        }
    }
}
