//! The file systems and the network of the machine, seen by a process that has others: as in a container, or under a unit
//! with `ProtectHome=`.

use std::{path::Path, process::Command};

use fastproc_testbed::{Folder, gate};

use crate::serve::{FASTPROC, exposition::Metrics};

/// What it exports once, and what it writes to standard error.
struct Once {
    metrics: Metrics,
    stderr: String,
}

impl Once {
    /// Two snapshots by a process of a new pid namespace. `$0` is the folder, and `outer` is executed by process 1 of the
    /// namespace. `inner` is executed in new namespaces of mounts, the network and the name, and then `$@` is the
    /// exporter. `None`: this user may not.
    #[track_caller]
    fn take(folder: &Path, outer: &str, inner: &str, flags: &[&str]) -> Option<Self> {
        if !gate::root() || !gate::programs(&["unshare", "setpriv", "ip"]) {
            return None;
        }
        let outer =
            format!("set -e\n{outer}\nunshare --net --uts --mount sh -c \"$INNER\" \"$0\" \"$@\"");
        let output = Command::new("unshare")
            .args("--pid --fork --kill-child --mount-proc --net sh -c".split(' '))
            .arg(outer)
            .arg(folder)
            .args([
                FASTPROC,
                "serve",
                "--source=procfs",
                "--procnames=none",
                "--once-to-stdout-delay=1ms",
            ])
            .args(flags)
            .env("INNER", format!("set -e\n{inner}"))
            .output()
            .expect("it can be started");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        let text = String::from_utf8(output.stdout).expect("a text of metrics is UTF-8");
        Some(Self {
            metrics: Metrics::parse(&text),
            stderr,
        })
    }

    /// The size of the file system that is mounted there, and whether it could not be asked.
    #[track_caller]
    fn size(&self, point: &str) -> (Option<f64>, Option<f64>) {
        let get = |name| self.metrics.get(name, &[("mountpoint", point)]);
        (
            get("node_filesystem_size_bytes"),
            get("node_filesystem_device_error"),
        )
    }
}

/// A file system of 4 MiB for process 1.
const OUTER: &str = r#"
mkdir "$0/a b" "$0/root"
mount -t tmpfs -o size=4m 'my disk' "$0/a b"
"#;
/// Another one over it.
const COVER: &str = r#"mount -t tmpfs -o size=8m none "$0/a b""#;
const WITHOUT_PTRACE: &str =
    "exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace \"$@\"";
const MIB: f64 = 1_048_576.0;

fn take(inner: &str, flags: &[&str]) -> Option<(String, Once)> {
    let folder = Folder::new("machine");
    let flags = [&["--collector.filesystem"], flags].concat();
    let root = format!("--path.rootfs={}/root", folder.display());
    let flags: Vec<&str> = flags
        .into_iter()
        .map(|flag| if flag == "ROOT" { &*root } else { flag })
        .collect();
    let once = Once::take(&folder, OUTER, &format!("{COVER}\n{inner}"), &flags)?;
    Some((folder.display().to_string(), once))
}

#[test]
fn a_file_system_that_is_covered_here_has_the_figures_of_process_1() {
    let Some((folder, once)) = take("exec \"$@\"", &[]) else {
        return;
    };
    assert_eq!(
        once.size(&format!("{folder}/a b")),
        (Some(4.0 * MIB), Some(0.0))
    );
    let labels = [("device", "my disk"), ("fstype", "tmpfs")];
    assert_eq!(
        once.metrics
            .all("node_filesystem_readonly", &labels)
            .count(),
        1
    );
}

#[test]
fn a_file_system_that_cannot_be_reached_has_no_figures() {
    let Some((folder, once)) = take(WITHOUT_PTRACE, &[]) else {
        return;
    };
    assert_eq!(once.size(&format!("{folder}/a b")), (None, Some(1.0)));
}

#[test]
fn file_systems_are_asked_below_the_folder_where_the_root_of_the_machine_is_mounted() {
    // Before it is covered.
    let inner = r#"umount "$0/a b"; mount --rbind / "$0/root"; "#.to_owned()
        + COVER
        + "\n"
        + WITHOUT_PTRACE;
    let Some((folder, once)) = take(&inner, &["ROOT"]) else {
        return;
    };
    assert_eq!(
        once.size(&format!("{folder}/a b")),
        (Some(4.0 * MIB), Some(0.0))
    );
    assert_eq!(
        once.size(&format!("{folder}/root")),
        (None, None),
        "it is no mount of process 1"
    );
}

/// A bridge needs no module of its own in most kernels.
const DEVICES: &str = r#"
mount -t sysfs none /sys
ip link add dev "$(printf 'w\320')" type bridge
ip link add dev "$(printf 'w\321')" type bridge
"#;

#[test]
fn the_network_is_that_of_process_1_also_if_names_of_devices_are_not_utf_8() {
    let folder = Folder::new("network");
    let flags = [
        "--collector.netdev",
        "--collector.netclass",
        "--collector.sockstat",
    ];
    let Some(once) = Once::take(&folder, DEVICES, "exec \"$@\"", &flags) else {
        return;
    };
    for name in [
        "node_network_receive_bytes_total",
        "node_network_receive_nohandler_total",
        "node_network_up",
    ] {
        for device in ["lo", r"w\xd0", r"w\xd1"] {
            let value = once.metrics.get(name, &[("device", device)]);
            assert_eq!(value, Some(0.0), "{name} {device}");
        }
    }
    assert!(!once.stderr.contains("hostNetwork"), "{}", once.stderr);
}

#[test]
fn metrics_of_another_network_are_left_out_with_a_reason() {
    let folder = Folder::new("network");
    let Some(once) = Once::take(
        &folder,
        "",
        "exec \"$@\"",
        &["--collector.uname", "--collector.conntrack"],
    ) else {
        return;
    };
    assert!(once.metrics.get("node_uname_info", &[]).is_none());
    assert!(once.metrics.get("node_nf_conntrack_entries", &[]).is_none());
    assert!(
        once.stderr.contains("node_uname_info") && once.stderr.contains("hostNetwork: true"),
        "{}",
        once.stderr
    );
}

#[test]
fn a_name_that_cannot_be_compared_with_that_of_process_1_is_left_out() {
    let folder = Folder::new("network");
    let proc = format!("--path.procfs={}/proc", folder.display());
    let flags = [
        &*proc,
        "--collector.uname",
        "--collector.netclass",
        "--collector.netdev",
    ];
    let inner = r#"mkdir "$0/proc"; mount -t proc none "$0/proc"; "#.to_owned() + WITHOUT_PTRACE;
    let Some(once) = Once::take(&folder, "", &inner, &flags) else {
        return;
    };
    let get = |name| once.metrics.all(name, &[]).count();
    assert_eq!(get("node_network_receive_bytes_total"), 1, "it is its lo");
    let left_out = ["node_uname_info", "node_network_up"].map(get);
    assert_eq!(left_out, [0, 0], "{}", once.stderr);
    assert!(
        once.stderr.contains("node_uname_info, the devices"),
        "{}",
        once.stderr
    );
}
