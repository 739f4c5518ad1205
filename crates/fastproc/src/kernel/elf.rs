//! The part of ELF that is needed to find a section and a symbol in an object of this machine's own byte order.

fn short(elf: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_ne_bytes(
        *elf.get(at..)?.first_chunk()?,
    )))
}

fn word(elf: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(*elf.get(at..)?.first_chunk()?)).ok()
}

fn long(elf: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_ne_bytes(*elf.get(at..)?.first_chunk()?)).ok()
}

fn is_named(names: &[u8], at: usize, name: &[u8]) -> bool {
    let rest = names.get(at..).and_then(|names| names.strip_prefix(name));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

/// The names and bytes of all sections.
pub(super) fn sections(elf: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let header = |index: usize| Some(long(elf, 0x28)? + index * short(elf, 0x3a)?);
    let bytes = move |index: usize| {
        let header = header(index)?;
        let start = long(elf, header + 0x18)?;
        elf.get(start..start.checked_add(long(elf, header + 0x20)?)?)
    };
    let names = short(elf, 0x3e).and_then(bytes).unwrap_or_default();
    (0..short(elf, 0x3c).unwrap_or(0)).filter_map(move |index| {
        let name = names.get(word(elf, header(index)?)?..)?;
        let name = &name[..name.iter().position(|&byte| byte == 0)?];
        // A section without bytes in the file may have any offset.
        Some((name, bytes(index).unwrap_or_default()))
    })
}

/// The bytes of the section of this name.
pub(super) fn section<'a>(elf: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut all = sections(elf);
    all.find_map(|(found, bytes)| (found == name).then_some(bytes))
}

/// The offset of the symbol of this name in its section, and its size.
pub(super) fn symbol(elf: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    const ENTRY: usize = 24;
    let (symbols, names) = (section(elf, b".symtab")?, section(elf, b".strtab")?);
    let symbol = symbols
        .chunks_exact(ENTRY)
        .find(|symbol| word(symbol, 0).is_some_and(|at| is_named(names, at, name)))?;
    Some((long(symbol, 8)?, long(symbol, 16)?))
}
