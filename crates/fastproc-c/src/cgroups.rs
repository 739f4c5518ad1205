//! A collector of cgroups, and values of its last snapshot by their places.

use std::{mem::offset_of, time::Duration};

use fastproc::cgroups::{
    Cgroup, Cgroups, Fields, Snapshot, Source,
    record::{self, Device, Record},
};

use crate::{constants::FASTPROC_TEXT_CGROUP, failure::Failure, structures::FastprocSnapshot};

/// The groups of a record: the first byte, and the number of bytes.
macro_rules! groups {
    ($($field:ident $member:ident $type:ident,)*) => {
        &[$((Fields::$field, offset_of!(Record, $member), size_of::<record::$type>()),)*]
    };
}

const GROUPS: &[(Fields, usize, usize)] = groups![
    CPU cpu Cpu,
    MEMORY memory Memory,
    MEMORY_STAT memory_stat MemoryStat,
    PIDS pids Pids,
    IO io Io,
    PRESSURE pressure Pressure,
    PRESSURE_AVERAGES pressure_averages PressureAverages,
];

const NOT_KNOWN: Failure = Failure::Unknown(
    c"the value is not known: its controller is not enabled for this cgroup or is on version 1, or this kernel lacks it",
);

/// The state behind a handle.
#[derive(Debug)]
pub(crate) struct Reader {
    cgroups: Cgroups,
    fields: Fields,
    /// Whether the last attempt to make a snapshot succeeded.
    is_there: bool,
    /// A buffer for a path.
    path: Vec<u8>,
}

impl Reader {
    pub(crate) fn open(
        fields: u32,
        source: Option<&[u8]>,
        max_age: Duration,
    ) -> Result<Self, Failure> {
        let Some(fields) = Fields::from_bits(fields) else {
            let unknown = fields & !Fields::all().bits();
            return Err(Failure::Argument(format!(
                "no field has the bits {unknown:#x}: combine the FASTPROC_CGROUPS_* of fastproc.h that this version of the \
                 library knows"
            )));
        };
        let source = match source {
            None | Some(b"auto") => None,
            Some(name) => {
                let source: Result<Source, _> = String::from_utf8_lossy(name).parse();
                Some(source.map_err(|error| Failure::Argument(error.to_string()))?)
            }
        };
        let builder = Cgroups::builder().fields(fields).source(source);
        Ok(Self::new(builder.max_age(max_age).open()?, fields))
    }

    fn new(cgroups: Cgroups, fields: Fields) -> Self {
        Self {
            cgroups,
            fields,
            is_there: false,
            path: Vec::new(),
        }
    }

    pub(crate) fn take_snapshot(&mut self) -> Result<FastprocSnapshot, Failure> {
        self.is_there = false;
        let source = match self.cgroups.source() {
            Source::Bpf => c"bpf",
            Source::Service => c"service",
            _ => c"files",
        };
        let snapshot = self.cgroups.snapshot()?;
        self.is_there = true;
        Ok(FastprocSnapshot {
            count: snapshot.len(),
            left_out: snapshot.left_out(),
            began_ns: snapshot.began_ns(),
            source: source.as_ptr(),
            ..FastprocSnapshot::default()
        })
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, Failure> {
        if !self.is_there {
            return Err(Failure::NoSnapshot);
        }
        Ok(self.cgroups.last())
    }

    pub(crate) fn find(&self, id: u64) -> Result<usize, Failure> {
        let mut all = self.snapshot()?.iter();
        let found = all.position(|cgroup| cgroup.id() == id);
        found.ok_or(Failure::NoSuchId(id))
    }

    fn cgroup(&self, place: usize, fields: Fields) -> Result<Cgroup<'_>, Failure> {
        let cgroup = self.snapshot()?.at(place).ok_or(Failure::Place)?;
        let missing = fields.difference(self.fields);
        if missing.is_empty() {
            Ok(cgroup)
        } else {
            Err(Failure::CgroupNotAsked(missing))
        }
    }

    /// A copy of the record of the cgroup at this place; every bit is set in groups that it lacks.
    pub(crate) fn record(&self, place: usize) -> Result<Record, Failure> {
        let mut copy = *self.cgroup(place, Fields::empty())?.record();
        let has = Fields::from_bits_truncate(copy.identity.groups);
        for &(_, first, bytes) in GROUPS.iter().filter(|(group, ..)| !has.contains(*group)) {
            fastproc::words_mut(&mut copy)[first / 8..(first + bytes) / 8].fill(u64::MAX);
        }
        Ok(copy)
    }

    /// The path of the cgroup at this place, followed by a NUL.
    pub(crate) fn text(&mut self, kind: u32, place: usize) -> Result<&[u8], Failure> {
        if kind != FASTPROC_TEXT_CGROUP {
            return Err(Failure::Argument(
                "a cgroup has no text but its path: FASTPROC_TEXT_CGROUP".into(),
            ));
        }
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.extend_from_slice(self.cgroup(place, Fields::empty())?.path());
        path.push(0);
        self.path = path;
        Ok(&self.path)
    }

    /// A line of memory.stat.
    pub(crate) fn memory_stat(&self, place: usize, name: &str) -> Result<u64, Failure> {
        let cgroup = self.cgroup(place, Fields::MEMORY_STAT)?;
        let line = self.snapshot()?.memory_stat_line(name);
        line.and_then(|line| cgroup.memory_stat_value(line))
            .ok_or(NOT_KNOWN)
    }

