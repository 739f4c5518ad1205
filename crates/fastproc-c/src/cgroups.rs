//! A collector of cgroups, and values of its last snapshot by their places.

use std::time::Duration;

use fastproc::cgroups::{
    Cgroup, Cgroups, Fields, Snapshot, Source,
    record::{Device, PageSize, Resource},
};

use crate::failure::Failure;

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
                Some(source.map_err(Failure::Argument)?)
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

    pub(crate) fn source(&self) -> Source {
        self.cgroups.source()
    }

    pub(crate) fn take_snapshot(&mut self) -> Result<(), Failure> {
        self.is_there = false;
        self.cgroups.snapshot()?;
        self.is_there = true;
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, Failure> {
        if !self.is_there {
            return Err(Failure::NoCgroups);
        }
        Ok(self.cgroups.last())
    }

    pub(crate) fn count(&self) -> Result<usize, Failure> {
        Ok(self.snapshot()?.len())
    }

    pub(crate) fn left_out(&self) -> Result<usize, Failure> {
        Ok(self.snapshot()?.left_out())
    }

    pub(crate) fn began_ns(&self) -> Result<u64, Failure> {
        Ok(self.snapshot()?.began_ns())
    }

    pub(crate) fn find(&self, path: &[u8]) -> Result<usize, Failure> {
        let mut all = self.snapshot()?.iter();
        let found = all.position(|cgroup| cgroup.path() == path);
        found.ok_or_else(|| Failure::NoCgroup(String::from_utf8_lossy(path).into_owned()))
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

    /// A value of the cgroup at this place.
    pub(crate) fn of_cgroup<T>(
        &self,
        place: usize,
        fields: u32,
        get: impl FnOnce(Cgroup<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let cgroup = self.cgroup(place, Fields::from_bits_truncate(fields))?;
        get(cgroup).ok_or(NOT_KNOWN)
    }

    /// The path of the cgroup at this place, followed by a NUL.
    pub(crate) fn path(&mut self, place: usize) -> Result<&[u8], Failure> {
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

    /// The share of the last 10, 60 or 300 seconds in which some or all tasks waited.
    pub(crate) fn pressure_share(
        &self,
        place: usize,
        resource: Resource,
        full: bool,
        window: usize,
    ) -> Result<f64, Failure> {
        let cgroup = self.cgroup(place, Fields::PRESSURE)?;
        let shares = cgroup.pressure().ok_or(NOT_KNOWN)?.shares(resource);
        Ok(f64::from(shares[usize::from(full)][window]) / 10_000.0)
    }

    /// Its block devices.
    pub(crate) fn devices(&self, place: usize) -> Result<&[Device], Failure> {
        let cgroup = self.cgroup(place, Fields::IO)?;
        cgroup.io().ok_or(NOT_KNOWN)?;
        Ok(cgroup.devices())
    }

    /// Its sizes of huge pages.
    pub(crate) fn page_sizes(&self, place: usize) -> Result<&[PageSize], Failure> {
        let cgroup = self.cgroup(place, Fields::HUGETLB)?;
        cgroup.hugetlb().ok_or(NOT_KNOWN)?;
        Ok(cgroup.page_sizes())
    }

    /// Its CPU time by CPU.
    pub(crate) fn time_by_cpu(&self, place: usize) -> Result<&[u64], Failure> {
        let cgroup = self.cgroup(place, Fields::CPU_TIMES)?;
        cgroup.cpu_times().ok_or(NOT_KNOWN)?;
        Ok(cgroup.time_by_cpu())
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::c_int, fs, ptr};

    use fastproc_testbed::Folder;

    use super::*;
    use crate::{accessors::*, cgroup_exports::*, constants::*, handle};

    /// A value, or the error.
    fn value<T: Default>(get: impl FnOnce(*mut T) -> c_int) -> Result<T, c_int> {
        let mut value = T::default();
        match get(&raw mut value) {
            FASTPROC_OK => Ok(value),
            error => Err(error),
        }
    }

    #[test]
    fn values_are_those_of_the_files() {
        let folder = Folder::new("c-cgroups");
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        };
        write("cgroup.controllers", "cpu hugetlb memory io pids\n");
        write("a/b/cgroup.controllers", "hugetlb\n");
        write("a/b/hugetlb.2MB.current", "4194304\n");
        write("a/b/hugetlb.2MB.max", "max\n");
        write("a/b/cpu.stat", "usage_usec 7\nuser_usec 4\nsystem_usec 3\n");
        write("a/b/memory.current", "4096\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.stat", "anon 12\nfile 34\n");
        write(
            "a/b/io.stat",
            "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
        );
        let stall = "some avg10=1.25 avg60=2.50 avg300=0.00 total=5\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=4\n";
        for resource in ["cpu", "memory", "io"] {
            write(&format!("a/b/{resource}.pressure"), stall);
        }
        let fields = Fields::all() - Fields::PIDS;
        let builder = Cgroups::builder().fields(fields);
        let cgroups = builder.open_recorded(&folder).expect("it is a folder");
        let mut handle = ptr::null_mut();
        // SAFETY: as the header requires, except for the calls that must be refused.
        unsafe {
            let opened = handle::open(&raw mut handle, || Ok(Reader::new(cgroups, fields)));
            assert_eq!(opened, FASTPROC_OK);
            assert_eq!(fastproc_cgroups_count(handle), 0);
            let id = |index| value(|to| fastproc_cgroups_identity_id(handle, index, to));
            assert_eq!(id(0), Err(FASTPROC_ERROR_NO_SNAPSHOT));
            assert_eq!(fastproc_cgroups_snapshot(handle), FASTPROC_OK);
            assert_eq!(fastproc_cgroups_count(handle), 3);
            let find = |path: &std::ffi::CStr| {
                value(|to| fastproc_cgroups_find(handle, path.as_ptr(), to))
            };
            assert_eq!(find(c"/nothing"), Err(FASTPROC_ERROR_NO_PROCESS));
            let [a, b] = [c"/a", c"/a/b"].map(|path| find(path).expect("the cgroup is shown"));
            assert_eq!(id(3), Err(FASTPROC_ERROR_ARGUMENT));
            let parent = value(|to| fastproc_cgroups_identity_parent(handle, b, to));
            assert_eq!(parent, id(a));
            let (mut path, mut length) = (ptr::null(), 0);
            let written = fastproc_cgroups_path(handle, b, &raw mut path, &raw mut length);
            assert_eq!((written, length), (FASTPROC_OK, 4));
            assert_eq!(std::ffi::CStr::from_ptr(path), c"/a/b");
            let usage = |index| value(|to| fastproc_cgroups_cpu_usage_ns(handle, index, to));
            assert_eq!((usage(b), usage(a)), (Ok(7000), Err(FASTPROC_UNKNOWN)));
            let nice = value(|to| fastproc_cgroups_cpu_nice_ns(handle, b, to));
            assert_eq!(nice, Err(FASTPROC_UNKNOWN));
            let current = value(|to| fastproc_cgroups_memory_current_bytes(handle, b, to));
            let max = value(|to| fastproc_cgroups_memory_max_bytes(handle, b, to));
            assert_eq!((current, max), (Ok(4096), Ok(FASTPROC_NO_LIMIT)));
            let tasks = value(|to| fastproc_cgroups_pids_current(handle, b, to));
            assert_eq!(tasks, Err(FASTPROC_ERROR_NOT_ASKED));
            let line = |name: &std::ffi::CStr| {
                value(|to| fastproc_cgroups_memory_stat(handle, b, name.as_ptr(), to))
            };
            assert_eq!(
                (line(c"file"), line(c"none")),
                (Ok(34), Err(FASTPROC_UNKNOWN))
            );
            let share = |resource, full, seconds| {
                value(|to| fastproc_cgroups_pressure_share(handle, b, resource, full, seconds, to))
            };
            assert_eq!(share(FASTPROC_PRESSURE_IO, false, 60), Ok(0.025));
            assert_eq!(share(FASTPROC_PRESSURE_CPU, true, 10), Ok(0.005));
            for (resource, seconds) in [(3, 10), (-1, 10), (0, 11)] {
                assert_eq!(
                    share(resource, false, seconds),
                    Err(FASTPROC_ERROR_ARGUMENT)
                );
            }
            assert_eq!(fastproc_cgroups_device_count(handle, b), 1);
            let device = value(|to| fastproc_cgroups_device(handle, b, 0, to));
            let expected = FastprocDevice {
                major: 8,
                minor: 16,
                rbytes: 1,
                wbytes: 2,
                dbytes: 5,
                rios: 3,
                wios: 4,
                dios: 6,
            };
            assert_eq!(device, Ok(expected));
            let device = value(|to| fastproc_cgroups_device(handle, b, 1, to));
            assert_eq!(device, Err(FASTPROC_ERROR_ARGUMENT));
            let pages = value(|to| fastproc_cgroups_hugetlb_current_bytes(handle, b, to));
            assert_eq!(
                (pages, fastproc_cgroups_page_size_count(handle, b)),
                (Ok(4 << 20), 1)
            );
            let size = value(|to| fastproc_cgroups_page_size(handle, b, 0, to));
            let expected = FastprocPageSize {
                size: 2 << 20,
                current: 4 << 20,
                max: FASTPROC_NO_LIMIT,
                reserved: u64::MAX,
                reserved_max: u64::MAX,
                failures: u64::MAX,
            };
            assert_eq!(size, Ok(expected));
            let size = value(|to| fastproc_cgroups_page_size(handle, b, 1, to));
            assert_eq!(size, Err(FASTPROC_ERROR_ARGUMENT));
            // Only the source bpf has these.
            assert_eq!(fastproc_cgroups_cpu_count(handle, b), 0);
            let time = value(|to| fastproc_cgroups_cpu_time_ns(handle, b, 0, to));
            assert_eq!(time, Err(FASTPROC_UNKNOWN));
            assert_eq!(fastproc_cgroups_close(handle), FASTPROC_OK);
            assert_eq!(id(b), Err(FASTPROC_ERROR_CLOSED));
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
