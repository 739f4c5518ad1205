//! Costly values of processes that start and change.

use std::fs;

use fastproc_testbed::wait_until;

use crate::serve::{actor::Actor, folder::Folder, server::Server};

const WCHAN: &str = "namedprocess_namegroup_threads_wchan";

/// Descriptors and waiting places are enabled by default, and known at the first scrape, for existing and for new
/// processes.
#[test]
fn descriptors_are_never_zero_because_nobody_has_looked() {
    const OPEN: &str = "namedprocess_namegroup_open_filedesc";
    let (folder, id) = (Folder::new(), std::process::id());
    let (old, new) = (format!("fpold{id}"), format!("fpnew{id}"));
    let many = "for fd in 100 101 102 103 104 105 106 107; do eval \"exec $fd</dev/null\"; done";
    let mut first = Actor::start_with(&folder, &old, "/bin/bash");
    first.tell(many);
    let server = Server::start(&[]);
    let open = |group: &str| server.scrape().get(OPEN, &[("groupname", group)]);
    let of = |actor: &Actor| {
        let fds = fs::read_dir(format!("/proc/{}/fd", actor.pid()))
            .expect("the process shows its descriptors");
        fds.count() as f64
    };
    assert_eq!(open(&old), Some(of(&first)));
    let mut second = Actor::start_with(&folder, &new, "/bin/bash");
    second.tell(many);
    assert_eq!(open(&new), Some(of(&second)));
    let group = [("groupname", &*new)];
    let worst = server
        .scrape()
        .get("namedprocess_namegroup_worst_fd_ratio", &group);
    assert!(worst > Some(0.0));
    // It waits for its next command, once it had the CPU to get there.
    wait_until("it waits", || {
        let places: Vec<f64> = server.scrape().all(WCHAN, &group).collect();
        places == [1.0]
    });
    // A process that has run since is read again.
    second.tell("exec 120</dev/null 121</dev/null");
    wait_until("the new ones are counted", || {
        open(&new) == Some(of(&second))
    });
}
