//! The kernel's files of a cgroup, rendered from its record.

use std::io::Write as _;

use super::{Cgroup, Fields, Snapshot, record::UNLIMITED};

macro_rules! files {
    ($($group:ident: $($variant:ident $name:literal),*;)*) => {
        /// A file of a cgroup that is rendered from records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum TextFile {
            $($(#[doc = concat!("`", $name, "`")] $variant),*),*
        }

        impl TextFile {
            /// All files.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),*),*];

            /// The name of the file.
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name),*),* }
            }

            const fn group(self) -> Fields {
                match self { $($(Self::$variant => Fields::$group),*),* }
            }
        }
    };
}

files! {
    CPU:
    CpuStat "cpu.stat",
    CpuMax "cpu.max",
    CpuWeight "cpu.weight";
    MEMORY:
    MemoryCurrent "memory.current",
    MemoryPeak "memory.peak",
    MemoryMin "memory.min",
    MemoryLow "memory.low",
    MemoryHigh "memory.high",
    MemoryMax "memory.max",
    MemoryOomGroup "memory.oom.group",
    MemoryEvents "memory.events",
    MemoryEventsLocal "memory.events.local",
    MemorySwapCurrent "memory.swap.current",
    MemorySwapPeak "memory.swap.peak",
    MemorySwapHigh "memory.swap.high",
    MemorySwapMax "memory.swap.max",
    MemorySwapEvents "memory.swap.events";
    MEMORY_STAT:
    MemoryStat "memory.stat";
    PIDS:
    PidsCurrent "pids.current",
    PidsMax "pids.max",
    PidsPeak "pids.peak";
    IO:
    IoStat "io.stat";
}

/// The files of every cgroup.
const OF_ALL: [&str; 3] = ["cgroup.stat", "cgroup.events", "cgroup.type"];
/// The files of pressure, which are never rendered: they have averages, too.
pub(super) const PRESSURE: [&str; 3] = ["cpu.pressure", "memory.pressure", "io.pressure"];

impl Fields {
    /// The files that hold the fields of one group, or of none: those that say what a cgroup is. The first exists
    /// wherever the group does; some kernels lack others.
    pub fn files(self) -> Vec<&'static str> {
        match self {
            Self::PRESSURE => PRESSURE.into(),
            group if group.is_empty() => OF_ALL.into(),
            group => {
                let files = TextFile::ALL.iter().filter(|file| file.group() == group);
                files.map(|file| file.name()).collect()
            }
        }
    }
}

