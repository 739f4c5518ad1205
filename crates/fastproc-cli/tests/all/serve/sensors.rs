//! Frequencies and temperatures, which virtual machines lack: compared with a real `node_exporter` for files of another
//! machine.

use std::{fs, path::Path, process::Command};

use fastproc_testbed::gate;

use crate::serve::{
    FASTPROC, exposition::Metrics, folder::Folder, node_exporter::NodeExporter, server::Server,
};

/// Files of a laptop under /sys, some of them malformed.
const CPUS: &[(&str, &str)] = &[
    ("online", "0-1"),
    ("possible", "0-1"),
    ("present", "0-1"),
    ("cpu0/cpufreq/cpuinfo_min_freq", "400000"),
    ("cpu0/cpufreq/cpuinfo_max_freq", "4700000"),
    ("cpu0/cpufreq/scaling_cur_freq", "1800023"),
    ("cpu0/cpufreq/scaling_min_freq", "400000"),
    ("cpu0/cpufreq/scaling_max_freq", "4700000"),
    ("cpu0/cpufreq/scaling_driver", "intel_pstate"),
    ("cpu0/cpufreq/scaling_governor", "powersave"),
    ("cpu0/cpufreq/scaling_setspeed", "<unsupported>"),
    ("cpu0/cpufreq/related_cpus", "0"),
    (
        "cpu0/cpufreq/scaling_available_governors",
        "performance powersave",
    ),
    ("cpu10/cpufreq/cpuinfo_cur_freq", "2400000"),
    ("cpu10/cpufreq/scaling_governor", "ondemand"),
    ("cpu10/cpufreq/scaling_driver", "acpi"),
    ("cpu10/cpufreq/related_cpus", "10"),
    ("cpu10/cpufreq/scaling_setspeed", "<unsupported>"),
    ("cpu10/cpufreq/scaling_available_governors", "ondemand"),
    ("cpu2/online", "1"),
];
const THERMAL: &[(&str, &str)] = &[
    ("thermal_zone0/type", "acpitz"),
    ("thermal_zone0/temp", "27800"),
    ("thermal_zone0/policy", "step_wise"),
    ("thermal_zone1/type", "x86_pkg_temp"),
    ("thermal_zone1/temp", "-5500"),
    ("thermal_zone1/policy", "step_wise"),
    ("cooling_device0/type", "Processor"),
    ("cooling_device0/cur_state", "0"),
    ("cooling_device0/max_state", "3"),
    ("cooling_device12/type", "intel_powerclamp"),
    ("cooling_device12/cur_state", "-1"),
    ("cooling_device12/max_state", "50"),
];

fn lay(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("it can be made");
        fs::write(path, format!("{text}\n")).expect("it can be written");
    }
}

fn told(metrics: &Metrics) -> Vec<String> {
    let mut told: Vec<String> = metrics
        .series()
        .filter(|(name, ..)| {
            ["node_cpu_", "node_thermal_", "node_cooling_"]
                .iter()
                .any(|start| name.starts_with(start))
        })
        .map(|(name, labels, value)| format!("{name} {labels:?} {value}"))
        .collect();
    told.sort();
    told
}

#[test]
fn frequencies_and_temperatures_are_told_as_node_exporter_tells_them() {
    const MOUNT: &str = "mount --bind \"$CPUS\" /sys/devices/system/cpu && mount --bind \"$THERMAL\" /sys/class/thermal && exec \"$0\" \"$@\"";
    if !gate::root() || !gate::programs(&[NodeExporter::PROGRAM, "unshare"]) {
        return;
    }
    let folder = Folder::new();
    let [cpus, thermal] = ["cpus", "thermal"].map(|name| folder.path().join(name));
    lay(&cpus, CPUS);
    lay(&thermal, THERMAL);
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", MOUNT, program])
            .env("CPUS", &cpus)
            .env("THERMAL", &thermal);
        command
    };
    let flags = ["--collector.cpufreq", "--collector.thermal_zone"];
    let other = NodeExporter::start(inside(NodeExporter::PROGRAM).args(flags));
    let ours = [&["--source=procfs", "--procnames=none"], &flags[..]].concat();
    let server = Server::start_by(&mut inside(FASTPROC), &ours);
    let (here, there) = (server.scrape(), other.scrape());
    let mut known_there = told(&here);
    assert_eq!(known_there.len(), 15, "{known_there:#?}");
    // Governors are reported since version 1.6.
    let governor = |series: &String| series.starts_with("node_cpu_scaling_governor");
    if !told(&there).iter().any(governor) {
        let governors: Vec<String> = known_there
            .extract_if(.., |series| governor(series))
            .collect();
        assert!(governors[1].ends_with("\"powersave\"} 1"), "{governors:?}");
    }
    assert_eq!(known_there, told(&there));
    for (family, kind) in &there.families {
        let known = here.families.iter().find(|(name, _)| name == family);
        assert!(known.is_none_or(|(_, here)| here == kind), "{family}");
    }

    // Values that are not numbers, too large, or missing are omitted; the rest is reported.
    lay(
        &cpus,
        &[
            ("cpu0/cpufreq/scaling_cur_freq", "<unknown>"),
            ("cpu0/cpufreq/scaling_min_freq", "18446744073709551615"),
            ("cpu0/cpufreq/scaling_max_freq", ""),
        ],
    );
    lay(&thermal, &[("thermal_zone0/temp", "hot")]);
    fs::remove_file(thermal.join("cooling_device0/cur_state")).expect("the file is removed");
    let odd = told(&server.scrape());
    assert_eq!(odd.len(), 15 - 5, "{odd:#?}");
    assert!(odd.iter().all(|series| told(&here).contains(series)));
}
