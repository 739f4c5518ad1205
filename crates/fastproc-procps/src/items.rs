//! The items of procps's library: the one list from which the tables of both sonames are made.

/// The member of the union that holds a value, and thus how values are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Neither written nor ordered.
    None,
    SCh,
    SInt,
    UInt,
    UlInt,
    UllInt,
    Real,
    Str,
    /// A string that is ordered by the numbers in it.
    StrVers,
    StrV,
}

/// The file of a process that procps reads for an item, if that decides which other values there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// None: the directory has the value, or the item does not belong to a process.
    None,
    Stat,
    Status,
    /// Stat or status, whichever is read.
    Either,
    Statm,
    Io,
    Cmdline,
    Environ,
    Cgroup,
    /// Another file, which procps's own library reads.
    Other,
}

macro_rules! items {
    ($($name:ident $kind:ident $file:ident $(since $since:literal)?;)*) => {
        /// An item, in the order of both enumerations of procps.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Item {
            $($name,)*
        }

        /// Each with the soname that introduced it.
        const ALL: &[(Item, Kind, File, u32)] = &[
            $((Item::$name, Kind::$kind, File::$file, 0 $(+ $since)?),)*
        ];

        impl Item {
            /// Its name in procps, without `PIDS_`.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

items! {
    NOOP None None;
    EXTRA UllInt None;
    ADDR_CODE_END UlInt Stat;
    ADDR_CODE_START UlInt Stat;
    ADDR_CURR_EIP UlInt Stat;
    ADDR_CURR_ESP UlInt Stat;
    ADDR_STACK_START UlInt Stat;
    AUTOGRP_ID SInt Other;
    AUTOGRP_NICE SInt Other;
    CAPS_PERMITTED Str Other since 1;
    CGNAME Str Cgroup;
    CGROUP Str Cgroup;
    CGROUP_V StrV Cgroup;
    CMD Str Either;
    CMDLINE Str Cmdline;
    CMDLINE_V StrV Other;
    DOCKER_ID Str Other since 1;
    DOCKER_ID_64 Str Other since 1;
    ENVIRON Str Environ;
    ENVIRON_V StrV Other;
    EXE Str Other;
    EXIT_SIGNAL SInt Stat;
    FLAGS UlInt Stat;
    FLT_MAJ UlInt Stat;
    FLT_MAJ_C UlInt Stat;
    FLT_MAJ_DELTA SInt Stat;
    FLT_MIN UlInt Stat;
    FLT_MIN_C UlInt Stat;
    FLT_MIN_DELTA SInt Stat;
    ID_EGID UInt None;
    ID_EGROUP Str None;
    ID_EUID UInt None;
    ID_EUSER Str None;
    ID_FGID UInt Status;
    ID_FGROUP Str Status;
    ID_FUID UInt Status;
    ID_FUSER Str Status;
    ID_LOGIN SInt Other;
    ID_PGRP SInt Stat;
    ID_PID SInt None;
    ID_PPID SInt Either;
    ID_RGID UInt Status;
    ID_RGROUP Str Status;
    ID_RUID UInt Status;
    ID_RUSER Str Status;
    ID_SESSION SInt Stat;
    ID_SGID UInt Status;
    ID_SGROUP Str Status;
    ID_SUID UInt Status;
    ID_SUSER Str Status;
    ID_TGID SInt None;
    ID_TID SInt None;
    ID_TPGID SInt Stat;
    IO_READ_BYTES UlInt Io;
    IO_READ_CHARS UlInt Io;
    IO_READ_OPS UlInt Io;
    IO_WRITE_BYTES UlInt Io;
    IO_WRITE_CBYTES UlInt Io;
    IO_WRITE_CHARS UlInt Io;
    IO_WRITE_OPS UlInt Io;
    LXCNAME Str Other;
    MEM_CODE UlInt Statm;
    MEM_CODE_PGS UlInt Statm;
    MEM_DATA UlInt Statm;
    MEM_DATA_PGS UlInt Statm;
    MEM_RES UlInt Statm;
    MEM_RES_PGS UlInt Statm;
    MEM_SHR UlInt Statm;
    MEM_SHR_PGS UlInt Statm;
    MEM_VIRT UlInt Statm;
    MEM_VIRT_PGS UlInt Statm;
    NICE SInt Stat;
    NLWP SInt Either;
    NS_CGROUP UlInt Other;
    NS_IPC UlInt Other;
    NS_MNT UlInt Other;
    NS_NET UlInt Other;
    NS_PID UlInt Other;
    NS_TIME UlInt Other;
    NS_USER UlInt Other;
    NS_UTS UlInt Other;
    OOM_ADJ SInt Other;
    OOM_SCORE SInt Other;
    OPEN_FILES SInt Other since 1;
    PRIORITY SInt Stat;
    PRIORITY_RT SInt Stat;
    PROCESSOR SInt Stat;
    PROCESSOR_NODE SInt Other;
    RSS UlInt Stat;
    RSS_RLIM UlInt Stat;
    SCHED_CLASS SInt Stat;
    SCHED_CLASSSTR Str Other since 1;
    SD_MACH Str Other;
    SD_OUID Str Other;
    SD_SEAT Str Other;
    SD_SESS Str Other;
    SD_SLICE Str Other;
    SD_UNIT Str Other;
    SD_UUNIT Str Other;
    SIGBLOCKED Str Status;
    SIGCATCH Str Status;
    SIGIGNORE Str Status;
    SIGNALS Str Status;
    SIGPENDING Str Status;
    SMAP_ANONYMOUS UlInt Other;
    SMAP_HUGE_ANON UlInt Other;
    SMAP_HUGE_FILE UlInt Other;
    SMAP_HUGE_SHMEM UlInt Other;
    SMAP_HUGE_TLBPRV UlInt Other;
    SMAP_HUGE_TLBSHR UlInt Other;
    SMAP_LAZY_FREE UlInt Other;
    SMAP_LOCKED UlInt Other;
    SMAP_PRV_CLEAN UlInt Other;
    SMAP_PRV_DIRTY UlInt Other;
    SMAP_PRV_TOTAL UlInt Other;
    SMAP_PSS UlInt Other;
    SMAP_PSS_ANON UlInt Other;
    SMAP_PSS_FILE UlInt Other;
    SMAP_PSS_SHMEM UlInt Other;
    SMAP_REFERENCED UlInt Other;
    SMAP_RSS UlInt Other;
    SMAP_SHR_CLEAN UlInt Other;
    SMAP_SHR_DIRTY UlInt Other;
    SMAP_SWAP UlInt Other;
    SMAP_SWAP_PSS UlInt Other;
    STATE SCh Either;
    SUPGIDS Str Status;
    SUPGROUPS Str Status;
    TICS_ALL UllInt Stat;
    TICS_ALL_C UllInt Stat;
    TICS_ALL_DELTA UInt Stat;
    TICS_BEGAN UllInt Stat;
    TICS_BLKIO UllInt Stat;
    TICS_GUEST UllInt Stat;
    TICS_GUEST_C UllInt Stat;
    TICS_SYSTEM UllInt Stat;
    TICS_SYSTEM_C UllInt Stat;
    TICS_USER UllInt Stat;
    TICS_USER_C UllInt Stat;
    TIME_ALL Real Stat;
    TIME_ALL_C Real Stat;
    TIME_ELAPSED Real Stat;
    TIME_START Real Stat;
    TTY SInt Stat;
    TTY_NAME StrVers Stat;
    TTY_NUMBER StrVers Stat;
    UTILIZATION Real Stat;
    UTILIZATION_C Real Stat;
    VM_DATA UlInt Status;
    VM_EXE UlInt Status;
    VM_LIB UlInt Status;
    VM_RSS UlInt Status;
    VM_RSS_ANON UlInt Status;
    VM_RSS_FILE UlInt Status;
    VM_RSS_LOCKED UlInt Status;
    VM_RSS_SHARED UlInt Status;
    VM_SIZE UlInt Status;
    VM_STACK UlInt Status;
    VM_SWAP UlInt Status;
    VM_USED UlInt Status;
    VSIZE_BYTES UlInt Stat;
    WCHAN_NAME Str Other;
}

impl Item {
    pub(crate) const fn kind(self) -> Kind {
        ALL[self as usize].1
    }

    pub(crate) const fn file(self) -> File {
        ALL[self as usize].2
    }

    /// Whether procps gives its string away, so that an item that is requested twice has it only once. (For values from
    /// procps's own library that library does so itself.)
    pub(crate) const fn is_given_once(self) -> bool {
        use Item::{CGNAME, CGROUP, CGROUP_V, CMD, CMDLINE, ENVIRON, SUPGIDS, SUPGROUPS};
        matches!(
            self,
            CGNAME | CGROUP | CGROUP_V | CMD | CMDLINE | ENVIRON | SUPGIDS | SUPGROUPS
        )
    }
}

/// The items of a soname: the number of an item is its index.
#[derive(Debug)]
pub(crate) struct Table {
    soname: u32,
    items: Vec<Item>,
}

impl Table {
    pub(crate) fn new(soname: u32) -> Self {
        let items = ALL.iter().filter(|(.., since)| *since <= soname);
        Self {
            soname,
            items: items.map(|&(item, ..)| item).collect(),
        }
    }

    pub(crate) fn soname(&self) -> u32 {
        self.soname
    }

    /// One more than the last number.
    pub(crate) fn end(&self) -> u32 {
        self.items.len() as u32
    }

    pub(crate) fn item(&self, number: u32) -> Option<Item> {
        self.items.get(number as usize).copied()
    }

    pub(crate) fn number(&self, item: Item) -> u32 {
        let number = self.items.iter().position(|&other| other == item);
        number.map_or_else(|| self.end(), |number| number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_procps_numbers() {
        let (old, new) = (Table::new(0), Table::new(1));
        assert_eq!((old.end(), new.end()), (157, 162));
        for (item, in_old, in_new) in [
            (Item::NOOP, 0, 0),
            (Item::AUTOGRP_NICE, 8, 8),
            (Item::CGNAME, 9, 10),
            (Item::CMDLINE, 13, 14),
            (Item::WCHAN_NAME, 156, 161),
        ] {
            assert_eq!(
                (old.number(item), new.number(item)),
                (in_old, in_new),
                "{item:?}"
            );
            assert_eq!(
                (old.item(in_old), new.item(in_new)),
                (Some(item), Some(item))
            );
        }
        assert_eq!(old.number(Item::DOCKER_ID), old.end());
    }
}
