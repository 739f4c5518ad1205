//! The command: what it prints, its exit status, and that its sudden death frees nobody.

mod gone;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Child, Command, Stdio},
};

const ZOO: &str = env!("CARGO_BIN_EXE_fastproc-zoo");

fn zoo(labels: &str) -> Command {
    let mut command = Command::new(ZOO);
    command
        .args(["--only", labels])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The animals of a command that runs, as it prints them.
fn printed(child: &mut Child, count: usize) -> Vec<(u32, u64)> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap())
        .lines()
        .take(count);
    lines
        .map(|line| {
            let pid = line.unwrap().split_once('\t').unwrap().0.parse().unwrap();
            (pid, gone::stat(&format!("{pid}")).unwrap().1)
        })
        .collect()
}

#[test]
fn exits_with_the_status_of_its_command() {
    let output = zoo("idle,name-newline")
        .args(["--", "sh", "-c", "exit 42"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42));
    let text = String::from_utf8(output.stdout).unwrap();
    let labels: Vec<_> = text
        .lines()
        .map(|line| line.split_once('\t').unwrap().1)
        .collect();
    assert_eq!(labels, ["idle", "name-newline"]);
}

#[test]
fn a_label_that_does_not_exist_is_its_own_failure() {
    let output = zoo("unicorn").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn lists_every_animal() {
    let output = Command::new(ZOO).arg("--list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), fastproc_zoo::catalogue().count());
    assert!(text.contains("zombie: state Z"), "{text}");
}

#[test]
fn ends_when_standard_input_does() {
    let mut child = zoo("zombie,stopped").stdin(Stdio::piped()).spawn().unwrap();
    let animals = printed(&mut child, 2);
    assert!(animals.iter().all(|&animal| !gone::is_gone(animal)));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(animals.iter().all(|&animal| gone::is_gone(animal)));
}

#[test]
fn its_animals_die_when_it_is_killed() {
    let mut child = zoo("idle,traced,dead-leader,clone-vm,pidns-3")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let animals = printed(&mut child, 5);
    let mut all = gone::descendants(child.id());
    assert!(all.len() > animals.len());
    all.extend(animals);
    child.kill().unwrap();
    child.wait().unwrap();
    gone::wait_until_gone(&all);
}

#[test]
fn without_privileges_the_zoo_is_smaller() {
    if !rustix::process::geteuid().is_root() {
        gone::say!(
            "SKIPPED: needs root to become nobody; run as nobody, the other tests show the same"
        );
        return;
    }
    // Where nobody may execute it.
    let dir = std::env::temp_dir().join(format!("fastproc-zoo-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.join("zoo");
    // By another process: a descriptor for writing would be inherited by other tests' children, and make it busy.
    let copied = Command::new("install")
        .args(["-m", "755", ZOO])
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let result = Command::new(&program)
        .uid(65534)
        .gid(65534)
        .args(["--", "true"])
        .output();
    fs::remove_dir_all(&dir).unwrap();
    let output = result.unwrap();
    let (animals, absent) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{absent}");
    assert!(
        animals.contains("\tdead-leader\n") && animals.contains("\ttraced\n"),
        "{animals}{absent}"
    );
    assert!(
        absent.contains("absent: groups-300: not permitted: "),
        "{absent}"
    );
    assert!(
        absent.contains("absent: nice-minus-20: not permitted: "),
        "{absent}"
    );
    assert!(!animals.contains("\tgroups-300\n"), "{animals}");
}

#[test]
fn a_storm_is_counted() {
    let mut child = zoo("idle")
        .args(["--storm", "--", "true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(said.contains("Tally { forks: "), "{said}");
}
