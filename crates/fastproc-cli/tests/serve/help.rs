//! What the command says about itself.

use std::process::Command;

use crate::{FASTPROC, server::Server};

#[track_caller]
fn help(flag: &str) -> String {
    let output = Command::new(FASTPROC)
        .args(["serve", flag])
        .output()
        .expect("it can be started");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn examples_begin_with_the_command_and_have_only_flags_that_there_are() {
    let text = help("--help");
    let (_, examples) = text.split_once("Examples").expect("there are examples");
    let mut commands = 0;
    for line in examples
        .lines()
        .filter(|line| line.contains("fastproc serve"))
    {
        commands += 1;
        for flag in line
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
        {
            let flag = flag.split('=').next().expect("a flag");
            assert!(
                text.contains(&format!("{flag} ")) || text.contains(&format!("{flag}[")),
                "{flag} in {line}"
            );
        }
    }
    assert!(commands >= 4, "{examples}");
    for word in [
        "openssl req",
        "cert_file",
        "basic_auth_users",
        "scrape_configs",
    ] {
        assert!(examples.contains(word), "no {word}");
    }
}

/// Flags of process-exporter, under its names.
#[test]
fn its_flags_are_known_here() {
    let arguments = [
        "--web.listen-address=127.0.0.1:0",
        "--procnames=a,b",
        "--namemapping=c,-x(y)",
        "--children=false",
        "--threads=false",
        "--gather-smaps=false",
        "--recheck=true",
        "--recheck-with-time-limit=10s",
        "--remove-empty-groups=false",
        "--source=procfs",
    ];
    let server = Server::start(&arguments);
    assert_eq!(server.get("/-/healthy", &[]).status, 200);
}
