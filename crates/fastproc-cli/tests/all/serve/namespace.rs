//! In a container with its own PID namespace.

use std::process::Command;

use fastproc_testbed::{gate, needs};

use crate::serve::{FASTPROC, server::Server};

#[test]
fn serve_in_a_pid_namespace_says_what_to_do() {
    needs!(gate::root(), gate::programs(&["unshare"]));
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(FASTPROC);
    // As another user it would not get the signal when its parent exits, and would stay.
    let arguments = ["--source=procfs", "--user=root"];
    let server = Server::start_by(&mut command, &arguments);
    let stderr = server.stderr();
    assert_eq!(stderr.matches("hostPID").count(), 1, "{stderr}");
}
