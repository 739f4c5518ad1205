//! The machine's counters: typed values, and files that `fastproc verify` does not compare line by line. Needs root:
//! otherwise the tests report that, and prove nothing.

use std::{process::Command, thread, time::Duration};

use fastproc::{
    counters::{Counters, MachineFile, Options, Want},
    text::{machine_stat::MachineStat, vmstat::VmStat},
};
use fastproc_testbed::{Folder, gate, name_of, needs, wait_until};

/// Opens with the programs, which must load wherever possible.
#[track_caller]
pub fn open(options: Options) -> Option<Counters> {
    if !gate::bpf() {
        return None;
    }
    let counters = options
        .open()
        .expect("/proc/stat and /proc/vmstat can be read");
    let refused = counters.unavailable().map(ToString::to_string);
    assert_eq!(refused, None, "the programs are refused");
    Some(counters)
}

/// Reads lines that the kernel computes each time, so that they can be compared.
pub fn exact() -> Options {
    let options = Options::new().line_by_line(true);
    options.text_latency(Duration::ZERO)
}

#[test]
fn the_typed_values_are_the_texts() {
    let Some(mut counters) = open(exact()) else {
        return;
    };
    let vmstat = counters.vmstat().expect("it reads").to_vec();
    let stat = counters.stat().expect("it reads").to_vec();
    let sample = counters.sample();
    let parsed = MachineStat::parse(&stat).expect("our text parses");
    assert_eq!(parsed.irqs, sample.stat.irqs);
    assert_eq!(parsed.cpus.len(), sample.stat.cpus.len());
    assert_eq!(
        parsed.total.idle().as_millis() / 10,
        sample.stat.total.idle().as_millis() / 10
    );
    assert_eq!(
        VmStat::parse(&vmstat).expect("our text parses"),
        sample.vmstat
    );

    let earlier = counters
        .collect(Want::STAT | Want::VMSTAT)
        .expect("it collects")
        .clone();
    wait_until("a tick, a switch and an interrupt", || {
        std::hint::black_box(vec![0_u8; 1 << 16]);
        let later = counters
            .collect(Want::STAT | Want::VMSTAT)
            .expect("it collects");
        let change = later.since(&earlier);
        if change.total().busy() == Duration::ZERO {
            return false;
        }
        // A tick may come without a switch: the pause causes one, and its end is an interrupt.
        thread::sleep(Duration::from_millis(1));
        change.ctxt() > 0 && change.intr() > 0
    });
    let later = counters.sample();
    let change = later.since(&earlier);
    assert!(change.elapsed() > Duration::ZERO);
    assert!(change.busy() > 0.0);
    assert!(change.vm("pgalloc_normal").is_some_and(|pages| pages >= 0));
    assert!(change.per_second(change.ctxt() as f64) > 0.0);
}

/// Runs the test again, in its own mount namespace.
#[test]
fn a_mount_is_noticed() {
    if std::env::var_os("FASTPROC_OWN_MOUNTS").is_none() {
        needs!(gate::root(), gate::programs(&["unshare"]));
        let own = std::env::current_exe().expect("a test has a file");
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(own)
            .args(["--exact", name_of(a_mount_is_noticed), "--nocapture"])
            .env("FASTPROC_OWN_MOUNTS", "1")
            .status();
        let status = status.expect("unshare is installed");
        assert!(status.success(), "it failed there");
        return;
    }
    let mut counters = exact().bpf(false).open().expect("it opens");
    let before = counters.text(MachineFile::Mtab).expect("it reads").to_vec();
    for _ in 0..3 {
        assert_eq!(counters.text(MachineFile::Mtab).expect("it reads"), before);
    }
    let directory = Folder::new("mount");
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("fastproc-test", &*directory, "tmpfs", flags, None)
        .expect("a tmpfs can be mounted");
    let after = counters.text(MachineFile::Mtab).expect("it reads").to_vec();
    rustix::mount::unmount(&*directory, rustix::mount::UnmountFlags::empty())
        .expect("it can be unmounted");
    assert!(String::from_utf8_lossy(&after).contains("fastproc-test"));
    assert_eq!(counters.text(MachineFile::Mtab).expect("it reads"), before);
}