impl Snapshot<'_> {
    /// Appends the text of a file, as the kernel prints it. Returns false if the cgroup lacks the file, or if a value
    /// is unknown.
    pub fn render(self, cgroup: Cgroup<'_>, file: TextFile, text: &mut Vec<u8>) -> bool {
        self.write(cgroup, file, text).is_some()
    }

    fn write(self, cgroup: Cgroup<'_>, file: TextFile, text: &mut Vec<u8>) -> Option<()> {
        match file {
            TextFile::CpuStat => cpu_stat(cgroup, text),
            TextFile::CpuMax => {
                let cpu = cgroup.cpu()?;
                let period = cpu.period_ns()? / 1000;
                match cpu.quota_ns()? {
                    UNLIMITED => writeln!(text, "max {period}").ok(),
                    quota => writeln!(text, "{} {period}", quota / 1000).ok(),
                }
            }
            TextFile::MemoryStat => {
                // Write nothing unless all lines are known.
                let values = self
                    .memory_stat_lines()
                    .map(|(line, name)| Some((name, cgroup.memory_stat_value(line)?)));
                for (name, value) in values.collect::<Option<Vec<_>>>()? {
                    writeln!(text, "{name} {value}").ok()?;
                }
                cgroup.memory_stat().map(drop)
            }
            TextFile::MemoryEvents | TextFile::MemoryEventsLocal => {
                let memory = cgroup.memory()?;
                let values = if file == TextFile::MemoryEvents {
                    [
                        Some(memory.events_low()?),
                        memory.events_high(),
                        memory.events_max(),
                        memory.events_oom(),
                        memory.oom_kills(),
                        memory.oom_group_kills(),
                        memory.sock_throttled(),
                    ]
                } else {
                    [
                        Some(memory.local_low()?),
                        memory.local_high(),
                        memory.local_max(),
                        memory.local_oom(),
                        memory.local_oom_kills(),
                        memory.local_oom_group_kills(),
                        memory.local_sock_throttled(),
                    ]
                };
                // Older kernels lack the last two.
                for (name, value) in EVENTS.into_iter().zip(values) {
                    if let Some(value) = value {
                        writeln!(text, "{name} {value}").ok()?;
                    }
                }
                Some(())
            }
            TextFile::MemorySwapEvents => {
                let memory = cgroup.memory()?;
                let values = [
                    memory.swap_events_high()?,
                    memory.swap_events_max()?,
                    memory.swap_events_fail()?,
                ];
                for (name, value) in ["high", "max", "fail"].into_iter().zip(values) {
                    writeln!(text, "{name} {value}").ok()?;
                }
                Some(())
            }
            TextFile::IoStat => {
                cgroup.io()?;
                for device in cgroup.devices() {
                    let super::record::Device {
                        major,
                        minor,
                        rbytes,
                        wbytes,
                        dbytes,
                        rios,
                        wios,
                        dios,
                    } = *device;
                    write!(text, "{major}:{minor} ").ok()?;
                    if rbytes != 0 || wbytes != 0 || rios != 0 || wios != 0 {
                        let values = [
                            ("rbytes", rbytes),
                            ("wbytes", wbytes),
                            ("rios", rios),
                            ("wios", wios),
                        ];
                        for (name, value) in values {
                            write!(text, "{name}={value} ").ok()?;
                        }
                        write!(text, "dbytes={dbytes} dios={dios}").ok()?;
                    }
                    text.push(b'\n');
                }
                Some(())
            }
            _ => match value(cgroup, file)? {
                UNLIMITED => writeln!(text, "max").ok(),
                value => writeln!(text, "{value}").ok(),
            },
        }
    }
}

const EVENTS: [&str; 7] = [
    "low",
    "high",
    "max",
    "oom",
    "oom_kill",
    "oom_group_kill",
    "sock_throttled",
];

/// The number in a file that has a single one.
fn value(cgroup: Cgroup<'_>, file: TextFile) -> Option<u64> {
    let memory = || cgroup.memory();
    match file {
        TextFile::CpuWeight => cgroup.cpu()?.weight(),
        TextFile::MemoryCurrent => memory()?.current(),
        TextFile::MemoryPeak => memory()?.peak(),
        TextFile::MemoryMin => memory()?.min(),
        TextFile::MemoryLow => memory()?.low(),
        TextFile::MemoryHigh => memory()?.high(),
        TextFile::MemoryMax => memory()?.max(),
        TextFile::MemoryOomGroup => memory()?.oom_group(),
        TextFile::MemorySwapCurrent => memory()?.swap_current(),
        TextFile::MemorySwapPeak => memory()?.swap_peak(),
        TextFile::MemorySwapHigh => memory()?.swap_high(),
        TextFile::MemorySwapMax => memory()?.swap_max(),
        TextFile::PidsCurrent => Some(cgroup.pids()?.current),
        TextFile::PidsMax => Some(cgroup.pids()?.max),
        TextFile::PidsPeak => cgroup.pids()?.peak(),
        _ => None,
    }
}

