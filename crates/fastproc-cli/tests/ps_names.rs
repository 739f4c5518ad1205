//! Names of users and groups come from the system's own functions, so from every name service.

mod common;

use std::{fs, process::Command};

use fastproc_testbed::Folder;

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
