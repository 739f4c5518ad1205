//! Whose command line an exited process has, and who sees it.

use super::*;
use crate::{
    access::Reader, base::namespaces::INITIAL_USER_NS, records::record::Users,
    rules::access::tests::USERS as USER, snapshot::exit::Program,
};

const ROOT: Owner = Owner {
    users: Users {
        uid: 0,
        euid: 0,
        suid: 0,
        fsuid: 0,
        gid: 0,
        egid: 0,
        sgid: 0,
        fsgid: 0,
    },
    cap_permitted: u64::MAX,
    ..USER
};

/// A user without capabilities.
const VIEWER: Viewer = Viewer::Of(Reader {
    pid: 0,
    fsuid: 1000,
    fsgid: 100,
    cap_effective: 0,
    user_ns: INITIAL_USER_NS,
    confined: true,
});

fn exec(pid: u32, start_ns: u64, exec_id: u64, owner: Owner, line: &[u8]) -> Exec<'_> {
    Exec {
        pid,
        ppid: 1,
        start_ns,
        at_ns: start_ns,
        uid: owner.users.uid,
        euid: owner.users.euid,
        flags: 0,
        cgroup_id: 0,
        comm: &[],
        path: &[],
        cmdline: Some(Cmdline {
            bytes: line,
            cut: false,
        }),
        number: exec_id,
        owner,
    }
}

/// The exit of process 8, whose program began with this exec.
fn exit(pid: u32, start_ns: u64, exec_id: u64, owner: Owner) -> Exit {
    Exit {
        pid: 8,
        ppid: Some(7),
        start_ns: 20,
        owner,
        program: Program {
            pid,
            start_ns,
            exec_id,
        },
        ..Exit::default()
    }
}

#[test]
fn a_process_has_the_line_of_the_exec_that_began_its_program() {
    let mut programs = Programs::default();
    programs.begins(&exec(7, 10, 3, USER, b"parent\0"));
    let mut line_of = |exit: &Exit| {
        let line = programs.line(exit)?;
        let line = line.shown_to(&Viewer::All, exit);
        Some(line.expect("all is shown").bytes.to_vec())
    };
    assert_eq!(line_of(&exit(7, 10, 3, USER)), Some(b"parent\0".to_vec()));
    let others = [
        ("an earlier exec of the parent", exit(7, 10, 2, USER)),
        ("another process with its pid", exit(7, 11, 3, USER)),
        ("it cannot be told which", exit(0, 0, 0, USER)),
        ("an exec that was not recorded", exit(8, 20, 4, USER)),
    ];
    for (why, exit) in others {
        assert_eq!(line_of(&exit), None, "{why}");
    }
}

#[test]
fn a_line_is_shown_to_who_owned_the_process_at_the_exec_and_at_the_end() {
    let user_ns = Owner { user_ns: 7, ..USER };
    let capable = Owner {
        cap_permitted: 1,
        ..USER
    };
    let other = |users| Owner { users, ..USER };
    let saved = other(Users {
        suid: 0,
        ..USER.users
    });
    let group = other(Users {
        egid: 0,
        ..USER.users
    });
    for (at_exec, at_end, shows) in [
        (USER, USER, true),
        (ROOT, USER, false),
        (USER, ROOT, false),
        (user_ns, USER, false),
        (USER, user_ns, false),
        (capable, USER, false),
        (USER, capable, false),
        (saved, USER, false),
        (USER, group, false),
    ] {
        let mut programs = Programs::default();
        programs.begins(&exec(8, 20, 3, at_exec, b"mysql\0-psecret\0"));
        let exit = exit(8, 20, 3, at_end);
        let line = programs.line(&exit).expect("it is known");
        let shown = line.shown_to(&VIEWER, &exit);
        assert_eq!(shown.is_some(), shows, "{at_exec:?}, then {at_end:?}");
        assert!(line.shown_to(&Viewer::All, &exit).is_some());
    }
}

#[test]
fn programs_whose_exit_was_lost_do_not_fill_memory() {
    let mut programs = Programs::default();
    let line = vec![b'x'; 1024];
    for pid in 1..=40_000_u32 {
        programs.begins(&exec(pid, pid.into(), 1, USER, &line));
        assert!(programs.bytes <= MOST_BYTES && programs.running.len() <= MOST);
        assert!(programs.running.contains_key(&pid), "the newest is known");
    }
    let bytes: usize = programs.running.values().map(|one| one.line.len()).sum();
    assert_eq!(bytes, programs.bytes);
    programs.retain(|_| false);
    assert_eq!(programs.bytes, 0);
}

#[test]
fn programs_that_have_ended_do_not_fill_memory() {
    let mut programs = Programs::default();
    let gone = |pid: u32| Exit {
        pid,
        start_ns: pid.into(),
        ..exit(pid, pid.into(), 1, USER)
    };
    programs.begins(&exec(1, 1, 1, USER, b"daemon\0"));
    for pid in 2..=20_000_u32 {
        programs.begins(&exec(pid, pid.into(), 1, USER, b"short\0"));
        assert!(programs.line(&gone(pid)).is_some(), "it has just ended");
        assert!(programs.running.len() <= MOST_GONE + 1);
    }
    assert!(programs.running.contains_key(&1), "it runs");
    let bytes: usize = programs.running.values().map(|one| one.line.len()).sum();
    assert_eq!(bytes, programs.bytes);
}

#[test]
fn a_process_that_has_ended_is_forgotten_before_one_that_runs() {
    let mut programs = Programs::default();
    for pid in 1..=3 {
        programs.begins(&exec(pid, pid.into(), 1, USER, b"line\0"));
    }
    let ended = Exit {
        pid: 3,
        start_ns: 3,
        ..exit(3, 3, 1, USER)
    };
    assert!(programs.line(&ended).is_some());
    // The last of them is one too many.
    for pid in 10..8 + MOST as u32 {
        programs.begins(&exec(pid, pid.into(), 1, USER, b"line\0"));
    }
    assert!(programs.running.contains_key(&1), "it runs");
    assert!(!programs.running.contains_key(&3), "it has ended");
    assert_eq!(programs.running.len(), MOST);
}

#[test]
fn long_lines_do_not_displace_those_of_others() {
    let mut programs = Programs::default();
    programs.begins(&exec(1, 1, 1, ROOT, b"daemon\0"));
    let line = vec![b'x'; 4096];
    for pid in 2..=16_384_u32 {
        programs.begins(&exec(pid, pid.into(), 1, USER, &line));
    }
    assert!(programs.running.contains_key(&1), "the oldest is known");
    let lines = || programs.running.values().map(|one| &one.line);
    assert!(lines().any(|line| line.len() == 4096 && !line.cut));
    assert!(lines().all(|line| line.len() <= 1024 || !line.cut));
    assert!(lines().any(|line| line.len() == 1024 && line.cut));
}
