//! Whether the `parquet` crate may parse a footer. It reads each member as the type that the format gives it, whatever type
//! the file says, and would then read other values than [`super::footer`] has checked. So a file is copied only if all
//! members of its footer and indexes are among those that this version writes itself, with the same types.

use std::{collections::BTreeSet, sync::LazyLock};

use super::{
    Error, Writer,
    sums::{Block, TAIL},
    thrift::{Shapes, Value},
};
use crate::{
    rows::{Cells, Rows},
    table::PROCESSES,
};

/// The members that this version writes, in a footer and in indexes.
static OURS: LazyLock<[Shapes; 2]> = LazyLock::new(|| written().unwrap_or_default());

/// Whether a footer, and the indexes of pages that begin at `at`, are like ours.
pub fn is_like_ours(footer: &[u8], indexes: &[u8], at: u64) -> bool {
    shapes(footer, indexes, at).is_some_and(|shapes| {
        let mut both = shapes.iter().zip(&*OURS);
        both.all(|(found, ours)| found.is_subset(ours))
    })
}

fn shapes(mut footer: &[u8], indexes: &[u8], at: u64) -> Option<[Shapes; 2]> {
    let footer = Value::structure(&mut footer)?;
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    footer.shapes(&mut Vec::new(), &mut found[0]);
    let groups = footer.list(4)?.iter();
    for chunk in groups.filter_map(|group| group.list(1)).flatten() {
        for (place, length) in [(4, 5), (6, 7)] {
            if chunk.member(place).is_some() {
                let from = usize::try_from(chunk.size(place)?.checked_sub(at)?).ok()?;
                let length = usize::try_from(chunk.size(length)?).ok()?;
                let mut index = indexes.get(from..)?.get(..length)?;
                let index = Value::structure(&mut index)?;
                index.shapes(&mut vec![place], &mut found[1]);
            }
        }
    }
    Some(found)
}

/// The members of a file with values and nulls in all kinds of columns.
fn written() -> Option<[Shapes; 2]> {
    let mut rows = Rows::new(&PROCESSES);
    rows.count = 2;
    for cells in &mut rows.columns {
        match cells {
            Cells::Numbers(cells) => cells.extend([Some(1), None]),
            Cells::Texts(cells) => cells.extend([Some("text".into()), None]),
        }
    }
    let file = || -> Result<Vec<u8>, Error> {
        let mut writer = Writer::new(Vec::new(), &PROCESSES)?;
        writer.group(&rows)?;
        writer.finish()
    };
    let file = file().ok()?;
    let (rest, tail) = file.split_last_chunk::<TAIL>()?;
    let footer = u32::from_le_bytes(*tail.first_chunk()?) as usize;
    let (rest, footer) = rest.split_at_checked(rest.len().checked_sub(footer)?)?;
    let (rest, block) = rest.split_last_chunk()?;
    let at = Block::from_bytes(block)?.indexes;
    shapes(footer, rest.get(usize::try_from(at).ok()?..)?, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_another_type_is_not_ours() {
        let footer = |version: &[u8]| [version, &[0x19, 0x0c, 0x16, 2, 0x19, 0x0c, 0]].concat();
        // The version as a number, and as bytes, which the crate reads as the length of the bytes.
        assert!(is_like_ours(&footer(&[0x15, 2]), &[], 4));
        assert!(!is_like_ours(&footer(&[0x18, 1, 0x15]), &[], 4));
        // A member that the format does not have.
        assert!(!is_like_ours(&[0x15, 2, 0x39, 0x0c, 0xf5, 2, 0], &[], 4));
    }
}
