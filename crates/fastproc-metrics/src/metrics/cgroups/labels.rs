//! The labels of cgroups.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fastproc::{
    cgroups::{Cgroup, Ids},
    container::{Names, Origin, PodUid},
    kept,
};

use crate::{exposition::escape, names};

/// Makes the labels of each cgroup, and keeps them by its id, which the kernel does not use again. Those with names of
/// containers and pods are made again after some seconds.
#[derive(Debug)]
pub(super) struct Labels {
    names: Arc<Mutex<Names>>,
    kept: Ids<Kept>,
    pub(super) check_every: Duration,
    checked: Duration,
    /// Counts updates.
    update: u32,
}

#[derive(Debug, Default)]
struct Kept {
    /// As they stand between the braces.
    text: String,
    /// Where the names of a container begin in it.
    names_at: usize,
    /// Those of a cgroup below that of a container, with the names of the container.
    of_processes: Option<Box<str>>,
    within: Within,
    /// It has the names of a container or a pod, which may change.
    has_names: bool,
    /// It is the cgroup of this pod, of which no container was met that has the pod's names.
    nameless: Option<PodUid>,
    /// The last update that met it.
    met: u32,
}

/// Which cgroups have the names for a cgroup: its own id, or that of an ancestor. 0: none has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Within {
    /// The one with the names of the container.
    pub container: u64,
    /// The one with the names of the pod.
    pub pod: u64,
    /// Whether the container is the sandbox of the pod, whose only process keeps its namespaces.
    pub is_sandbox: bool,
    /// Whether it is below the manager of a user, whose containers have no names of runtimes, either.
    pub is_of_user: bool,
}

/// Names of pods: the namespace, and the pod.
type Pods = HashMap<PodUid, [String; 2]>;

impl Labels {
    pub(super) fn new(names: Arc<Mutex<Names>>) -> Self {
        Self {
            names,
            kept: Ids::default(),
            check_every: kept::CHECK_EVERY,
            checked: Duration::ZERO,
            update: 0,
        }
    }

    /// Makes the labels of cgroups that are new, and forgets those that are gone.
    pub(super) fn update<'a>(&mut self, cgroups: impl Iterator<Item = Cgroup<'a>>) {
        let Self {
            names,
            kept,
            check_every,
            checked,
            update,
        } = self;
        let now = kept::now();
        if now >= *checked + *check_every {
            *checked = now;
            // All at once, since a pod has the names that its containers have.
            kept.retain(|_, kept| !kept.has_names);
        }
        *update = update.wrapping_add(1);
        let mut pods = Pods::new();
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        for cgroup in cgroups {
            if !kept.contains_key(&cgroup.id()) {
                // Parents come before their children.
                let parent = kept.get(&cgroup.record().identity.parent);
                let new = Kept::new(cgroup.id(), cgroup.path(), parent, &mut names, &mut pods);
                kept.insert(cgroup.id(), new);
            }
            if let Some(kept) = kept.get_mut(&cgroup.id()) {
                kept.met = *update;
            }
        }
        kept.retain(|_, kept| kept.met == *update);
        // A pod has its names from its containers, which come after it.
        for kept in kept.values_mut() {
            let pod = kept.nameless.and_then(|uid| pods.get(&uid));
            if let Some([namespace, pod]) = pod {
                push(&mut kept.text, "namespace", namespace);
                push(&mut kept.text, "pod", pod);
                kept.nameless = None;
            }
        }
    }

    /// The labels of a cgroup that the last update met.
    pub(super) fn get(&self, cgroup: Cgroup<'_>) -> &str {
        self.kept.get(&cgroup.id()).map_or("", |kept| &kept.text)
    }

    /// The labels of a value that covers the processes of a cgroup without its descendants: below the cgroup of a container,
    /// too, they have its names, so that a sum by name has all processes of the container, each once. With crun the
    /// processes are in a cgroup below, and with systemd in the container they are in many.
    pub(super) fn of_processes(&self, cgroup: Cgroup<'_>) -> &str {
        let kept = self.kept.get(&cgroup.id());
        kept.map_or("", |kept| {
            kept.of_processes.as_deref().unwrap_or(&kept.text)
        })
    }

    /// Which cgroups have the names for this one.
    pub(super) fn within(&self, cgroup: Cgroup<'_>) -> Within {
        let kept = self.kept.get(&cgroup.id());
        kept.map_or_else(Within::default, |kept| kept.within)
    }
}

