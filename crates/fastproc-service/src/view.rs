//! What a reader is shown: what the kernel would show it.

use fastproc::{
    Calibration, Fields, Host, Process,
    access::{Access, Reader},
    exits::Exit,
    record::{ExitRecord, Io, Layout, Record, ThreadRecord},
};

/// What a reader may see. Readers of one view share buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything: root, with the capability that it takes.
    All,
    /// What a user without capabilities may see. The pid stands for nobody.
    Of(Reader),
}

/// What a view shows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it.
    Full,
    /// What everybody may see.
    Public,
    /// The reader shall ask the kernel itself.
    Unsure,
}

impl View {
    /// Who is counted for what this view is lent.
    pub(crate) fn uid(&self) -> u32 {
        match self {
            Self::All => 0,
            Self::Of(reader) => reader.fsuid,
        }
    }

    /// Groups of fields that it takes to tell what this view may see, beside those that are asked for.
    pub(crate) fn needs(&self) -> Fields {
        match self {
            Self::All => Fields::empty(),
            Self::Of(_) => Fields::USERS | Fields::CREDENTIALS | Fields::MEMORY_DETAILS,
        }
    }

    /// What of a process may be shown. `user_ns`: its user namespace, where its record does not tell.
    pub(crate) fn of(&self, process: Process<'_>, user_ns: impl FnOnce() -> u32) -> Shown {
        let Self::Of(reader) = self else {
            return Shown::Full;
        };
        let Some((ids, credentials)) = process.users().zip(process.credentials()) else {
            return Shown::Unsure;
        };
        if reader.access(process) == Access::Granted {
            return Shown::Full;
        }
        let user_ns = match credentials.user_ns {
            0 => user_ns(),
            known => known,
        };
        let users = [ids.uid, ids.euid, ids.suid];
        let groups = [ids.gid, ids.egid, ids.sgid];
        // Over a user namespace of its own making a user has all capabilities; and of its own processes it may see
        // itself, and others as a security module says.
        let is_another = users != [reader.fsuid; 3] || groups != [reader.fsgid; 3];
        if is_another && user_ns == reader.user_ns {
            Shown::Public
        } else {
            Shown::Unsure
        }
    }
}

impl View {
    /// A process that has ended, as it would have been shown.
    pub(crate) fn of_exit(&self, exit: &Exit) -> Exit {
        match self {
            Self::All => *exit,
            Self::Of(reader) => reader.sees(exit),
        }
    }

    /// Whether the arguments of a process that has ended may be shown; its name always may.
    pub(crate) fn shows_arguments(&self, exit: &Exit) -> bool {
        match self {
            Self::All => true,
            Self::Of(reader) => reader.sees_arguments(exit),
        }
    }
}

/// Of a process without memory, as a zombie is, the files that only their owner may read are root's (`task_dump_owner()` of
/// fs/proc/base.c).
pub(crate) fn hide_io_without_memory(record: &mut Record) {
    if record.identity.has_mm == 0 {
        record.identity.groups &= !Fields::IO.bits();
        record.io = Io::default();
    }
}

/// Takes away what the kernel does not show to everybody, and what it shows less precisely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    pub(crate) tick_ns: u64,
    /// What readers' clocks are ahead of that of start times: where ticks begin.
    pub(crate) boot_offset_ns: i64,
    pub(crate) thp_disable_bit: Option<u32>,
}

impl Mask {
    pub(crate) fn new(host: &Host, calibration: Calibration) -> Self {
        Self {
            tick_ns: 1_000_000_000 / host.ticks_per_second.max(1),
            boot_offset_ns: host.boot_offset_ns,
            thp_disable_bit: calibration.thp_disable_bit,
        }
    }

    fn round(&self, time_ns: &mut u64) {
        *time_ns -= *time_ns % self.tick_ns;
    }

    fn round_start(&self, start_ns: &mut u64) {
        let shown = start_ns.saturating_add_signed(self.boot_offset_ns);
        *start_ns = start_ns.saturating_sub(shown % self.tick_ns);
    }

    pub(crate) fn record(&self, record: &mut Record) {
        let identity = &mut record.identity;
        self.round_start(&mut identity.start_ns);
        identity.exit_code = 0;
        identity.wchan = 0;
        identity.on_cpu = 0;
        identity.masked = 1;
        identity.groups &= !Fields::IO.bits();
        record.layout = Layout::default();
        record.io = Io::default();
        // `/proc/PID/ns` is for those who could trace the process.
        record.credentials.user_ns = 0;
        record.memory.mm_users = 0;
        record.memory_details.mm_flags &= self.thp_disable_bit.map_or(0, |bit| 1 << bit);
        let cpu = &mut record.cpu;
        for time in [
            &mut cpu.utime_ns,
            &mut cpu.stime_ns,
            &mut cpu.gtime_ns,
            &mut cpu.cutime_ns,
            &mut cpu.cstime_ns,
            &mut cpu.cgtime_ns,
            &mut cpu.sampled_utime_ns,
            &mut cpu.sampled_stime_ns,
            &mut cpu.prev_utime_ns,
            &mut cpu.prev_stime_ns,
            &mut record.scheduling_details.blkio_ns,
        ] {
            self.round(time);
        }
    }

    /// What is not shown at all is not there any more.
    pub(crate) fn exit(&self, exit: &mut ExitRecord) {
        self.round_start(&mut exit.start_ns);
        self.round_start(&mut exit.end_ns);
        for time in [
            &mut exit.utime_ns,
            &mut exit.stime_ns,
            &mut exit.gtime_ns,
            &mut exit.cutime_ns,
            &mut exit.cstime_ns,
            &mut exit.cgtime_ns,
        ] {
            self.round(time);
        }
    }

    pub(crate) fn thread(&self, thread: &mut ThreadRecord) {
        thread.io = Io::default();
        self.round_start(&mut thread.start_ns);
        for time in [
            &mut thread.utime_ns,
            &mut thread.stime_ns,
            &mut thread.gtime_ns,
            &mut thread.sampled_utime_ns,
            &mut thread.sampled_stime_ns,
            &mut thread.prev_utime_ns,
            &mut thread.prev_stime_ns,
        ] {
            self.round(time);
        }
    }
}

#[cfg(test)]
mod tests;
