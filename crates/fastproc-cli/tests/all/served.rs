//! A service, unusual processes, and what readers see of them.
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    os::unix::process::CommandExt,
    process::{Command, Output, Stdio},
    sync::Arc,
};

use fastproc::record::TICK_NS;
use fastproc_testbed::{Folder, Running, wait_for, wait_for_state, wait_until};
use serde_json::Value;

use crate::common::{for_everyone, install, testbed};

pub const NOBODY: u32 = 65534;

/// The message to a reader whose user has used up its budget for the moment: on a busy machine walks take long.
const TOO_MANY: &str = "ask for too many";

/// A service with its own folder, ended with the test.
pub struct Served {
    pub child: Running,
    folder: Folder,
    /// The folder of the command.
    command: Arc<Folder>,
}

impl Served {
    pub fn start(name: &str) -> Self {
        Self::start_by(name, &[])
    }

    /// Starts it in a mount namespace where `/proc` has these mount options.
    pub fn start_within(name: &str, options: &str) -> Self {
        let mount = mount_proc(options);
        Self::start_by(name, &["unshare", "--mount", "sh", "-c", &mount, "sh"])
    }

    fn start_by(name: &str, prefix: &[&str]) -> Self {
        let (folder, command) = (Folder::new(name), for_everyone());
        let [program, socket] = [command.join("fastproc"), folder.join("socket")];
        let [program, socket] = [&program, &socket].map(|path| path.to_str().expect("UTF-8"));
        // Tests send requests as fast as they can.
        let serve = [
            program,
            "serve",
            "--cpu-of-user=1000",
            "--no-metrics",
            "--socket",
            socket,
        ];
        let argv = [prefix, &serve].concat();
        let mut command_line = Command::new(argv[0]);
        let served = Self {
            child: Running::start(command_line.args(&argv[1..]).stderr(Stdio::null())),
            folder,
            command,
        };
        wait_until("the service listens", || {
            served.command(0, &["serve", "--status"]).status.success()
        });
        served
    }

    pub fn program(&self) -> String {
        self.command.join("fastproc").display().to_string()
    }

    /// The output of the command, run by this user.
    pub fn command(&self, uid: u32, arguments: &[&str]) -> Output {
        let mut command = self.prepared(uid, arguments);
        command.output().expect("it can be started")
    }

    pub fn prepared(&self, uid: u32, arguments: &[&str]) -> Command {
        let program = self.program();
        self.within(uid, &[&[program.as_str()], arguments].concat())
    }

    /// A program that knows the service, as this user and in the mount namespace of the service.
    pub fn within(&self, uid: u32, argv: &[impl AsRef<str>]) -> Command {
        let mut command = self.knows(&["nsenter"]);
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.child.id()));
        command
            .args(as_user(uid))
            .args(argv.iter().map(AsRef::as_ref));
        command
    }

    /// A program that knows the service.
    pub fn knows(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(argv[0]);
        command
            .args(&argv[1..])
            .env("FASTPROC_SOCKET", self.folder.join("socket"))
            .current_dir("/");
        command
    }

    /// A script that reads every process by `/proc`, by this source and by `/proc` again, all in one namespace.
    pub fn three_looks(&self, source: &str) -> [String; 7] {
        // Starts when sleep is sleeping, and is no longer a shell.
        const SCRIPT: &str = "sleep 1000 >/dev/null & \
            tries=0; \
            until \"$1\" ps --source procfs --format ndjson --quiet --fields comm | grep -q '\"sleep\"' || [ $((tries += 1)) -gt 1000 ]; do :; done; \
            for source in procfs $2 procfs; do \
                \"$1\" ps --verbose --source $source --format ndjson --fields $3 --sort pid || exit 3; echo; \
            done; kill $!";
        let program = self.program();
        ["sh", "-c", SCRIPT, "sh", &program, source, FIELDS].map(str::to_owned)
    }

    #[track_caller]
    pub fn output(&self, uid: u32, arguments: &[&str]) -> Vec<u8> {
        let mut output = self.command(uid, arguments);
        // On a busy machine the walks for one user may already have used half of a second.
        wait_until("a walk is allowed", || {
            let busy = String::from_utf8_lossy(&output.stderr).contains(TOO_MANY);
            if busy {
                output = self.command(uid, arguments);
            }
            !busy
        });
        assert!(
            output.status.success(),
            "{arguments:?} as {uid}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }
}

/// A shell script that mounts another `/proc` and becomes its arguments.
pub fn mount_proc(options: &str) -> String {
    format!("mount -t proc -o {options} proc /proc && exec \"$@\"")
}

/// The words that run a program as this user.
pub fn as_user(uid: u32) -> Vec<String> {
    let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
    let words = ["setpriv".to_owned()].into_iter().chain(ids);
    words.chain(["--clear-groups".to_owned()]).collect()
}

/// Processes of a user: one that is dumpable, one that is not since its program is unreadable, and one with another group.
fn of_user(served: &Served, uid: u32) -> [Running; 3] {
    let [sleep, hidden] = ["sleep", "hidden"].map(|name| served.folder.join(name));
    for program in [&sleep, &hidden] {
        install("/bin/sleep", program);
    }
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o111)).expect("its mode is set");
    [(&sleep, uid), (&hidden, uid), (&sleep, uid + 1)].map(|(program, gid)| {
        let mut command = Command::new(program);
        command.arg("1000").stdin(Stdio::null());
        Running::start(command.current_dir("/").uid(uid).gid(gid))
    })
}

