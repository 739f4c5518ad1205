//! The kernel's symbols, where it shows where its data lies: `CONFIG_KALLSYMS_ALL=y`, and a reader who may see addresses.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader},
};

/// Global data that has no route by structure, or a longer one.
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

/// Addresses by name. A symbol that is not there, not shown or there twice is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols(HashMap<&'static str, u64>);

impl Symbols {
    /// Reads `/proc/kallsyms`. It is several megabytes long, so this is done once.
    pub(super) fn load() -> Self {
        match File::open("/proc/kallsyms") {
            Ok(file) => Self::parse(BufReader::with_capacity(1 << 18, file)),
            Err(_) => Self::default(),
        }
    }

    fn parse(mut text: impl BufRead) -> Self {
        let mut found = HashMap::new();
        let mut twice = Vec::new();
        let mut line = Vec::new();
        while text
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            // "ffffffff8120b050 T name", and "\t[module]" after a module's own
            let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
            let address = words.next().and_then(|word| std::str::from_utf8(word).ok());
            let address = address
                .and_then(|word| u64::from_str_radix(word, 16).ok())
                .unwrap_or(0);
            let name = words.nth(1).unwrap_or_default();
            if let Some(&name) = WANTED.iter().find(|wanted| wanted.as_bytes() == name)
                && address != 0
                && found.insert(name, address).is_some()
            {
                twice.push(name);
            }
            line.clear();
        }
        for name in twice {
            found.remove(name);
        }
        Self(found)
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        debug_assert!(WANTED.contains(&name), "{name} is not collected");
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Symbols;

    #[test]
    fn hidden_doubled_and_foreign_symbols_are_absent() {
        let symbols = Symbols::parse(
            &b"0000000000000000 D total_forks\nffffffff82000000 D runqueues\nffffffff82000010 D irq_err_count\n\
              ffffffff82000020 b irq_err_count\nffffffff82000030 D totalreserve_pages\t[other]\nffffffff82000040 d vm_dirty_ratio\n"[..],
        );
        assert_eq!(symbols.get("total_forks"), None);
        assert_eq!(symbols.get("irq_err_count"), None);
        assert_eq!(symbols.get("totalreserve_pages"), None);
        assert_eq!(symbols.get("runqueues"), Some(0xffff_ffff_8200_0000));
        assert_eq!(symbols.get("vm_dirty_ratio"), Some(0xffff_ffff_8200_0040));
    }
}
