//! What drivers say of the use of GPUs, in `/proc/PID/fdinfo/N` of an open device: `Documentation/gpu/drm-usage-stats.rst` of the
//! kernel.

use std::{collections::HashMap, fs};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Mode, OFlags, open, openat, statat},
};

use super::{
    groups::Kind,
    object::layout::{GPU_MAJOR, Record},
    snapshot::Device,
    tables::Tables,
};
use crate::base::{proc_root, whole_file::read_whole};

/// The most engines, and the most regions, that are read of a text, and the most devices of a process that are asked.
const MOST: usize = 64;

/// A client of a GPU: an open device of `/dev/dri`. Duplicated and inherited descriptors are one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuClient {
    id: u64,
    driver: String,
    bus_address: Option<String>,
    engines: Vec<GpuEngine>,
    regions: Vec<GpuRegion>,
}

/// A part of a GPU that works, and what it did for a client. Drivers tell time or cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuEngine {
    /// Its name in the driver, as in `render`.
    pub name: String,
    /// How many of it there are: `drm-engine-capacity-…`.
    pub capacity: u64,
    /// How long it worked, in nanoseconds: `drm-engine-…`.
    pub busy_ns: Option<u64>,
    /// Cycles that it worked: `drm-cycles-…`.
    pub cycles: Option<u64>,
    /// Cycles of its clock: `drm-total-cycles-…`.
    pub total_cycles: Option<u64>,
}

/// A kind of memory, and what a client has of it, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuRegion {
    /// Its name in the driver, as in `vram`.
    pub name: String,
    /// The size of all buffers, with shared ones: `drm-total-…`.
    pub total: Option<u64>,
    /// What of it is in memory: `drm-resident-…`, or `drm-memory-…` of older drivers.
    pub resident: Option<u64>,
}

impl GpuClient {
    /// Its number: `drm-client-id`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The driver: `drm-driver`.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// The address of a device on the PCI bus, as in `0000:03:00.0`: `drm-pdev`.
    pub fn bus_address(&self) -> Option<&str> {
        self.bus_address.as_deref()
    }

    /// What the engines did for it since it was opened.
    pub fn engines(&self) -> &[GpuEngine] {
        &self.engines
    }

    /// Its memory.
    pub fn regions(&self) -> &[GpuRegion] {
        &self.regions
    }

    /// How long engines worked for it, in nanoseconds: the sum of all. `None`: the driver tells no times.
    pub fn busy_ns(&self) -> Option<u64> {
        sum(self.engines.iter().map(|engine| engine.busy_ns))
    }

    /// How long engines worked for it since an earlier reading of the same client, in nanoseconds: the sum of all. `elapsed_ns`
    /// passed meanwhile; of drivers that tell cycles, the same part of it as of the cycles. `None`: it is not known.
    pub fn busy_since(&self, before: &Self, elapsed_ns: u64) -> Option<u64> {
        let worked = self.engines.iter().map(|engine| {
            let mut earlier = before.engines.iter();
            let earlier = earlier.find(|earlier| earlier.name == engine.name)?;
            let more = |of: fn(&GpuEngine) -> Option<u64>| of(engine)?.checked_sub(of(earlier)?);
            more(|engine| engine.busy_ns).or_else(|| {
                let all = more(|engine| engine.total_cycles).filter(|&cycles| cycles > 0)?;
                let part = more(|engine| engine.cycles)? as f64 / all as f64;
                Some((part * elapsed_ns as f64) as u64)
            })
        });
        sum(worked)
    }

    /// Whether both are readings of the same client.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.id, &self.bus_address) == (other.id, &other.bus_address)
    }

    /// Bytes of its buffers that are in memory: the sum of all regions. `None`: the driver does not tell it.
    pub fn memory(&self) -> Option<u64> {
        sum(self.regions.iter().map(|region| region.resident))
    }

    fn engine(&mut self, name: &str) -> Option<&mut GpuEngine> {
        let new = || GpuEngine {
            name: name.into(),
            capacity: 1,
            busy_ns: None,
            cycles: None,
            total_cycles: None,
        };
        entry(&mut self.engines, |known| known.name == name, new)
    }

    fn region(&mut self, name: &str) -> Option<&mut GpuRegion> {
        let new = || GpuRegion {
            name: name.into(),
            total: None,
            resident: None,
        };
        entry(&mut self.regions, |known| known.name == name, new)
    }

    /// Adds what a line says. Keys that are not known are left out.
    fn add(&mut self, key: &str, value: &str) -> Option<()> {
        if key == "driver" {
            self.driver = value.into();
        } else if key == "pdev" {
            self.bus_address = Some(value.into());
        } else if let Some(engine) = key.strip_prefix("engine-capacity-") {
            self.engine(engine)?.capacity = value.parse().ok().filter(|&count| count > 0)?;
        } else if let Some(engine) = key.strip_prefix("engine-") {
            self.engine(engine)?.busy_ns = value.strip_suffix("ns")?.trim_end().parse().ok();
        } else if let Some(engine) = key.strip_prefix("total-cycles-") {
            self.engine(engine)?.total_cycles = value.parse().ok();
        } else if let Some(engine) = key.strip_prefix("cycles-") {
            self.engine(engine)?.cycles = value.parse().ok();
        } else if let Some(region) = key.strip_prefix("total-") {
            self.region(region)?.total = bytes(value);
        } else if let Some(region) = key.strip_prefix("resident-") {
            self.region(region)?.resident = bytes(value);
        } else if let Some(region) = key.strip_prefix("memory-") {
            let region = self.region(region)?;
            region.resident = region.resident.or(bytes(value));
        }
        Some(())
    }

    /// Reads a text of fdinfo. `None`: the file is none of a GPU, or its driver tells nothing.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut client = Self::default();
        let mut id = None;
        for line in text.split(|&byte| byte == b'\n') {
            let line = str::from_utf8(line).ok();
            let line = line.and_then(|line| line.strip_prefix("drm-")?.split_once(':'));
            match line.map(|(key, value)| (key, value.trim())) {
                Some(("client-id", value)) => id = value.parse().ok(),
                Some((key, value)) => {
                    client.add(key, value);
                }
                None => {}
            }
        }
        client.id = id?;
        Some(client)
    }
}

fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.flatten().reduce(u64::saturating_add)
}

fn entry<T>(
    list: &mut Vec<T>,
    is_it: impl Fn(&T) -> bool,
    new: impl FnOnce() -> T,
) -> Option<&mut T> {
    let at = list.iter().position(is_it).unwrap_or(list.len());
    if at == MOST {
        return None;
    }
    if at == list.len() {
        list.push(new());
    }
    list.get_mut(at)
}

fn bytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let shift = match unit.trim() {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The clients of a snapshot, each once.
#[derive(Debug, Default)]
pub(super) struct Clients {
    found: Vec<GpuClient>,
    /// By number and bus address.
    known: HashMap<(u64, Option<String>), usize>,
    /// By the place of a record.
    of_record: HashMap<u32, usize>,
}

impl Clients {
    /// The client that this record is.
    pub(super) fn find(&self, place: u32) -> Option<&GpuClient> {
        self.found.get(*self.of_record.get(&place)?)
    }

    pub(super) fn clear(&mut self) {
        self.found.clear();
        self.known.clear();
        self.of_record.clear();
    }

    /// Asks the drivers of the GPUs that processes have open.
    pub(super) fn read(&mut self, tables: Tables<'_>) {
        let mut text = Vec::new();
        for process in tables.processes {
            let first = process.first as usize;
            let records = first..first + process.records as usize;
            let mut records = records.filter(|&at| is_gpu(&tables.records[at])).peekable();
            if records.peek().is_none() {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = proc_root::path(&format!("/proc/{}", process.tgid)).into_owned();
            let Ok(folder) = open(path, flags, Mode::empty()) else {
                continue;
            };
            for at in records.take(MOST) {
                let record = &tables.records[at];
                if read_fdinfo(&folder, record, &mut text).is_some() {
                    self.add(at as u32, record.rdev, &text);
                }
            }
        }
    }

    fn add(&mut self, place: u32, device: u32, text: &[u8]) {
        let Some(mut client) = GpuClient::parse(text) else {
            return;
        };
        client.bus_address.get_or_insert_with(|| {
            let Device { major, minor } = Device::from_kernel(device);
            format!("{major}:{minor}")
        });
        let key = (client.id, client.bus_address.clone());
        let at = *self.known.entry(key).or_insert(self.found.len());
        if at == self.found.len() {
            self.found.push(client);
        }
        self.of_record.insert(place, at);
    }
}

/// Whether this is an open GPU.
pub(super) fn is_gpu(record: &Record) -> bool {
    record.kind == Kind::Character.number() && Device::from_kernel(record.rdev).major == GPU_MAJOR
}

/// Reads the text of a descriptor, if it is still open on this device.
fn read_fdinfo(folder: &OwnedFd, record: &Record, text: &mut Vec<u8>) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = format!("fdinfo/{}", record.fd);
    let file = openat(folder, path, flags, Mode::empty()).ok()?;
    read_whole(&file, text).ok()?;
    let stat = statat(folder, format!("fd/{}", record.fd), AtFlags::empty()).ok()?;
    (Device::from_stat(stat.st_rdev).to_kernel() == record.rdev).then_some(())
}

/// Whether this machine has a GPU with a driver of the kernel's: without one no process uses one.
pub fn has_gpu() -> bool {
    let entries = fs::read_dir(proc_root::path("/sys/class/drm"));
    let mut names = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name()));
    names.any(|name| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"card") || name.starts_with(b"renderD")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AMDGPU: &[u8] = include_bytes!("fdinfo/amdgpu");
    const I915: &[u8] = include_bytes!("fdinfo/i915");
    const XE: &[u8] = include_bytes!("fdinfo/xe");
    const MSM: &[u8] = include_bytes!("fdinfo/msm");

    fn client(text: &[u8]) -> GpuClient {
        GpuClient::parse(text).expect("the text of a GPU")
    }

    fn engine(client: &GpuClient, name: &str) -> GpuEngine {
        let mut engines = client.engines.iter();
        let found = engines.find(|engine| engine.name == name);
        found.expect("the engine is there").clone()
    }

    #[test]
    fn each_driver_tells_time_and_memory_in_its_way() {
        let drivers = [AMDGPU, I915, XE, MSM].map(|text| {
            let client = client(text);
            let address = client.bus_address.clone().unwrap_or_default();
            let numbers = [client.busy_ns(), client.memory()];
            (
                client.driver,
                address,
                client.id,
                client.engines.len(),
                numbers,
            )
        });
        let expected = [
            (
                "amdgpu",
                "0000:03:00.0",
                9,
                3,
                [Some(5_166), Some((1_040 + 300) << 10)],
            ),
            (
                "i915",
                "0000:00:02.0",
                7,
                4,
                [Some(11_323_935_831), Some(120 << 10)],
            ),
            (
                "xe",
                "0000:03:00.0",
                3,
                5,
                [None, Some((192 + 23_992) << 10)],
            ),
            ("msm", "", 12, 1, [Some(90_000), Some(3 << 20)]),
        ];
        let expected = expected.map(|(driver, address, id, engines, numbers)| {
            (driver.to_owned(), address.to_owned(), id, engines, numbers)
        });
        assert_eq!(drivers, expected);
        assert_eq!(engine(&client(I915), "video").capacity, 2);
        let compute = engine(&client(XE), "ccs");
        assert_eq!(
            (compute.capacity, compute.cycles, compute.total_cycles),
            (4, Some(5), Some(7_655_183_225))
        );
        assert_eq!(engine(&client(MSM), "gpu").cycles, Some(4_500));
        let vram = client(AMDGPU)
            .regions
            .iter()
            .find(|region| region.name == "vram")
            .cloned();
        let vram = vram.expect("the region is there");
        assert_eq!(
            (vram.total, vram.resident),
            (Some(2 << 20), Some(1_040 << 10))
        );
    }

    #[test]
    fn engines_work_for_a_part_of_the_time() {
        let later = |text: &[u8], from: &str, to: &str| {
            let text = str::from_utf8(text).expect("text");
            assert!(text.contains(from), "{from}");
            client(text.replace(from, to).as_bytes())
        };
        let now = later(I915, "9288864723 ns", "9288865723 ns");
        assert_eq!(now.busy_since(&client(I915), 5_000), Some(1_000));
        let ticked = later(XE, "7655183225", "7655184225");
        assert_eq!(ticked.busy_since(&client(XE), 5_000), Some(0));
        let text = str::from_utf8(XE)
            .expect("text")
            .replace("28257900", "28258000");
        let now = later(text.as_bytes(), "7655183225", "7655184225");
        assert_eq!(now.busy_since(&client(XE), 5_000), Some(500));
        assert_eq!(client(XE).busy_since(&client(XE), 5_000), None);
        assert!(now.is_same(&client(XE)) && !now.is_same(&client(AMDGPU)));
    }

    #[test]
    fn a_client_is_found_by_each_of_its_descriptors_and_counted_once() {
        let mut clients = Clients::default();
        clients.add(4, 226 << 20 | 128, AMDGPU);
        clients.add(9, 226 << 20 | 128, AMDGPU);
        clients.add(11, 226 << 20, I915);
        // No address: the device tells two of one number apart.
        clients.add(12, 226 << 20 | 1, b"drm-client-id: 9\n");
        clients.add(13, 226 << 20 | 2, b"drm-client-id: 9\n");
        clients.add(14, 226 << 20 | 2, b"pos:\t0\n");
        assert_eq!(clients.found.len(), 4);
        let found = |place| clients.find(place).map(|client| client.driver.as_str());
        assert_eq!(
            [4, 9, 11].map(found),
            [Some("amdgpu"), Some("amdgpu"), Some("i915")]
        );
        assert_eq!([12, 14].map(found), [Some(""), None]);
    }

    #[test]
    fn a_value_without_a_number_is_not_known() {
        let text = b"drm-client-id: 1\ndrm-engine-a: 5\ndrm-engine-b: x ns\ndrm-engine-capacity-c: 0\n\
            drm-total-m: 18446744073709551615 KiB\ndrm-resident-m: 5 furlongs\ndrm-memory-n: -1\ndrm-:\n";
        let client = client(text);
        assert_eq!((client.busy_ns(), client.memory()), (None, None));
        assert!(client.engines.iter().all(|engine| engine.capacity == 1));
        assert_eq!(client.regions[0].total, None);
        assert_eq!(GpuClient::parse(b"drm-driver: x\ndrm-client-id: y\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(bytes: Vec<u8>, at: prop::sample::Index, which in 0..4_usize) {
            let mut text = [AMDGPU, I915, XE, MSM][which].to_vec();
            text.splice(at.index(text.len()).., bytes.iter().copied());
            let _ = GpuClient::parse(&text);
            let lines = bytes.iter().map(|byte| format!("drm-engine-{byte}: {byte} ns\n"));
            let many = lines.collect::<String>() + "drm-client-id: 1";
            let client = GpuClient::parse(many.as_bytes()).expect("an id");
            prop_assert!(client.engines.len() <= MOST);
        }
    }
}
