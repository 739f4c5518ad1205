//! Readers in their own namespaces, and with a `/proc` that hides processes: with or without a service, each sees what
//! it could read there itself. Needs root.

use std::process::Command;

use crate::served::{Looks, NOBODY, Odd, Served, as_user, mount_proc};
use fastproc_testbed::{gate, needs};

const OWNER: u32 = 12355;
static USERS: [u32; 3] = [0, OWNER, NOBODY];

/// What systemd's `ProtectProc=` and `ProcSubset=` mount for a unit.
const PROC_OPTIONS: [&str; 8] = [
    "hidepid=0",
    "hidepid=1",
    "hidepid=2",
    "hidepid=4",
    "subset=pid",
    "hidepid=1,subset=pid",
    "hidepid=2,subset=pid",
    "hidepid=4,subset=pid",
];

/// Each option with one of the users: only whether it hides processes matters, not how.
fn in_turn() -> impl Iterator<Item = (&'static str, &'static [u32])> {
    PROC_OPTIONS.into_iter().zip(USERS.chunks(1).cycle())
}

#[test]
fn readers_elsewhere_are_refused_and_shown_what_is_there() {
    needs!(gate::root());
    let served = Served::start("elsewhere");
    let odd = Odd::start(&served, &[OWNER]);
    let namespaces = [
        &["--mount"][..],
        &["--user"],
        &["--user", "--map-root-user"],
        &["--pid", "--fork"],
        &["--pid", "--fork", "--mount-proc"],
        &["--time", "--fork", "--boottime", "1000"],
        &[
            "--mount",
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--time",
        ],
        &["--mount", "--pid", "--fork", "--mount-proc", "--time"],
    ];
    let elsewhere = namespaces.map(|options| (options, None, &USERS[..]));
    let protected = in_turn().map(|(options, user)| (&["--mount"][..], Some(options), user));
    for (options, proc_options, users) in elsewhere.into_iter().chain(protected) {
        for &uid in users {
            let who = format!("{options:?} {proc_options:?} as {uid}");
            let enter = |argv: &[String]| -> Command {
                let user = as_user(uid);
                // A reader in its own user namespace created that itself.
                let (before, after) = if options.contains(&"--user") {
                    (user, Vec::new())
                } else {
                    (Vec::new(), user)
                };
                let mount = proc_options.map(mount_proc);
                let mount = mount.iter().flat_map(|script| ["sh", "-c", script, "sh"]);
                let words = before.iter().map(String::as_str).chain(["unshare"]);
                let words = words.chain(options.iter().copied()).chain(mount);
                let words = words.chain(after.iter().chain(argv).map(String::as_str));
                served.knows(&words.collect::<Vec<_>>())
            };
            let looks = Looks::take(&mut enter(&served.three_looks("auto")));
            looks.compare(&odd, &who);
            assert!(
                !looks.told.contains("from service"),
                "{who}: {}",
                looks.told
            );
            let program = served.program();
            let ask = [&program, "ps", "--source", "service"].map(str::to_owned);
            let refused = enter(&ask).output().expect("unshare(1) is there");
            let text = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{who}: {text}");
            assert!(
                text.contains("namespace") || text.contains("runs as user"),
                "{who}: {text}"
            );
            assert!(refused.stdout.is_empty(), "{who}");
        }
    }
}

#[test]
fn where_processes_are_hidden_root_alone_is_served() {
    needs!(gate::root());
    for (options, users) in in_turn() {
        let served = Served::start_within("hidden", options);
        let odd = Odd::start(&served, &[OWNER]);
        let hides = ["1", "2", "4"]
            .iter()
            .any(|level| options.contains(&format!("hidepid={level}")));
        for &uid in users {
            let who = format!("{options} as {uid}");
            let looks = Looks::take(&mut served.within(uid, &served.three_looks("auto")));
            looks.compare(&odd, &who);
            let serves = uid == 0 || !hides;
            assert_eq!(
                looks.told.contains("from service"),
                serves,
                "{who}: {}",
                looks.told
            );
            let refused = looks.told.contains("mounted with hidepid");
            assert_eq!(refused, !serves, "{who}: {}", looks.told);
        }
        // Hiding that begins later is noticed.
        let remount = ["mount", "-o", "remount,hidepid=invisible", "/proc"];
        let remounted = served.within(0, &remount).status();
        assert!(remounted.expect("mount(8) is there").success());
        for command in ["ps", "files"] {
            let refused = served.command(NOBODY, &[command, "--source", "service"]);
            let text = String::from_utf8_lossy(&refused.stderr);
            assert!(text.contains("hidepid"), "{command} {options}: {text}");
        }
        assert!(
            served
                .command(0, &["ps", "--source", "service"])
                .status
                .success()
        );
    }
}

#[test]
fn open_files_and_sockets_are_those_of_the_service_that_runs() {
    needs!(gate::bpf());
    let served = Served::start("files");
    for uid in [0, NOBODY] {
        for command in ["files", "sockets"] {
            let asked = served.command(uid, &[command, "--json"]);
            let text = String::from_utf8_lossy(&asked.stdout);
            let is_served = text.contains(r#""source":"service""#);
            assert!(is_served, "{command} as {uid}: {asked:?}");
        }
    }
    // Every user is shown that the test has a socket. Only users who may trace the test are shown which one.
    let own = std::process::id();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let filter = format!("pid == {own}");
    for (uid, listens) in [(0, true), (NOBODY, false)] {
        let arguments = [
            "ps",
            "--source=service",
            "--format=ndjson",
            "--fields=fds,listen",
            "--filter",
            &filter,
        ];
        let asked = served.command(uid, &arguments);
        let row: serde_json::Value = serde_json::from_slice(&asked.stdout).expect("one row");
        assert!(row["fds"].as_u64() > Some(2), "{uid}: {row}");
        let ports = row["listen"].as_array();
        let has = ports.is_some_and(|ports| ports.contains(&port.into()));
        assert_eq!((ports.is_some(), has), (listens, listens), "{uid}: {row}");
    }
}