fn cpu_stat(cgroup: Cgroup<'_>, text: &mut Vec<u8>) -> Option<()> {
    let cpu = cgroup.cpu()?;
    let times = [
        ("usage_usec", Some(cpu.usage_ns)),
        ("user_usec", Some(cpu.user_ns)),
        ("system_usec", Some(cpu.system_ns)),
        ("nice_usec", cpu.nice_ns()),
        ("core_sched.force_idle_usec", cpu.forced_idle_ns()),
    ];
    for (name, ns) in times {
        if let Some(ns) = ns {
            writeln!(text, "{name} {}", ns / 1000).ok()?;
        }
    }
    let usec = |ns: Option<u64>| ns.map(|ns| ns / 1000);
    let bandwidth = [
        ("nr_periods", cpu.periods()),
        ("nr_throttled", cpu.throttled()),
        ("throttled_usec", usec(cpu.throttled_ns())),
        ("nr_bursts", cpu.bursts()),
        ("burst_usec", usec(cpu.burst_ns())),
    ];
    for (name, value) in bandwidth {
        if let Some(value) = value {
            writeln!(text, "{name} {value}").ok()?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fastproc_testbed::Folder;

    use super::*;
    use crate::cgroups::Cgroups;

    /// Every file of a cgroup, each number another one.
    const NEW: &[(&str, &str)] = &[
        (
            "cpu.stat",
            "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnice_usec 1\ncore_sched.force_idle_usec 2\nnr_periods 44\n\
             nr_throttled 4\nthrottled_usec 5\nnr_bursts 6\nburst_usec 7\n",
        ),
        ("cpu.max", "2000 10000\n"),
        ("cpu.weight", "111\n"),
        ("memory.current", "8192\n"),
        ("memory.peak", "12288\n"),
        ("memory.min", "16\n"),
        ("memory.low", "17\n"),
        ("memory.high", "18\n"),
        ("memory.max", "19\n"),
        ("memory.oom.group", "1\n"),
        (
            "memory.events",
            "low 20\nhigh 21\nmax 22\noom 23\noom_kill 24\noom_group_kill 25\nsock_throttled 26\n",
        ),
        (
            "memory.events.local",
            "low 30\nhigh 31\nmax 32\noom 33\noom_kill 34\noom_group_kill 35\nsock_throttled 36\n",
        ),
        ("memory.swap.current", "40\n"),
        ("memory.swap.peak", "41\n"),
        ("memory.swap.high", "42\n"),
        ("memory.swap.max", "max\n"),
        ("memory.swap.events", "high 43\nmax 44\nfail 45\n"),
        ("memory.stat", "anon 50\nfile 51\n"),
        ("pids.current", "60\n"),
        ("pids.max", "max\n"),
        ("pids.peak", "61\n"),
        (
            "io.stat",
            "8:0 \n8:16 rbytes=70 wbytes=71 rios=72 wios=73 dbytes=74 dios=75\n\
             259:3 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
        ),
    ];
    /// Those of an older kernel, for a cgroup without a quota.
    const OLD: &[(&str, &str)] = &[
        ("cpu.stat", "usage_usec 3\nuser_usec 1\nsystem_usec 2\n"),
        ("cpu.max", "max 100000\n"),
        ("memory.current", "4096\n"),
        (
            "memory.events",
            "low 20\nhigh 21\nmax 22\noom 23\noom_kill 24\n",
        ),
        (
            "memory.events.local",
            "low 30\nhigh 31\nmax 32\noom 33\noom_kill 34\n",
        ),
        ("pids.current", "1\n"),
        ("pids.max", "2\n"),
    ];

    #[test]
    fn writes_the_files_that_were_read_and_no_others() {
        let folder = Folder::new("cgroup-texts");
        let write = |path: &str, text| {
            fs::write(folder.join(path), text).expect("this user may write to its own folder");
        };
        write("cgroup.controllers", "cpu io memory pids\n");
        let cgroups = [("new", NEW), ("old", OLD)];
        for (name, files) in cgroups {
            fs::create_dir(folder.join(name)).expect("this user may write to its own folder");
            for (file, text) in files {
                write(&format!("{name}/{file}"), text);
            }
        }
        let builder = Cgroups::builder().fields(Fields::ALL_BUT_AVERAGES);
        let mut reader = builder
            .open_recorded(&folder)
            .expect("the folder can be read");
        let snapshot = reader.snapshot().expect("the files can be read");
        for (name, files) in cgroups {
            let cgroup = snapshot.find(format!("/{name}").as_bytes());
            let cgroup = cgroup.expect("the reader finds each folder");
            for &file in TextFile::ALL {
                let mut text = Vec::new();
                let is_known = snapshot.render(cgroup, file, &mut text);
                let text = String::from_utf8(text).expect("a text");
                let read = files.iter().find(|(name, _)| *name == file.name());
                let read = read.map(|(_, text)| *text);
                assert_eq!(is_known.then_some(&*text), read, "{name}/{}", file.name());
            }
        }
        let io = *snapshot.find(b"/new").and_then(Cgroup::io).expect("a sum");
        let sums = [io.rbytes, io.wbytes, io.rios, io.wios, io.dbytes, io.dios];
        assert_eq!(sums, [71, 73, 75, 77, 79, 81]);
    }
}
