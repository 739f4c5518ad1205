//! Texts that no record holds: names, command lines, cgroups.

use std::collections::HashMap;

use fastproc::{
    Cmdline,
    container::{Labels, Origin},
};
use fastproc_columns::Lookup;

use crate::{
    escape::{arguments, unescaped},
    rows::Rows,
};

/// The columns that they are read from.
pub(super) const OF_IDENTITY: &[&str] = &[
    "user",
    "real_user",
    "group",
    "real_group",
    "command_line",
    "command_line_cut",
    "cgroup",
    "container_name",
    "pod",
    "namespace",
    "image",
    "uid",
    "euid",
    "gid",
    "egid",
    "cgroup_id",
];

/// The texts of some processes.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    users: HashMap<u32, Box<[u8]>>,
    groups: HashMap<u32, Box<[u8]>>,
    cgroups: HashMap<u64, Box<[u8]>>,
    labels: Vec<(Box<[u8]>, Labels)>,
    lines: Vec<(u32, u64, Line)>,
}

/// A command line, as a history keeps it.
#[derive(Clone, Debug)]
pub struct Line {
    bytes: Box<[u8]>,
    cut: bool,
}

impl Line {
    /// The line.
    pub fn get(&self) -> Cmdline<'_> {
        Cmdline {
            bytes: &self.bytes,
            cut: self.cut,
        }
    }
}

impl Texts {
    /// Adds what a row of `identities` or `exits` says. Returns its command line.
    pub(super) fn add(&mut self, rows: &Rows, row: usize) -> Option<Line> {
        let number = |name: &str| rows.numbers(name).get(row).copied().flatten();
        let text = |name: &str| rows.texts(name).get(row)?.as_deref();
        let bytes = |name: &str| text(name).and_then(unescaped);
        for (name, id) in [("user", "euid"), ("real_user", "uid")] {
            if let (Some(name), Some(id)) = (bytes(name), number(id)) {
                self.users.insert(id as u32, name.into());
            }
        }
        for (name, id) in [("group", "egid"), ("real_group", "gid")] {
            if let (Some(name), Some(id)) = (bytes(name), number(id)) {
                self.groups.insert(id as u32, name.into());
            }
        }
        if let (Some(path), Some(id)) = (bytes("cgroup"), number("cgroup_id"))
            && !self.cgroups.contains_key(&(id as u64))
        {
            let label = |name: &str| {
                let bytes = bytes(name)?;
                std::str::from_utf8(&bytes).ok().map(Into::into)
            };
            let mut labels = Labels::default();
            labels.name = label("container_name");
            labels.pod = label("pod");
            labels.namespace = label("namespace");
            labels.image = label("image");
            self.add_cgroup(id as u64, &path, Some(labels));
        }
        Some(Line {
            bytes: text("command_line").and_then(arguments)?.into(),
            cut: number("command_line_cut") == Some(1),
        })
    }

    /// Adds others.
    pub fn extend(&mut self, more: Self) {
        self.users.extend(more.users);
        self.groups.extend(more.groups);
        self.cgroups.extend(more.cgroups);
        self.labels.extend(more.labels);
        self.lines.extend(more.lines);
    }

    /// Adds the name of a user.
    pub fn add_user(&mut self, id: u32, name: &[u8]) {
        self.users.insert(id, name.into());
    }

    /// Adds the name of a group.
    pub fn add_group(&mut self, id: u32, name: &[u8]) {
        self.groups.insert(id, name.into());
    }

    /// Adds the path of a cgroup, and the labels of its container if it has one.
    pub fn add_cgroup(&mut self, id: u64, path: &[u8], labels: Option<Labels>) {
        if let (Some(container), Some(labels)) = (Origin::from_cgroup(path).container, labels) {
            self.labels.push((container.into(), labels));
        }
        self.cgroups.insert(id, path.into());
    }

    /// Adds the command line of a process: each argument with a NUL.
    pub fn add_line(&mut self, pid: u32, start_ns: u64, line: Cmdline<'_>) {
        let (bytes, cut) = (line.bytes.into(), line.cut);
        self.lines.push((pid, start_ns, Line { bytes, cut }));
    }

    /// Gives them to a lookup of recorded values.
    pub fn keep(&self, lookup: &mut Lookup) {
        for (id, name) in &self.users {
            lookup.users.keep(*id, name);
        }
        for (id, name) in &self.groups {
            lookup.groups.keep(*id, name);
        }
        for (id, path) in &self.cgroups {
            lookup.details.keep_cgroup(*id, path);
        }
        for (container, labels) in &self.labels {
            lookup.containers.keep(container, labels.clone());
        }
        for (pid, start_ns, line) in &self.lines {
            lookup.details.keep_cmdline(*pid, *start_ns, line.get());
        }
    }
}
