//! Children in Python, and their recorded exits.

use std::{
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use fastproc::exits::{Event, Exit, Exits};
use fastproc_testbed::wait_until;

/// Starts a program, with a pipe from its standard output.
pub fn python(script: &str) -> Child {
    Command::new("/usr/bin/python3")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs")
}

/// Passes on all exits that have arrived.
pub fn read(exits: &mut Exits, mut each: impl FnMut(&Exit)) {
    exits
        .read(|event| {
            if let Event::Exit(exit) = &event {
                each(exit);
            }
        })
        .expect("the ring can be read");
}

/// Waits until this child's exit is recorded, and reaps it. Passes on all exits that arrive meanwhile. Returns its exit
/// status.
pub fn until_recorded(
    exits: &mut Exits,
    mut child: Child,
    mut each: impl FnMut(&Exit),
) -> ExitStatus {
    let mut is_recorded = false;
    wait_until("an exit that is recorded or lost", || {
        exits
            .wait(Duration::from_millis(20))
            .expect("it can be waited for");
        let has_ended = child.try_wait().expect("our child").is_some();
        read(exits, |exit| {
            is_recorded |= exit.pid == child.id();
            each(exit);
        });
        has_ended && (is_recorded || exits.lost() > 0)
    });
    child.wait().expect("our child")
}
