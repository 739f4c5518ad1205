//! Frequencies and temperatures in /sys: few in a virtual machine.

use std::{fs, io::Read, path::Path};

use crate::{
    exposition::{Exposition, Family, Value, escape},
    names,
};

const CPU: &[&str] = &["cpu"];
const COOLING: &[&str] = &["name", "type"];

crate::metrics::families! {
    FREQUENCY = "node_cpu_frequency_hertz" Gauge CPU, "Frequency of a CPU, as the hardware says. --collector.cpufreq, as the next.";
    FREQUENCY_MIN = "node_cpu_frequency_min_hertz" Gauge CPU, "Lowest frequency of a CPU.";
    FREQUENCY_MAX = "node_cpu_frequency_max_hertz" Gauge CPU, "Highest frequency of a CPU.";
    SCALING = "node_cpu_scaling_frequency_hertz" Gauge CPU, "Frequency of a CPU, as the kernel has set it.";
    SCALING_MIN = "node_cpu_scaling_frequency_min_hertz" Gauge CPU, "Lowest frequency that the kernel may set.";
    SCALING_MAX = "node_cpu_scaling_frequency_max_hertz" Gauge CPU, "Highest frequency that the kernel may set.";
    GOVERNOR = "node_cpu_scaling_governor" Gauge &["cpu", "governor"], "1 for the governor that sets a CPU's frequency, 0 for the others that there are.";
    TEMPERATURE = "node_thermal_zone_temp" Gauge &["zone", "type"], "Temperature of a zone, in degrees Celsius. --collector.thermal_zone, as the next.";
    COOLING_NOW = "node_cooling_device_cur_state" Gauge COOLING, "How much a device cools.";
    COOLING_MAX = "node_cooling_device_max_state" Gauge COOLING, "How much a device can cool.";
}

/// The files of cpufreq, in kilohertz, with their families.
const FREQUENCIES: [(&str, Family); 6] = [
    ("cpuinfo_cur_freq", FREQUENCY),
    ("cpuinfo_min_freq", FREQUENCY_MIN),
    ("cpuinfo_max_freq", FREQUENCY_MAX),
    ("scaling_cur_freq", SCALING),
    ("scaling_min_freq", SCALING_MIN),
    ("scaling_max_freq", SCALING_MAX),
];

/// Writes the frequencies of the CPUs in this folder, which is `/sys/devices/system/cpu`.
pub(super) fn cpufreq(text: &mut Exposition, folder: &Path) {
    let cpus = numbered(folder, "cpu");
    for (file, family) in FREQUENCIES {
        let series = cpus.iter().filter_map(|cpu| {
            let path = folder.join(format!("cpu{cpu}/cpufreq/{file}"));
            let kilohertz: u64 = attribute(&path)?.parse().ok()?;
            let hertz = kilohertz.checked_mul(1000)?;
            Some((format!("cpu=\"{cpu}\""), Value::Whole(hertz)))
        });
        text.all(&family, series);
    }
    let mut governors = Vec::new();
    for cpu in cpus {
        let file = |name: &str| attribute(&folder.join(format!("cpu{cpu}/cpufreq/{name}")));
        let Some(current) = file("scaling_governor").filter(|name| !name.is_empty()) else {
            continue;
        };
        let available = file("scaling_available_governors").unwrap_or_default();
        for governor in available.split_ascii_whitespace() {
            let labels = format!("cpu=\"{cpu}\",governor=\"{}\"", escape(governor));
            governors.push((labels, Value::Whole((governor == current).into())));
        }
    }
    text.all(&GOVERNOR, governors);
}

/// Writes temperatures and cooling devices in this folder, which is `/sys/class/thermal`.
pub(super) fn thermal(text: &mut Exposition, folder: &Path) {
    let kind = |name: String| attribute(&folder.join(name).join("type")).unwrap_or_default();
    let zones = numbered(folder, "thermal_zone");
    let zones = zones.into_iter().filter_map(|zone| {
        let name = format!("thermal_zone{zone}");
        // Reading fails while the sensor sleeps.
        let millidegrees: i64 = attribute(&folder.join(&name).join("temp"))?.parse().ok()?;
        let labels = format!("zone=\"{zone}\",type=\"{}\"", escape(&kind(name)));
        Some((labels, Value::Real(millidegrees as f64 / 1000.0)))
    });
    text.all(&TEMPERATURE, zones);
    let coolers = numbered(folder, "cooling_device");
    for (file, family) in [("cur_state", COOLING_NOW), ("max_state", COOLING_MAX)] {
        let series = coolers.iter().filter_map(|cooler| {
            let name = format!("cooling_device{cooler}");
            let state: i64 = attribute(&folder.join(&name).join(file))?.parse().ok()?;
            let labels = format!("name=\"{cooler}\",type=\"{}\"", escape(&kind(name)));
            Some((labels, Value::Signed(state)))
        });
        text.all(&family, series);
    }
}

/// The sorted numbers of the entries that are named `name` and a number.
fn numbered(folder: &Path, name: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let numbers = entries.filter_map(|entry| {
        let file = entry.ok()?.file_name();
        file.to_str()?.strip_prefix(name)?.parse().ok()
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// The contents of a file of sysfs, which has at most one page.
fn attribute(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(4096).read_to_end(&mut text).ok()?;
    Some(names::text(text.trim_ascii()).into_owned())
}