/// Unusual processes, and some of each of these users.
pub struct Odd {
    own: Vec<Running>,
}

impl Odd {
    pub fn start(served: &Served, users: &[u32]) -> Self {
        testbed();
        let own = users.iter().flat_map(|&uid| of_user(served, uid));
        let odd = Self { own: own.collect() };
        for child in &odd.own {
            wait_for_state(child.id(), 'S');
        }
        odd
    }

    pub fn pids(&self) -> Vec<u32> {
        let own = self.own.iter().map(|child| child.id());
        let odd = testbed().processes().iter().map(|process| process.pid);
        odd.chain(own).collect()
    }
}

/// Fields that the kernel shows only to some users, and fields that decide about that; the last two are shown to all
/// users.
const FIELDS: &str = "pid,comm,ppid,startcode,endcode,startstack,kstkesp,start_data,arg_start,env_end,exit_code,rchar,wchar,syscr,\
    syscw,read_bytes,write_bytes,cancelled_write_bytes,uid,euid,suid,fsuid,gid,egid,sgid,fsgid,groups,capprm,capeff,\
    sigcgt,sigign,num_threads,starttime,utime,stime,priority,nice,policy,vsize,rss";

/// Three readings of every process by one reader.
pub struct Looks {
    looks: Vec<BTreeMap<u64, Value>>,
    /// The messages of the command.
    pub told: String,
}

impl Looks {
    #[track_caller]
    pub fn take(command: &mut Command) -> Self {
        let (output, told) = wait_for("a walk is allowed", || {
            let output = command.output().expect("it can be started");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            (!told.contains(TOO_MANY)).then_some((output, told))
        });
        assert!(output.status.success(), "{command:?}: {told}");
        let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        let looks: Vec<_> = text.split_terminator("\n\n").map(rows).collect();
        assert_eq!(looks.len(), 3, "{command:?}: {told}");
        Self { looks, told }
    }

    /// Returns the number of values that were the same in the middle as before and after. None may differ, no process
    /// may be missing, and none may be shown that did not exist.
    #[track_caller]
    pub fn compare(&self, odd: &Odd, who: &str) -> usize {
        let [before, shown, after] = &self.looks[..] else {
            panic!("{who}: {} looks", self.looks.len())
        };
        let odd = odd.pids();
        let is_odd = |pid| odd.iter().any(|&odd| u64::from(odd) == pid);
        let more = shown
            .keys()
            .find(|&pid| is_odd(*pid) && !before.contains_key(pid) && !after.contains_key(pid));
        assert_eq!(more, None, "{who}: {}", self.told);
        let mut compared = 0;
        let mut different = Vec::new();
        for (pid, before) in before {
            // A process that exited meanwhile, or began to, may have had any value.
            let has_memory = |row: &Value| row["vsize_bytes"] != 0;
            let same = after.get(pid).filter(|after| {
                after["starttime_ns"] == before["starttime_ns"]
                    && has_memory(after) == has_memory(before)
            });
            let Some(after) = same.filter(|_| is_odd(*pid) || before["comm"] == "sleep") else {
                continue;
            };
            let Some(shown) = shown.get(pid) else {
                different.push(format!("{pid}: missing"));
                continue;
            };
            for (field, value) in before.as_object().expect("an object") {
                // A value that changes may be anything between.
                if after[field] == *value {
                    compared += 1;
                    if shown[field] != *value {
                        different.push(format!(
                            "{pid}: {field} {} instead of {value}",
                            shown[field]
                        ));
                    }
                }
            }
        }
        assert!(different.is_empty(), "{who}: {different:#?}\n{}", self.told);
        assert!(compared > 0, "{who}: there is nobody: {}", self.told);
        compared
    }
}

fn rows(text: &str) -> BTreeMap<u64, Value> {
    let rows = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).expect("an object");
        // The text has ticks, and records of one's own processes are finer.
        for time in ["starttime_ns", "utime_ns", "stime_ns"] {
            if let Some(ns) = row[time].as_u64() {
                row[time] = (ns / TICK_NS).into();
            }
        }
        (row["pid"].as_u64().expect("a number"), row)
    });
    rows.collect()
}
