//! Containers and pods, identified by the paths of cgroups, which these tests name as container runtimes do.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::common::{fastproc, rows};
use fastproc_testbed::{Cgroup, Folder, Running, gate, needs, wait_until, wait_until_asleep};
use serde_json::Value;

const ID: &str = "3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e";
const UID: &str = "34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11";

/// A cgroup as containerd names it.
fn container(tag: &str) -> Option<Cgroup> {
    let pod = UID.replace('-', "_");
    let path = format!("{tag}/kubepods.slice/kubepods-pod{pod}.slice/cri-containerd-{ID}.scope");
    Cgroup::new(&path)
}

/// A process that sleeps in a cgroup.
fn sleeper(cgroup: &Cgroup) -> Running {
    let sleeper = Running::start(&mut cgroup.command("exec sleep 600"));
    wait_until_asleep(sleeper.id(), "sleep");
    sleeper
}

const FIELDS: &str = "pid,container,container_name,pod,pod_uid,runtime,slice,unit,machine,cgroup";

#[test]
fn a_folder_that_is_given_is_searched_for_names() {
    needs!(gate::root());
    let Some(cgroup) = Cgroup::new(&format!("given/docker-{ID}.scope")) else {
        return;
    };
    let sleeper = sleeper(&cgroup);
    let folder = Folder::new("data-root");
    let container = folder.join("containers").join(ID);
    fs::create_dir_all(&container).expect("a folder");
    let names = r#"{"Name": "/web", "Config": {"Image": "nginx"}}"#;
    fs::write(container.join("config.v2.json"), names).expect("a file");
    let (pid, given) = (sleeper.id().to_string(), folder.display().to_string());
    let options = ["-o", "pid,container_name,image", "-p", &*pid];
    let options = [&options[..], &["--container-root", &*given]].concat();
    let rows = rows(&options);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (&row["container_name"], &row["image"]),
        (&"web".into(), &"nginx".into())
    );
}

/// As in a pod: its own cgroup is the root, and the paths of others begin with `/..`. The path of its own cgroup is
/// meaningless, but the container is known.
#[test]
fn a_cgroup_namespace_hides_no_container() {
    needs!(gate::root(), gate::programs(&["setpriv"]));
    let (Some(cgroup), Some(reader)) = (container("other"), container("reader")) else {
        return;
    };
    let (other, own) = (sleeper(&cgroup), sleeper(&reader));
    let pids = format!("{},{}", other.id(), own.id());
    let command = env!("CARGO_BIN_EXE_fastproc");
    let mount_point = Folder::new("cgroup");
    let script = format!(
        "exec unshare --cgroup --mount sh -c 'mount -t cgroup2 cgroup2 {} && grep ^0:: /proc/{}/cgroup && \
         exec {command} ps --format ndjson -o {FIELDS} -p {pids} --sort pid'",
        mount_point.display(),
        other.id()
    );
    looks_from_inside(&reader, &script, &own);
    // Only the whole hierarchy is mounted, and no cgroup may be opened by its id.
    let script = format!(
        "exec unshare --cgroup sh -c 'grep ^0:: /proc/{}/cgroup && exec setpriv --bounding-set=-dac_read_search \
         {command} ps --source procfs --format ndjson -o {FIELDS} -p {pids} --sort pid'",
        other.id()
    );
    looks_from_inside(&reader, &script, &own);
}

/// Runs a script that shows a path and two processes, and checks that both have their container.
#[track_caller]
fn looks_from_inside(reader: &Cgroup, script: &str, own: &Running) {
    let output = reader.command(script).output().expect("sh runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let mut lines = text.lines();
    let shown = lines.next().and_then(|line| line.strip_prefix("0::"));
    let shown = shown.expect("a path");
    assert!(shown.starts_with("/../../../.."), "{shown}");
    let rows: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    for row in &rows {
        assert_eq!(row["container"], ID, "{row}");
        assert_eq!(row["pod_uid"], UID, "{row}");
    }
    let is_own = |row: &&Value| row["pid"] == own.id();
    let (own, other): (Vec<_>, Vec<_>) = rows.iter().partition(is_own);
    assert_eq!(own[0]["cgroup"], "/");
    assert_eq!(other[0]["cgroup"], shown);
}

#[test]
fn an_exited_process_has_its_container() {
    needs!(gate::bpf());
    let Some(cgroup) = container("exits") else {
        return;
    };
    let filter = format!("container == \"{ID}\" && cgroup == \"{}\"", cgroup.path());
    let mut exits = fastproc(&[
        "exits", "--format", "ndjson", "--count", "1", "--filter", &filter,
    ]);
    exits.args(["-o", "comm,container,pod_uid,cgroup"]);
    let mut exits = exits
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    // The first may exit before the command records.
    wait_until("an exit", || {
        let status = cgroup.command("exec sleep 0").status();
        assert!(status.expect("sh runs").success());
        exits.try_wait().expect("it is our child").is_some()
    });
    let output = exits.wait_with_output().expect("the child ends");
    let row: Value = serde_json::from_slice(&output.stdout).expect("a row");
    assert_eq!(row["container"], ID);
    assert_eq!(row["pod_uid"], UID);
    assert_eq!(row["cgroup"], cgroup.path());
}

/// As in a container that has the host's hierarchy, or a part of it, in another folder.
#[test]
fn the_hierarchy_may_be_mounted_at_another_folder() {
    needs!(gate::root());
    let Some(cgroup) = Cgroup::new("elsewhere/inner") else {
        return;
    };
    let (whole, part) = (Folder::new("whole"), Folder::new("part"));
    let command = env!("CARGO_BIN_EXE_fastproc");
    let parent = cgroup.folder();
    let parent = parent.parent().expect("it was made in one").display();
    let show = |root: &Folder| {
        let script = format!(
            "mount -t cgroup2 cgroup2 {} && mount --bind {parent} {} && \
             exec {command} --cgroup-root {} cgroups --format csv --fields path",
            whole.display(),
            part.display(),
            root.display()
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output()
            .expect("unshare(1) is there");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        text
    };
    let (all, path) = (show(&whole), cgroup.path());
    assert!(all.lines().any(|line| line == path), "{all}");
    let below = show(&part);
    assert_eq!(below.lines().collect::<Vec<_>>(), ["path", "/", "/inner"]);
    let refused = fastproc(&["--cgroup-root", "/proc", "ps"])
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("/proc/self/mountinfo"), "{text}");
}
