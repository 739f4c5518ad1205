//! Readers that `AppArmor` confines, and a service that it confines.

use std::{fs, io, process::Command};

use serde_json::Value;

use crate::{enter::Place, look::Looked, proofs::FASTPROC, reporter::Reporter, testbed::TESTBED};

/// Profiles as the kernel takes them.
const PROFILES: [&str; 2] = ["/apparmor/guest", "/apparmor/pod"];
const LOAD: &str = "/sys/kernel/security/apparmor/.load";
/// A process of the reader's own user.
const COMPANY: [&str; 4] = [TESTBED, "--only", "idle", "--"];

/// Loads the profiles into the kernel.
pub fn load(reporter: &mut Reporter) -> io::Result<()> {
    for profiles in PROFILES {
        // In one piece: what is written at once is one policy.
        let loaded = fs::read(profiles).and_then(|bytes| fs::write(LOAD, bytes));
        let detail = loaded
            .as_ref()
            .map_or_else(ToString::to_string, |()| "it is".to_owned());
        reporter.check(&format!("{profiles} is loaded"), loaded.is_ok(), detail)?;
    }
    Ok(())
}

/// What readers are shown who are confined, and who are not.
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
    // The service cannot tell what a profile allows. Root reads by itself, and the kernel is asked for each process.
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

/// Under the profile that clusters are given: it shows the programs of others.
fn for_pods(reporter: &mut Reporter) -> io::Result<()> {
    // Where the profile expects it.
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

/// Has a reader look, and checks what it is shown.
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
    // What the company has to say comes before.
    let last = text.lines().last().unwrap_or_default();
    let looked: Looked = serde_json::from_str(last).unwrap_or_else(|error| Looked {
        error: format!("{error}: {}", String::from_utf8_lossy(&output.stderr)),
        ..Looked::default()
    });
    let right = looked.leaked.is_empty() && is_right(&looked);
    let name = format!("what {who} is shown by {source} is what /proc shows it");
    reporter.check(&name, right, format!("{looked:?}"))
}