impl Kept {
    fn new(
        id: u64,
        path: &[u8],
        parent: Option<&Self>,
        names: &mut Names,
        pods: &mut Pods,
    ) -> Self {
        let mut kept = Self {
            within: parent.map_or_else(Within::default, |parent| parent.within),
            ..Self::default()
        };
        let text = |bytes: &[u8]| names::text(bytes).into_owned();
        let origin = Origin::from_cgroup(path);
        let outer = Origin::from_cgroup(above(path));
        push(&mut kept.text, "id", &text(path));
        kept.names_at = kept.text.len();
        let mut label = |name, value: &str| push(&mut kept.text, name, value);
        // Names belong to one cgroup each: what a container or a unit has made below its own is not told twice.
        if let Some(container) = origin
            .container
            .filter(|_| origin.container != outer.container)
        {
            kept.has_names = true;
            let container = text(container);
            let found = names.get(&origin).cloned().unwrap_or_default();
            let name = found.name.as_deref();
            let pod = found.pod.as_deref();
            if origin.pod_uid.is_some() || pod.is_some() {
                label("container", name.unwrap_or_default());
                label("name", &container);
            } else {
                label("name", name.unwrap_or(&container));
            }
            label("image", found.image.as_deref().unwrap_or_default());
            let namespace = found.namespace.as_deref().unwrap_or_default();
            label("namespace", namespace);
            label("pod", pod.unwrap_or_default());
            if let (Some(uid), Some(pod)) = (origin.pod_uid, pod) {
                pods.insert(uid, [namespace.into(), pod.into()]);
            }
            kept.within.container = id;
            let is_manager = |unit: &[u8]| unit.starts_with(b"user@");
            kept.within.is_of_user = origin.unit.is_some_and(is_manager);
            // containerd gives the sandbox no name, CRI-O and Docker this one.
            kept.within.is_sandbox = pod.is_some() && matches!(name, None | Some("POD"));
        } else if origin.pod_uid != outer.pod_uid {
            kept.has_names = true;
            kept.nameless = origin.pod_uid;
            kept.within.pod = id;
        } else if origin.container.is_none() && origin.pod_uid.is_none() {
            // Below its service, the manager of a user has units of its own.
            let inner = below_manager(path);
            let (origin, outer) = inner.map_or((origin, outer), |(_, inner)| {
                let outer = Origin::from_cgroup(above(inner));
                (Origin::from_cgroup(inner), outer)
            });
            let unit = origin.unit.filter(|_| origin.unit != outer.unit);
            let is_slice = origin.unit.is_none() && path.ends_with(b".slice");
            label("unit", &unit.map(text).unwrap_or_default());
            if unit.is_some() || is_slice {
                // A user gives units any names, and so also those of the machine's. No slice of the machine has a slash.
                let manager = inner.map_or_else(String::new, |(manager, _)| text(manager) + "/");
                label("slice", &(manager + &text(origin.slice)));
            }
        } else if let Some(parent) = parent.filter(|parent| parent.within.container != 0) {
            kept.has_names = true;
            // Of the container itself, or of a cgroup in between.
            let of_parent = parent.of_processes.as_deref().unwrap_or(&parent.text);
            let names = &of_parent[parent.names_at..];
            kept.of_processes = Some((kept.text.clone() + names).into());
        }
        kept
    }
}