    /// Its block device at this place.
    pub(crate) fn device(&self, place: usize, at: usize) -> Result<Device, Failure> {
        let cgroup = self.cgroup(place, Fields::IO)?;
        cgroup.io().ok_or(NOT_KNOWN)?;
        cgroup.devices().get(at).copied().ok_or(Failure::Place)
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::CStr, fs, ptr};

    use fastproc_testbed::Folder;

    use super::*;
    use crate::{constants::*, exports::*, handle, structures::*};

    #[test]
    fn every_group_can_be_marked_as_unknown() {
        let all = GROUPS.iter().map(|(group, ..)| *group);
        assert_eq!(all.collect::<Fields>(), Fields::all());
    }

    #[test]
    fn values_are_those_of_the_files() {
        let folder = Folder::new("c-cgroups");
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        };
        write("cgroup.controllers", "cpu memory io pids\n");
        write("a/b/cgroup.controllers", "\n");
        write("a/b/cpu.stat", "usage_usec 7\nuser_usec 4\nsystem_usec 3\n");
        write("a/b/memory.current", "4096\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.stat", "anon 12\nfile 34\n");
        write(
            "a/b/io.stat",
            "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
        );
        let fields = Fields::CPU | Fields::MEMORY | Fields::MEMORY_STAT | Fields::IO;
        let builder = Cgroups::builder().fields(fields);
        let cgroups = builder.open_recorded(&folder).expect("it is a folder");
        let mut handle = ptr::null_mut();
        // SAFETY: as the header requires, except for the calls that must be refused.
        unsafe {
            let opened = handle::open(&raw mut handle, || {
                let reader = Reader::new(cgroups, fields);
                Ok(handle::Reader::Cgroups(Box::new(reader)))
            });
            assert_eq!(opened, FASTPROC_OK);
            let mut record = Record::default();
            let early = fastproc_get_cgroup(handle, 0, &raw mut record);
            assert_eq!(early, FASTPROC_ERROR_NO_SNAPSHOT);
            let mut taken = FastprocSnapshot::default();
            assert_eq!(fastproc_snapshot(handle, &raw mut taken), FASTPROC_OK);
            assert_eq!((taken.count, CStr::from_ptr(taken.source)), (3, c"files"));
            let beyond = fastproc_get_cgroup(handle, 3, &raw mut record);
            assert_eq!(beyond, FASTPROC_ERROR_ARGUMENT);

            let (mut path, mut length, mut place) = (ptr::null(), 0, 0);
            let mut records = [c"/", c"/a", c"/a/b"].map(|expected| {
                let kind = FASTPROC_TEXT_CGROUP;
                let text = fastproc_text(handle, place, kind, &raw mut path, &raw mut length);
                assert_eq!((text, CStr::from_ptr(path)), (FASTPROC_OK, expected));
                assert_eq!(length, expected.count_bytes());
                let copied = fastproc_get_cgroup(handle, place, &raw mut record);
                assert_eq!(copied, FASTPROC_OK);
                place += 1;
                record
            });
            let [_, a, b] = &mut records;
            assert_eq!(b.identity.parent, a.identity.id);
            assert_eq!(
                fastproc_find(handle, b.identity.id, &raw mut place),
                FASTPROC_OK
            );
            assert_eq!(place, 2);
            let none = fastproc_find(handle, u64::MAX, &raw mut place);
            assert_eq!(none, FASTPROC_ERROR_NO_PROCESS);
            // A group that is not there, a value that the file lacks, a limit that is not set, a group that was not asked for.
            assert_eq!((a.cpu.usage_ns, b.cpu.usage_ns), (u64::MAX, 7000));
            assert_eq!((b.cpu.nice_ns(), b.cpu.periods()), (None, None));
            assert_eq!(b.memory.current(), Some(4096));
            assert_eq!(b.memory.max(), Some(record::UNLIMITED));
            assert_eq!(b.pressure.io_full_ns, u64::MAX);
            let mut value = 0;
            let mut line = |name: &CStr| {
                let result = fastproc_memory_stat(handle, 2, name.as_ptr(), &raw mut value);
                (result, value)
            };
            assert_eq!(line(c"file"), (FASTPROC_OK, 34));
            assert_eq!(line(c"none"), (FASTPROC_UNKNOWN, u64::MAX));
            let mut device = Device::default();
            let copied = fastproc_get_device(handle, 2, 0, &raw mut device);
            assert_eq!((copied, device.major, device.minor), (FASTPROC_OK, 8, 16));
            assert_eq!(fastproc::words(&device)[1..], [1, 2, 5, 3, 4, 6]);
            let beyond = fastproc_get_device(handle, 2, 1, &raw mut device);
            assert_eq!(beyond, FASTPROC_ERROR_ARGUMENT);
            let mut process = fastproc::record::Record::default();
            let other = fastproc_get(handle, 0, &raw mut process);
            assert_eq!(other, FASTPROC_ERROR_ARGUMENT);
            assert_eq!(fastproc_close(handle), FASTPROC_OK);
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for (fields, source) in [(1 << 30, None), (0, Some(&b"procfs"[..]))] {
            let refused = Reader::open(fields, source, Duration::ZERO);
            assert!(matches!(refused, Err(Failure::Argument(_))), "{refused:?}");
        }
    }
}
