//! The labels of cgroups.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use fastproc::{
    cgroups::Cgroup,
    container::{Names, Origin, PodUid},
};

use crate::{exposition::escape, names};

/// Makes the labels of each cgroup once, and keeps them by its id, which the kernel does not use again.
#[derive(Debug)]
pub(super) struct Labels {
    names: Arc<Mutex<Names>>,
    kept: HashMap<u64, Kept>,
    /// Counts updates.
    update: u32,
}

#[derive(Debug)]
struct Kept {
    /// As they stand between the braces.
    text: String,
    /// It is the cgroup of this pod, of which no container was met that has the pod's names.
    nameless: Option<PodUid>,
    /// The last update that met it.
    met: u32,
}

/// Names of pods: the namespace, and the pod.
type Pods = HashMap<PodUid, [String; 2]>;

impl Labels {
    pub(super) fn new(names: Arc<Mutex<Names>>) -> Self {
        Self {
            names,
            kept: HashMap::new(),
            update: 0,
        }
    }

    /// Makes the labels of cgroups that are new, and forgets those that are gone.
    pub(super) fn update<'a>(&mut self, cgroups: impl Iterator<Item = Cgroup<'a>>) {
        let Self {
            names,
            kept,
            update,
        } = self;
        *update = update.wrapping_add(1);
        let mut pods = Pods::new();
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        for cgroup in cgroups {
            let make = || Kept::new(cgroup.path(), &mut names, &mut pods);
            kept.entry(cgroup.id()).or_insert_with(make).met = *update;
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
}

impl Kept {
    fn new(path: &[u8], names: &mut Names, pods: &mut Pods) -> Self {
        let text = |bytes: &[u8]| names::text(bytes).into_owned();
        let mut kept = Self {
            text: String::new(),
            nameless: None,
            met: 0,
        };
        let mut label = |name, value: &str| push(&mut kept.text, name, value);
        let origin = Origin::from_cgroup(path);
        let outer = Origin::from_cgroup(parent(path));
        label("id", &text(path));
        // Names belong to one cgroup each: what a container or a unit has made below its own is not told twice.
        if let Some(id) = origin
            .container
            .filter(|_| origin.container != outer.container)
        {
            let id = text(id);
            let found = names.get(&origin).cloned().unwrap_or_default();
            let name = found.name.as_deref();
            let pod = found.pod.as_deref();
            if origin.pod_uid.is_some() || pod.is_some() {
                label("container", name.unwrap_or_default());
                label("name", &id);
            } else {
                label("name", name.unwrap_or(&id));
            }
            label("image", found.image.as_deref().unwrap_or_default());
            let namespace = found.namespace.as_deref().unwrap_or_default();
            label("namespace", namespace);
            label("pod", pod.unwrap_or_default());
            if let (Some(uid), Some(pod)) = (origin.pod_uid, pod) {
                pods.insert(uid, [namespace.into(), pod.into()]);
            }
        } else if origin.pod_uid != outer.pod_uid {
            kept.nameless = origin.pod_uid;
        } else if origin.container.is_none() && origin.pod_uid.is_none() {
            let unit = origin.unit.filter(|_| origin.unit != outer.unit);
            let is_slice = origin.unit.is_none() && path.ends_with(b".slice");
            label("unit", &unit.map(text).unwrap_or_default());
            if unit.is_some() || is_slice {
                label("slice", &text(origin.slice));
            }
        }
        kept
    }
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
fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    &path[..slash.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_whose_names_differ_in_bytes_that_are_not_utf_8_have_different_labels() {
        let mut names = Names::recorded();
        let mut text = |path: &[u8]| Kept::new(path, &mut names, &mut Pods::new()).text;
        assert_eq!(
            text(b"/a\xff.service"),
            r#"id="/a\\xff.service""#.to_owned() + r#",unit="a\\xff.service",slice="-.slice""#
        );
        assert_ne!(text(b"/a\xff"), text(b"/a\xfe"));
    }
}
