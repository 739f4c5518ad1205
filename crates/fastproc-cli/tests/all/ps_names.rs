//! Names of users and groups come from the system's own functions, so from every name service; names of terminals from
//! /dev.

use crate::common;

use std::{
    fs,
    process::{Command, Stdio},
};

use fastproc_testbed::{Folder, Running, gate, needs, wait_until};

/// A substitute for a name service: it knows only one user and one group, under other names than /etc/passwd.
const SERVICE: &str = r#"
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

int getpwuid_r(uid_t uid, struct passwd *user, char *buffer, size_t size, struct passwd **found)
{
	*found = NULL;
	if (uid != geteuid() || size < 16)
		return 0;
	memset(user, 0, sizeof(*user));
	user->pw_uid = uid;
	user->pw_name = strcpy(buffer, "from-services");
	user->pw_passwd = user->pw_gecos = user->pw_dir = user->pw_shell = buffer + 13;
	*found = user;
	return 0;
}

int getgrgid_r(gid_t gid, struct group *group, char *buffer, size_t size, struct group **found)
{
	static char *nobody[] = { NULL };

	*found = NULL;
	if (gid != getegid() || size < 16)
		return 0;
	memset(group, 0, sizeof(*group));
	group->gr_gid = gid;
	group->gr_name = strcpy(buffer, "group-services");
	group->gr_passwd = buffer + 14;
	group->gr_mem = nobody;
	*found = group;
	return 0;
}
"#;

#[test]
fn names_come_from_the_name_services() {
    let directory = Folder::new("names");
    let (source, library) = (directory.join("service.c"), directory.join("service.so"));
    fs::write(&source, SERVICE).expect("it can be written");
    let status = Command::new("clang")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .expect("clang, which builds the BPF programs, is there");
    assert!(status.success());
    let filter = format!("pid == {}", std::process::id());
    let output = common::fastproc(&[
        "ps",
        "--format",
        "csv",
        "--fields",
        "user,group",
        "--filter",
        &filter,
    ])
    .env("LD_PRELOAD", &library)
    .output()
    .expect("it can be started");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "user,group\nfrom-services,group-services\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Programs in a container have pseudo terminals of their own, with the same numbers as those of the host.
#[test]
fn a_terminal_of_another_container_has_no_name() {
    needs!(gate::root(), gate::programs(&["script", "unshare"]));
    let start = |mount: &str| {
        let mut shell = Command::new("unshare");
        shell
            .args(["--mount", "sh", "-c"])
            .arg(format!(
                "{mount} exec script -qc 'exec sleep 600' /dev/null"
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Running::start(&mut shell)
    };
    let own = start("");
    let other = start("mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts &&");
    let terminal = |of: &Running| {
        let path = format!("/proc/{0}/task/{0}/children", of.id());
        let mut child = String::new();
        wait_until("sleep to begin", || {
            child = fs::read_to_string(&path).unwrap_or_default();
            let name = fs::read_to_string(format!("/proc/{}/comm", child.trim()));
            name.is_ok_and(|name| name == "sleep\n")
        });
        let filter = format!("pid == {}", child.trim());
        let shown = ["ps", "--fields", "tty", "--no-headers", "--filter", &filter];
        common::output(&shown).trim().to_owned()
    };
    let own_name = terminal(&own);
    assert!(own_name.starts_with("pts/"), "{own_name}");
    assert_eq!(terminal(&other), "?", "here it is another one");
}

/// lxcfs mounts its own files over some of /proc.
#[test]
fn the_share_of_memory_is_of_what_meminfo_says() {
    needs!(gate::root(), gate::programs(&["unshare"]));
    let folder = Folder::new("meminfo");
    let small = folder.join("meminfo");
    fs::write(&small, "MemTotal:            100 kB\n").expect("it can be written");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount --bind \"$1\" /proc/meminfo && exec \"$2\" ps --no-headers --fields rss,pmem --filter 'pid == 1'")
        .arg("sh")
        .arg(small)
        .arg(env!("CARGO_BIN_EXE_fastproc"))
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let share: Option<f64> = text
        .split_whitespace()
        .nth(1)
        .and_then(|share| share.parse().ok());
    assert!(share > Some(100.0), "{output:?}");
}