/// The manager of a user, `user@UID.service`, and the path below it. `None` for that of a manager itself, and others.
fn below_manager(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = path.strip_prefix(b"/user.slice/")?;
    let slash = rest.windows(6).position(|part| part == b"/user@")?;
    let after = &rest[slash + 1..];
    let end = after.iter().position(|&byte| byte == b'/')?;
    let manager = &after[..end];
    manager
        .ends_with(b".service")
        .then_some((manager, &after[end..]))
}

/// Appends a label; one without a value is as good as none.
fn push(text: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push(',');
    }
    *text += name;
    *text += "=\"";
    *text += &escape(value);
    text.push('"');
}

/// The path of the cgroup that a cgroup is in.
fn above(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    &path[..slash.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_whose_names_differ_in_bytes_that_are_not_utf_8_have_different_labels() {
        let mut names = Names::recorded();
        let mut text = |path: &[u8]| Kept::new(1, path, None, &mut names, &mut Pods::new()).text;
        assert_eq!(
            text(b"/a\xff.service"),
            r#"id="/a\\xff.service""#.to_owned() + r#",unit="a\\xff.service",slice="-.slice""#
        );
        assert_ne!(text(b"/a\xff"), text(b"/a\xfe"));
    }
    #[test]
    fn units_of_the_manager_of_a_user_have_their_names() {
        let mut names = Names::recorded();
        let user = "/user.slice/user-7.slice";
        for (path, labels) in [
            (
                "/user@7.service",
                r#",unit="user@7.service",slice="user-7.slice""#,
            ),
            (
                "/user@7.service/app.slice",
                r#",slice="user@7.service/app.slice""#,
            ),
            (
                "/user@7.service/system.slice/sshd.service",
                r#",unit="sshd.service",slice="user@7.service/system.slice""#,
            ),
            ("/user@7.service/app.slice/a.service/b.scope", ""),
            (
                "/user@7.service/init.scope",
                r#",unit="init.scope",slice="user@7.service/-.slice""#,
            ),
            ("/session-3.scope/user@7.service", ""),
        ] {
            let path = format!("{user}{path}");
            let kept = Kept::new(1, path.as_bytes(), None, &mut names, &mut Pods::new());
            assert_eq!(kept.text, format!("id=\"{path}\"{labels}"));
        }
    }

    /// A user can make cgroups with any name there.
    #[test]
    fn a_container_below_the_manager_of_a_user_is_of_the_user() {
        let mut names = Names::recorded();
        let scope = format!("docker-{}.scope", "a1b2".repeat(16));
        for (folder, expected) in [
            ("/user.slice/user-7.slice/user@7.service/app.slice", true),
            ("/system.slice", false),
        ] {
            let path = format!("{folder}/{scope}");
            let kept = Kept::new(5, path.as_bytes(), None, &mut names, &mut Pods::new());
            assert_eq!(kept.within.container, 5);
            assert_eq!(kept.within.is_of_user, expected, "{path}");
        }
    }

    /// crun puts the processes of a container into a cgroup below that of the container, and systemd in it into many.
    #[test]
    fn values_of_processes_have_the_names_of_the_container_around_them() {
        let id = "a1b2".repeat(16);
        let mut names = Names::recorded();
        let mut make = |path: &str, parent: Option<&Kept>| {
            Kept::new(1, path.as_bytes(), parent, &mut names, &mut Pods::new())
        };
        let scope = format!("/machine.slice/libpod-{id}.scope");
        let container = make(&scope, None);
        assert_eq!(container.of_processes, None);
        let below = format!("{scope}/container");
        let payload = make(&below, Some(&container));
        let init = make(&format!("{below}/init.scope"), Some(&payload));
        for (kept, path) in [(&payload, ""), (&init, "/init.scope")] {
            assert_eq!(kept.text, format!("id=\"{below}{path}\""));
            let named = format!("{},name=\"{id}\"", kept.text);
            assert_eq!(kept.of_processes.as_deref(), Some(&*named));
        }
    }
}
