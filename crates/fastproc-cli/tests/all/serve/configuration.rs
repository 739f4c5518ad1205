//! Configuration files: those in process-exporter's documentation, and wrong ones.

use std::process::Command;

use fastproc_testbed::gate;

use crate::serve::{FASTPROC, actor::Actor, folder::Folder, server::Server};

/// How `fastproc serve` ends with these arguments: status and message.
#[track_caller]
fn refusal(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(FASTPROC);
    command.arg("serve").args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    let output = command.output().expect("it can be started");
    let stderr = String::from_utf8(output.stderr).expect("it is UTF-8");
    (output.status.code(), stderr)
}

#[track_caller]
fn groups(arguments: &[&str]) -> Vec<String> {
    let metrics = Server::start(arguments).scrape();
    let named = metrics
        .series()
        .filter(|(name, ..)| *name == "namedprocess_namegroup_num_procs");
    named
        .map(|(_, labels, _)| labels["groupname"].clone())
        .collect()
}

/// The selectors and templates of its documentation, applied to running processes.
#[test]
fn documented_configurations_name_what_runs() {
    let folder = Folder::new();
    let id = std::process::id();
    let name = |tag: &str| format!("fp{tag}{id}");
    let actors =
        ["comm", "base", "full", "line", "rest"].map(|tag| Actor::start(&folder, &name(tag)));
    let full = folder.path().join(name("full"));
    let config = folder.write(
        "process-exporter.yml",
        &format!(
            r#"
process_names:
  # comm is the second field of /proc/<pid>/stat
  - comm:
    - {comm}
  # exe without slashes is the base of argv[0], and with them argv[0] itself
  - exe:
    - {base}
    - {full}
  # all expressions must match, and captures are named
  - name: "{{{{.ExeBase}}}}:{{{{.Matches.Flag}}}}:{{{{.Username}}}}"
    comm:
    - {line}
    cmdline:
    - \s-(?P<Flag>\S)\s
    - while
  - name: "{{{{.Comm}}}}-{{{{.PID}}}}"
    comm:
    - {rest}
"#,
            comm = name("comm"),
            base = name("base"),
            full = full.display(),
            line = name("line"),
            rest = name("rest"),
        ),
    );
    let mut found = groups(&["--config", &config, "--children=false"]);
    found.sort();
    let user = Command::new("id")
        .arg("-un")
        .output()
        .expect("id is everywhere");
    let user = String::from_utf8(user.stdout).expect("it is UTF-8");
    let mut expected = vec![
        name("comm"),
        name("base"),
        name("full"),
        format!("{}:c:{}", name("line"), user.trim()),
        format!("{}-{}", name("rest"), actors[4].pid()),
    ];
    expected.sort();
    assert_eq!(found, expected);
    gate::ran();
}

/// The package's file has the same rules as the default.
#[test]
fn the_packages_configuration_is_the_default() {
    let packaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/groups.yml");
    let folder = Folder::new();
    let name = format!("fppack{}", std::process::id());
    let _actor = Actor::start(&folder, &name);
    for arguments in [&["--config", packaged][..], &[]] {
        let groups = groups(arguments);
        assert!(groups.contains(&name), "{arguments:?}: {groups:?}");
        // A kernel thread has no command line, and so no group.
        assert!(
            !groups.iter().any(|group| group == "kthreadd"),
            "{groups:?}"
        );
    }
}

#[test]
fn names_on_the_command_line_are_groups() {
    let folder = Folder::new();
    let id = std::process::id();
    let names = ["pa", "pb", "pc"].map(|tag| format!("fp{tag}{id}"));
    let _actors = names.each_ref().map(|name| Actor::start(&folder, name));
    let procnames = format!("{},{}", names[0], names[1]);
    let mapping = format!("{},\\s-(c)\\s", names[2]);
    let mut found = groups(&[
        "--procnames",
        &procnames,
        "--namemapping",
        &mapping,
        "--children=false",
    ]);
    found.sort();
    assert_eq!(
        found,
        [
            names[0].clone(),
            names[1].clone(),
            format!("{}:c", names[2])
        ]
    );
}

#[test]
fn errors_of_a_configuration_name_the_line() {
    let folder = Folder::new();
    for (at, (text, line, reason)) in [
        (
            "process_names:\n- comm: [a]\n- cmdline:\n  - 'ok'\n  - '('\n",
            5,
            "unclosed group",
        ),
        (
            "process_names:\n- comm: [a]\n  name: '{{.Foo}}'\n",
            3,
            "{{.Foo}}",
        ),
        ("process_names:\n- name: x\n", 2, "selects nothing"),
        ("process_names:\n- comm: [a\n", 3, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.write(&format!("wrong-{at}.yml"), text);
        let (code, stderr) = refusal(&["--config", &path]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(
            stderr.contains(&format!("{path}:{line}: ")),
            "{text}: {stderr}"
        );
        assert!(stderr.contains(reason), "{text}: {stderr}");
        assert!(!stderr.contains("serving"), "{stderr}");
    }
    let web = folder.write("web.yml", "basic_auth_users:\n  a: secret\n");
    let (code, stderr) = refusal(&["--web.config.file", &web]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains(&format!("{web}:2: ")) && stderr.contains("bcrypt"),
        "{stderr}"
    );
    assert!(!stderr.contains("secret"), "a password is shown: {stderr}");
}

/// As in process-exporter, unknown keys are ignored; here standard error names them.
#[test]
fn unused_keys_of_a_configuration_are_named_with_their_line() {
    let folder = Folder::new();
    let text = "process_names:\n- comm: [a]\n  nmae: x\n---\nanother: document\n";
    let path = folder.write("unused.yml", text);
    let server = Server::start(&["--config", &path, "--source", "procfs"]);
    let stderr = server.stderr();
    assert!(
        stderr.contains(&format!("{path}: line 3: nmae is not known")),
        "{stderr}"
    );
}

#[test]
fn impossible_settings_are_refused_with_a_reason() {
    let missing = Folder::new().path().join("none.yml");
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a folder of ours");
    let pipe = pipe.to_str().expect("UTF-8").to_owned();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (arguments, reason) in [
        (
            &["--config", missing.to_str().expect("UTF-8")][..],
            "none.yml",
        ),
        (&["--config", "/dev/zero"], "it is not a regular file"),
        (&["--web.config.file", &pipe], "it is not a regular file"),
        (&["--listen", &taken], "cannot listen"),
        (&["--min-interval", "soon"], "give a number of seconds"),
        (&["--costly-share", "2"], "from 0 to 1"),
        (&["--collector.vmstat.fields", "("], "regular expression"),
        (&["--namemapping", "a"], "odd number"),
        (&["--cgroup-hugetlb"], "give --cgroups"),
    ] {
        let (code, stderr) = refusal(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}
