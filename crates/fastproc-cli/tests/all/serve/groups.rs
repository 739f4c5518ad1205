//! Counters of a group whose process no scrape has seen.

use fastproc_testbed::{alone, gate, needs, wait_for};

use crate::serve::{actor::Actor, exposition::Metrics, folder::Folder, server::Server};

/// A name that no other process has.
fn unique(tag: &str) -> String {
    format!("fp{tag}{}", std::process::id())
}

fn procs(metrics: &Metrics, group: &str) -> Option<f64> {
    metrics.get("namedprocess_namegroup_num_procs", &[("groupname", group)])
}

fn faults(metrics: &Metrics, group: &str) -> f64 {
    let name = "namedprocess_namegroup_minor_page_faults_total";
    metrics
        .get(name, &[("groupname", group)])
        .expect("the group is known")
}

fn cpu_seconds(metrics: &Metrics, group: &str) -> f64 {
    let name = "namedprocess_namegroup_cpu_seconds_total";
    metrics.all(name, &[("groupname", group)]).sum()
}

/// A process that no scrape has counts completely if the kernel adds it up for its parent.
#[test]
fn a_process_between_two_scrapes_is_counted() {
    needs!(gate::bpf());
    // Too many exits of other tests would fill the buffer, and some of ours could be lost.
    let _alone = alone();
    let (folder, name) = (Folder::new(), unique("brief"));
    let server = Server::start(&[]);
    let mut parent = Actor::start(&folder, &unique("par"));
    let before = server.scrape();
    assert_eq!(procs(&before, &name), None);
    let program = folder.alias("/bin/sh", &name);
    let work = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done";
    parent.tell(&format!(
        "n=0; while [ $n -lt 30 ]; do n=$((n+1)); {} -c '{work}'; done",
        program.display()
    ));
    let spent = (parent.stat(16) + parent.stat(17)) as f64 / 100.0;
    let faulted = parent.stat(11) as f64;
    assert!(spent > 0.1, "{spent} s");
    // The kernel has not yet reaped the last ones.
    let after = wait_for("what the children did is counted", || {
        let after = server.scrape();
        let is_told = procs(&after, &name).is_some()
            && cpu_seconds(&after, &name) >= 0.97 * spent - 0.03
            && faults(&after, &name) >= 0.9 * faulted
            && after
                .get("fastproc_exits_total", &[])
                .is_some_and(|exits| exits >= 30.0);
        is_told.then_some(after)
    });
    assert_eq!(procs(&after, &name), Some(0.0));
    let counted = cpu_seconds(&after, &name);
    assert!(counted <= 1.03 * spent + 0.03, "{counted} of {spent} s");
    let minor = faults(&after, &name);
    assert!(minor <= faulted, "{minor} of {faulted}");
}
