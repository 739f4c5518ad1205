//! The properties by which a process is named.

use std::borrow::Cow;

use fastproc::container::{Labels, Names, Origin, Runtime};

use crate::names;

/// What rules can use of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// Process id.
    pub pid: u32,
    /// The name in `/proc/PID/stat`.
    pub comm: &'a [u8],
    /// `/proc/PID/cmdline`: arguments, each terminated by a NUL.
    pub cmdline: &'a [u8],
    /// Name of the effective user.
    pub username: &'a str,
    /// Paths of its cgroups.
    pub cgroups: &'a [String],
    /// Its container, if known.
    pub container: Option<&'a Container>,
    /// Start time, in nanoseconds since 1970.
    pub start_unix_ns: u64,
}

/// What its cgroup reveals about a process, and the names that the runtime keeps. Unknown texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The full id of the container; its name for LXC and systemd-nspawn.
    pub id: String,
    /// The name of the container.
    pub name: String,
    /// The UID of the pod.
    pub pod_uid: String,
    /// The name of the pod.
    pub pod: String,
    /// The Kubernetes namespace of the pod.
    pub namespace: String,
    /// The image of the container.
    pub image: String,
    /// The container runtime.
    pub runtime: String,
    /// The machine of systemd-machined.
    pub machine: String,
    /// The systemd unit.
    pub unit: String,
    /// The systemd slice.
    pub slice: String,
}

impl Container {
    /// Parses the path of a cgroup; adds the names of `names`.
    pub fn from_cgroup(path: &[u8], names: Option<&mut Names>) -> Self {
        let text = |bytes: &[u8]| names::text(bytes).into_owned();
        let origin = Origin::from_cgroup(path);
        let labels = names.and_then(|names| names.get(&origin));
        let name = |of: fn(&Labels) -> &Option<Box<str>>| {
            let name = labels.and_then(|labels| of(labels).as_deref());
            name.unwrap_or_default().to_owned()
        };
        Self {
            id: origin.container.map(text).unwrap_or_default(),
            name: name(|labels| &labels.name),
            pod_uid: origin
                .pod_uid
                .map(|uid| uid.to_string())
                .unwrap_or_default(),
            pod: name(|labels| &labels.pod),
            namespace: name(|labels| &labels.namespace),
            image: name(|labels| &labels.image),
            runtime: origin.runtime.map_or("", Runtime::name).to_owned(),
            machine: origin.machine.as_deref().map(text).unwrap_or_default(),
            unit: origin.unit.map(text).unwrap_or_default(),
            slice: text(origin.slice),
        }
    }

    /// The member with this name in templates.
    pub(super) fn get(&self, name: &str) -> Option<&String> {
        Some(match name {
            "ContainerID" => &self.id,
            "ContainerName" => &self.name,
            "PodUID" => &self.pod_uid,
            "PodName" => &self.pod,
            "Namespace" => &self.namespace,
            "Image" => &self.image,
            "Runtime" => &self.runtime,
            "Machine" => &self.machine,
            "Unit" => &self.unit,
            "Slice" => &self.slice,
            _ => return None,
        })
    }
}

/// Members that come from the path of a cgroup.
pub(super) const OF_CGROUP: [&str; 6] = [
    "ContainerID",
    "PodUID",
    "Runtime",
    "Machine",
    "Unit",
    "Slice",
];

/// Members that come from files of the runtime.
pub(super) const OF_RUNTIME: [&str; 4] = ["ContainerName", "PodName", "Namespace", "Image"];

impl<'a> Subject<'a> {
    /// The arguments without trailing NULs.
    fn trimmed(&self) -> &'a [u8] {
        let end = self.cmdline.iter().rposition(|&byte| byte != 0);
        &self.cmdline[..end.map_or(0, |at| at + 1)]
    }

    /// The first argument, if there is any.
    pub(super) fn argv0(&self) -> Option<&'a [u8]> {
        let line = self.trimmed();
        if line.is_empty() {
            return None;
        }
        line.split(|&byte| byte == 0).next()
    }

    /// The first argument, or the name of a process without arguments.
    pub(super) fn exe(&self) -> &'a [u8] {
        self.argv0().unwrap_or(self.comm)
    }

    /// The last element of the first argument, or the name of a process without arguments. That name is not a path,
    /// whatever it contains.
    pub(super) fn exe_base(&self) -> &'a [u8] {
        self.argv0().map_or(self.comm, base)
    }

    /// The arguments with a space between them. A line that is UTF-8 stays as it is, so that expressions match it.
    pub(super) fn line(&self) -> String {
        let line = self.trimmed();
        let line = std::str::from_utf8(line).map_or_else(|_| names::text(line), Cow::Borrowed);
        line.replace('\0', " ")
    }
}

/// What must be read of a process before rules can be applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The command line.
    pub cmdline: bool,
    /// The name of the user.
    pub username: bool,
    /// The cgroups.
    pub cgroups: bool,
    /// The container.
    pub container: bool,
    /// The names that the runtime of the container keeps.
    pub container_names: bool,
}

impl Wants {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            cmdline: self.cmdline || other.cmdline,
            username: self.username || other.username,
            cgroups: self.cgroups || other.cgroups,
            container: self.container || other.container,
            container_names: self.container_names || other.container_names,
        }
    }
}

/// The last element of a path, as returned by Go's `filepath.Base`.
pub(super) fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|&byte| byte != b'/');
    let Some(end) = end else { return b"/" };
    let path = &path[..=end];
    let start = path.iter().rposition(|&byte| byte == b'/');
    &path[start.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_of_a_container_has_its_name() {
        let id = "3f5c".repeat(16);
        let path = format!(
            "/kubepods.slice/kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice/crio-{id}.scope"
        );
        let container = Container::from_cgroup(path.as_bytes(), None);
        for (name, value) in [
            ("ContainerID", &*id),
            ("PodUID", "34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11"),
            ("Runtime", "cri-o"),
            ("Machine", ""),
            ("PodName", ""),
            (
                "Slice",
                "kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice",
            ),
        ] {
            assert_eq!(
                container.get(name).map(String::as_str),
                Some(value),
                "{name}"
            );
        }
        for name in OF_CGROUP.iter().chain(&OF_RUNTIME) {
            assert!(container.get(name).is_some(), "{name}");
        }
        assert_eq!(container.get("Comm"), None);
        let named = Container::from_cgroup(b"/lxc/web", Some(&mut Names::default()));
        assert_eq!(named.name, "web");
    }

    #[test]
    fn bases_are_as_go_has_them() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//", "/"),
            ("a/b/", "b"),
            ("b", "b"),
            ("/x", "x"),
        ] {
            assert_eq!(base(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
