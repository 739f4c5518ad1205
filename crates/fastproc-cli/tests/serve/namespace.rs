//! In a container, which has a PID namespace of its own.

use std::process::Command;

use fastproc_testbed::gate;

use crate::{FASTPROC, server::Server};

#[test]
fn who_sees_no_processes_but_those_of_a_container_says_what_to_do() {
    if !gate::root() || !gate::programs(&["unshare"]) {
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(FASTPROC);
    // As another user it would not be told that its parent has ended, and stay.
    let arguments = ["--source=procfs", "--user=root"];
    let server = Server::start_by(&mut command, &arguments);
    let stderr = server.stderr();
    assert_eq!(stderr.matches("hostPID").count(), 1, "{stderr}");
}
