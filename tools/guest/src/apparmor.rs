//! Readers and a service that `AppArmor` confines.

use std::{fs, io, process::Command};

use serde_json::Value;

use crate::{enter::Place, look::Looked, proofs::FASTPROC, reporter::Reporter, testbed::TESTBED};

/// Profiles in the kernel's binary form.
const PROFILES: [&str; 2] = ["/apparmor/guest", "/apparmor/pod"];
const LOAD: &str = "/sys/kernel/security/apparmor/.load";
/// An idle process of the reader's user.
const COMPANY: [&str; 4] = [TESTBED, "--only", "idle", "--"];

/// Loads the profiles into the kernel.
pub fn load(reporter: &mut Reporter) -> io::Result<()> {
    for profiles in PROFILES {
        // Write it at once: each write is one policy.
        let loaded = fs::read(profiles).and_then(|bytes| fs::write(LOAD, bytes));
        let detail = loaded
            .as_ref()
            .map_or_else(ToString::to_string, |()| "it is".to_owned());
        reporter.check(&format!("{profiles} is loaded"), loaded.is_ok(), detail)?;
    }
    Ok(())
}

/// Checks what confined and unconfined readers see.
pub fn look(reporter: &mut Reporter) -> io::Result<()> {
    let free = |looked: &Looked| looked.withheld.is_empty() && looked.error.is_empty();
    let root = [];
    let user = Place::Nobody.enter();
    let confined = Place::Confined.enter();
    one(reporter, "root", "service", &[&root], |looked| {
        free(looked) && looked.hidden == 0
    })?;
    one(
        reporter,
        "a user",
        "service",
        &[&user, &COMPANY],
        |looked| free(looked) && looked.hidden > 0 && looked.own_hidden == 0,
    )?;
    // The service does not know what a profile allows. Root reads by itself, and asks the kernel for each process.
    one(
        reporter,
        "confined root",
        "service",
        &[&confined],
        |looked| {
            looked
                .error
                .contains("cannot tell what the kernel would show")
        },
    )?;
    one(reporter, "confined root", "any", &[&confined], |looked| {
        looked.source != "service" && looked.hidden > 0
    })?;
    one(
        reporter,
        "a confined user",
        "service",
        &[&user, &COMPANY, &confined],
        |looked| free(looked) && looked.own_hidden > 0,
    )?;
    for_pods(reporter)
}

/// Checks the profile for clusters: it shows the programs of other processes.
fn for_pods(reporter: &mut Reporter) -> io::Result<()> {
    // The path that the profile expects.
    const PROGRAM: &str = "/usr/bin/fastproc";
    fs::create_dir_all("/usr/bin")?;
    fs::copy(FASTPROC, PROGRAM)?;
    let [init, enter, place] = Place::Pod.enter();
    let ps = [
        enter, place, PROGRAM, "ps", "--json", "--source", "bpf", "-o", "pid,exe",
    ];
    let output = Command::new(init).args(ps).output()?;
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let program = &shown["processes"][0]["exe"];
    let detail = format!("{program} {}", String::from_utf8_lossy(&output.stderr));
    reporter.check(
        "the profile for pods lets fastproc read",
        *program == init,
        detail,
    )
}

/// Runs a reader, and checks what it sees.
fn one(
    reporter: &mut Reporter,
    who: &str,
    source: &str,
    places: &[&[&str]],
    is_right: impl FnOnce(&Looked) -> bool,
) -> io::Result<()> {
    let argv = [&places.concat()[..], &["/init", "look", source]].concat();
    let output = Command::new(argv[0]).args(&argv[1..]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The output of the idle process comes before.
    let last = text.lines().last().unwrap_or_default();
    let looked: Looked = serde_json::from_str(last).unwrap_or_else(|error| Looked {
        error: format!("{error}: {}", String::from_utf8_lossy(&output.stderr)),
        ..Looked::default()
    });
    let right = looked.leaked.is_empty() && is_right(&looked);
    let name = format!("what {who} is shown by {source} is what /proc shows it");
    reporter.check(&name, right, format!("{looked:?}"))
}
