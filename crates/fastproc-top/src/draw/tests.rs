//! Screens of cgroups whose files were made up, as text.

use std::{fs, path::PathBuf};

use fastproc::{Collector, Fields, SourceKind, cgroups as library};

use super::*;
use crate::{
    exited::Exited,
    keys::{Action, Place},
    machine::Machine,
    settings::Settings,
};

/// A hierarchy without the controllers io and pids.
struct Hierarchy(PathBuf);

/// Memory in use and its limit, anonymous memory, inactive file pages, CPU time in microseconds.
const CGROUPS: [(&str, u64, &str, u64, u64, u64); 4] = [
    (
        "system.slice",
        900 << 20,
        "max",
        300 << 20,
        100 << 20,
        7_000_000,
    ),
    (
        "system.slice/db.service",
        600 << 20,
        "1073741824",
        200 << 20,
        50 << 20,
        5_000_000,
    ),
    (
        "system.slice/web.service",
        300 << 20,
        "max",
        100 << 20,
        50 << 20,
        2_000_000,
    ),
    ("user.slice", 500 << 20, "max", 400 << 20, 0, 61_000_000),
];

impl Hierarchy {
    fn new(name: &str) -> Self {
        let name = format!("fastproc-top-cgroups-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // A run that was killed may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        let tree = Self(folder);
        tree.write("cgroup.controllers", "cpu memory\n");
        for (path, current, max, anon, inactive, usage) in CGROUPS {
            let write = |file: &str, text: String| tree.write(&format!("{path}/{file}"), &text);
            write("cgroup.controllers", "cpu memory\n".into());
            write("memory.current", format!("{current}\n"));
            write("memory.max", format!("{max}\n"));
            write(
                "memory.stat",
                format!("anon {anon}\nfile 4096\ninactive_file {inactive}\n"),
            );
            write(
                "cpu.stat",
                format!("usage_usec {usage}\nuser_usec {usage}\nsystem_usec 0\n"),
            );
        }
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of our own");
        fs::write(path, text).expect("the file is written");
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is shown of the hierarchy after these actions, without the header.
fn screen(name: &str, actions: &[Action]) -> String {
    let tree = Hierarchy::new(name);
    let mut reader = library::Cgroups::builder()
        .fields(library::Fields::ALL_BUT_AVERAGES)
        .open_recorded(&tree.0)
        .expect("it is a folder");
    let absent = reader.absent_controllers().to_vec();
    let source = Some(SourceKind::Procfs);
    let mut processes = Collector::builder()
        .fields(Fields::CGROUP)
        .source(source)
        .open();
    let processes = processes.as_mut().expect("there is a /proc");
    let mut lookup = Lookup::new(processes.host(), false).expect("there is a /proc");
    let mut settings = Settings::default();
    (settings.header, settings.cgroups.shown) = (false, true);
    settings.cgroups.sort = "-memory".into();
    let names = [
        "memory",
        "memory_max",
        "working_set",
        "anon",
        "cpu_time",
        "read",
        "path",
    ];
    settings.cgroups.columns = names.map(Into::into).into();
    let mut state = State::new(settings).expect("they are right");
    state.search = "web".into();
    let view = View {
        snapshot: processes.snapshot().expect("there is a /proc"),
        before: None,
        machine: &Machine::default(),
        earlier: None,
        line: None,
        exited: &Exited::default(),
        cgroups: Some(Cgroups {
            snapshot: reader.snapshot().expect("it is a folder"),
            before: None,
            members: None,
            absent: &absent,
            source: "files",
        }),
    };
    let mut painter = Painter::default();
    let mut sheet = Sheet::default();
    let mut paint = |state: &mut State| {
        sheet.reset(80, 40);
        painter.look_at_cgroups(&view.cgroups.expect("there are some"), state);
        painter.paint(&mut sheet, &view, state, &mut lookup, "");
        sheet.to_text()
    };
    let mut text = paint(&mut state);
    for &action in actions {
        state.do_there(action);
        text = paint(&mut state);
    }
    text
}

#[test]
fn cgroups_are_shown_in_order_and_what_is_not_known_is_said() {
    let text = screen("flat", &[]);
    let expected = "\
MEMORY▼  MAX WORKING ANON    TIME READ PATH
   900M    -    800M 300M 0:07.00    - /system.slice
   600M 1.0G    550M 200M 0:05.00    - /system.slice/db.service
   500M    -    500M 400M 1:01.00    - /user.slice
   300M    -    250M 100M 0:02.00    - /system.slice/web.service
      -    -       -    -       -    - /
5 cgroups, memory 1.4G; not known: pids, io (not on version 2)
";
    assert_eq!(text, expected);
}

#[test]
fn a_tree_of_cgroups_can_be_folded() {
    let actions = [Action::Tree, Action::SortBy("path")];
    // Where the arrow was there is room.
    let expected = " MEMORY  MAX WORKING ANON    TIME READ PATH▲
      -    -       -    -       -    - /
   900M    -    800M 300M 0:07.00    -   system.slice
   600M 1.0G    550M 200M 0:05.00    -     db.service
   300M    -    250M 100M 0:02.00    -     web.service
   500M    -    500M 400M 1:01.00    -   user.slice
5 cgroups, memory 1.4G; not known: pids, io (not on version 2)
";
    assert_eq!(screen("tree", &actions), expected);
    let fold = [Action::Move(1), Action::Move(0), Action::Fold];
    let text = screen("folded", &[actions.as_slice(), &fold].concat());
    assert!(
        text.contains("system.slice +") && !text.contains("db.service"),
        "{text}"
    );
    assert!(text.contains("3 cgroups, memory 1.4G"), "{text}");
}

#[test]
fn follows_the_cgroup_that_a_search_found_until_the_cursor_is_moved() {
    let opened = |name: &str, actions: &[Action]| {
        let actions = [&[Action::Found(1), Action::Reverse], actions].concat();
        let text = screen(name, &actions);
        text.lines().next().map(str::to_owned)
    };
    let found = opened("found", &[Action::Details, Action::Refresh]);
    assert_eq!(found.as_deref(), Some("Cgroup /system.slice/web.service"));
    let next = opened(
        "moved",
        &[Action::Move(1), Action::Details, Action::Refresh],
    );
    assert_eq!(next.as_deref(), Some("Cgroup /user.slice"));
}

#[test]
fn help_begins_with_the_keys_of_what_is_shown() {
    let first = |actions: &[Action]| {
        let text = screen(&format!("help-{}", actions.len()), actions);
        text.lines().next().map(str::to_owned)
    };
    let heading = |place: Place| Some(place.heading().to_owned());
    assert_eq!(first(&[Action::Help]), heading(Place::Cgroups));
    assert_eq!(
        first(&[Action::Details, Action::Help]),
        heading(Place::Cgroup)
    );
}

#[test]
fn one_cgroup_is_shown_with_its_history_and_its_values() {
    let text = screen("one", &[Action::Move(1), Action::Details, Action::Move(0)]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Cgroup /system.slice/db.service"));
    let memory = lines
        .find(|line| line.starts_with("memory "))
        .expect("its history");
    assert!(
        memory.contains(" 600M ") && memory.ends_with('█'),
        "{memory}"
    );
    let limit = lines
        .find(|line| line.contains("memory_max"))
        .expect("its values");
    assert!(limit.contains("1.0G"), "{limit}");
    let members = [Action::Move(1), Action::Details, Action::Tab(1)];
    let text = screen("members", &members);
    assert!(text.contains("is not known with this source"), "{text}");
}
