//! How the items of a context are read.

use fastproc::{Fields, Texts};

use crate::items::{File, Item, Table};

/// The source of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// It keeps its value.
    Keep,
    /// A record.
    Record(Item),
    /// None: its string was given away already.
    Duplicate(Item),
    /// procps's own library: the result with this index in the companion's rows.
    Companion(usize),
    /// A string of this area, read at the first access.
    Later(usize),
}

/// The items of a context by source.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ops: Vec<Op>,
    /// Groups of records.
    pub(crate) fields: Fields,
    /// Whether there are differences from the last fetch.
    pub(crate) differs: bool,
    /// Numbers of the items that procps's own library reads for every process.
    pub(crate) companion: Vec<u32>,
    /// Items that are read at the first access.
    pub(crate) later: Vec<Item>,
    /// Items that procps's own library reads for the few processes with unusual names or terminals.
    pub(crate) odd: Vec<Item>,
    /// Texts that a service may send with records.
    pub(crate) texts: Texts,
    /// Whether procps would read stat or status, and so know the name.
    pub(crate) knows_name: bool,
}

impl Plan {
    /// The plan for items of the table.
    pub(crate) fn new(table: &Table, items: &[Item]) -> Self {
        let mut plan = Self {
            ops: Vec::with_capacity(items.len()),
            fields: Fields::empty(),
            differs: items.iter().any(|&item| is_difference(item)),
            companion: Vec::new(),
            later: Vec::new(),
            odd: Vec::new(),
            texts: if items.contains(&Item::CMDLINE) {
                Texts::CMDLINE
            } else {
                Texts::empty()
            },
            knows_name: items
                .iter()
                .any(|item| matches!(item.file(), File::Stat | File::Status | File::Either)),
        };
        if plan.differs {
            plan.fields |= Fields::CPU;
        }
        for (at, &item) in items.iter().enumerate() {
            let op = match item.file() {
                _ if item == Item::NOOP => Op::Keep,
                _ if item.is_given_once() && items[..at].contains(&item) => Op::Duplicate(item),
                File::Other => {
                    plan.companion.push(table.number(item));
                    Op::Companion(plan.companion.len() - 1)
                }
                File::Cmdline | File::Environ | File::Cgroup => {
                    plan.later.push(item);
                    Op::Later(plan.later.len() - 1)
                }
                _ => Op::Record(item),
            };
            if let Op::Record(item) = op {
                plan.fields |= fields_of(item);
                if matches!(item, Item::CMD | Item::TTY_NAME | Item::TTY_NUMBER)
                    && !plan.odd.contains(&item)
                {
                    plan.odd.push(item);
                }
            }
            plan.ops.push(op);
        }
        plan
    }
}

/// Whether the item counts from the last fetch.
fn is_difference(item: Item) -> bool {
    use Item::{FLT_MAJ_DELTA, FLT_MIN_DELTA, TICS_ALL_DELTA};
    matches!(item, FLT_MAJ_DELTA | FLT_MIN_DELTA | TICS_ALL_DELTA)
}

/// The groups of a record that an item needs.
fn fields_of(item: Item) -> Fields {
    let is = |prefix| item.name().starts_with(prefix);
    match item {
        Item::RSS | Item::VSIZE_BYTES => Fields::MEMORY,
        Item::RSS_RLIM => Fields::LIMITS,
        Item::NICE | Item::PRIORITY | Item::PRIORITY_RT | Item::PROCESSOR | Item::SCHED_CLASS => {
            Fields::SCHEDULING
        }
        Item::TICS_BLKIO => Fields::SCHEDULING_DETAILS,
        Item::TICS_BEGAN
        | Item::TIME_ELAPSED
        | Item::TIME_START
        | Item::ID_PGRP
        | Item::ID_PID
        | Item::ID_PPID
        | Item::ID_SESSION
        | Item::ID_TGID
        | Item::ID_TID
        | Item::ID_TPGID => Fields::empty(),
        _ if is("ID_") => Fields::USERS,
        _ if is("SUPG") => Fields::CREDENTIALS,
        _ if is("MEM_") || is("VM_") => Fields::MEMORY,
        _ if is("IO_") => Fields::IO,
        _ if is("SIG") => Fields::SIGNALS,
        _ if is("ADDR_") => Fields::LAYOUT,
        _ if is("FLT_") || is("TICS_") || is("TIME_") || is("UTILIZATION") => Fields::CPU,
        _ => Fields::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_its_way() {
        let table = Table::new(0);
        let items = [
            Item::NOOP,
            Item::CMD,
            Item::WCHAN_NAME,
            Item::CMD,
            Item::ENVIRON,
            Item::TICS_ALL_DELTA,
            Item::OOM_SCORE,
        ];
        let plan = Plan::new(&table, &items);
        let expected = [
            Op::Keep,
            Op::Record(Item::CMD),
            Op::Companion(0),
            Op::Duplicate(Item::CMD),
            Op::Later(0),
            Op::Record(Item::TICS_ALL_DELTA),
            Op::Companion(1),
        ];
        assert_eq!(plan.ops, expected);
        assert_eq!(
            plan.companion,
            [
                table.number(Item::WCHAN_NAME),
                table.number(Item::OOM_SCORE)
            ]
        );
        assert_eq!(
            (plan.later, plan.odd),
            (vec![Item::ENVIRON], vec![Item::CMD])
        );
        assert!(plan.differs && plan.knows_name);
        assert_eq!(plan.fields, Fields::CPU);
    }

    #[test]
    fn the_requested_items_choose_the_groups_of_fields() {
        let table = Table::new(1);
        for (item, fields) in [
            (Item::VM_RSS, Fields::MEMORY),
            (Item::SUPGIDS, Fields::CREDENTIALS),
            (Item::STATE, Fields::empty()),
            (Item::TIME_START, Fields::empty()),
            (Item::TIME_ALL_C, Fields::CPU),
            (Item::OPEN_FILES, Fields::empty()),
        ] {
            assert_eq!(Plan::new(&table, &[item]).fields, fields, "{item:?}");
        }
    }
}
