//! Files of runtimes with the names of containers.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::{
    names::Labels,
    origin::{Origin, Runtime},
    pod_uid::PodUid,
    runtime_roots,
};
use crate::base::{
    kept::{self, Stamp},
    regular_file,
};

/// The longest file that is read. A container's file has about 20 KiB; Podman has one file for all containers.
const LONGEST_FILE: u64 = 16 << 20;
/// The longest name. Names of Kubernetes have at most 253 bytes, and that of an image may have a digest.
pub(super) const LONGEST_NAME: usize = 1024;

/// The names of a container, and the file that has them.
pub(super) struct Found {
    pub labels: Labels,
    pub file: PathBuf,
    pub stamp: Stamp,
}

/// Files of the runtimes below one root of a host.
#[derive(Debug)]
pub(super) struct RuntimeFiles {
    root: PathBuf,
    /// Folders that the configurations of the runtimes name, and when they were read.
    named: Vec<(Runtime, PathBuf)>,
    read: Option<Duration>,
    /// Podman's lists, each of which has all containers.
    lists: HashMap<PathBuf, (Stamp, HashMap<Box<str>, Labels>)>,
}

impl RuntimeFiles {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            named: Vec::new(),
            read: None,
            lists: HashMap::new(),
        }
    }

    /// The names of the container with this id in the first file that has them. The runtime may be unknown.
    pub(super) fn labels(&mut self, id: &str, origin: &Origin<'_>) -> Option<Found> {
        let now = kept::now();
        if self.read.is_none_or(|read| now >= read + kept::CHECK_EVERY) {
            self.named = runtime_roots::named(&self.root);
            self.read = Some(now);
        }
        let files = FILES.iter();
        let files = files.filter(|files| origin.runtime.is_none_or(|of| of == files.runtime));
        let paths = files.flat_map(|files| {
            let usual = files.folders.iter().map(|folder| self.root.join(folder));
            let named = self.named.iter();
            let named = named.filter(|(of, _)| *of == files.runtime);
            let folders = usual.chain(named.map(|(_, folder)| folder.clone()));
            folders.flat_map(move |folder| {
                let paths = files.paths.iter();
                paths.map(move |path| (folder.join(path.replace("ID", id)), &files.format))
            })
        });
        let paths: Vec<_> = paths.collect();
        paths.into_iter().find_map(|(file, format)| {
            let stamp = Stamp::at(&file)?;
            let labels = match format {
                Format::Bundle => of_bundle(&read_json(&file)?),
                Format::Nerdctl => of_nerdctl(&read_json(&file)?),
                Format::Docker => of_docker(&read_json(&file)?, origin.pod_uid),
                Format::Podman => self.listed(&file, stamp)?.get(id)?.clone(),
            };
            Some(Found {
                labels,
                file,
                stamp,
            })
        })
    }

    /// The containers in a list of Podman, which is parsed when it has changed.
    fn listed(&mut self, file: &Path, stamp: Stamp) -> Option<&HashMap<Box<str>, Labels>> {
        if self.lists.get(file).is_none_or(|(of, _)| *of != stamp) {
            // A list that is wrong has no names until it changes.
            let list = read_json(file).map_or_else(HashMap::new, |list| of_podman(&list));
            self.lists.insert(file.into(), (stamp, list));
        }
        self.lists.get(file).map(|(_, list)| list)
    }
}

/// The files of a runtime with the names of containers.
struct Files {
    runtime: Runtime,
    /// The usual folders. The configuration of the runtime may name others.
    folders: &'static [&'static str],
    /// Paths below each, with `ID` for the id of the container.
    paths: &'static [&'static str],
    format: Format,
}

/// The format of a file.
enum Format {
    /// A bundle that the runtime makes for the kubelet.
    Bundle,
    Nerdctl,
    Docker,
    Podman,
}

const FILES: [Files; 5] = [
    Files {
        runtime: Runtime::Containerd,
        folders: CONTAINERD,
        paths: &["io.containerd.runtime.v2.task/k8s.io/ID/config.json"],
        format: Format::Bundle,
    },
    Files {
        runtime: Runtime::Containerd,
        folders: CONTAINERD,
        paths: &["io.containerd.runtime.v2.task/default/ID/config.json"],
        format: Format::Nerdctl,
    },
    Files {
        runtime: Runtime::CriO,
        folders: STORAGE,
        paths: &["overlay-containers/ID/userdata/config.json"],
        format: Format::Bundle,
    },
    Files {
        runtime: Runtime::Docker,
        folders: DOCKER,
        paths: &["containers/ID/config.v2.json"],
        format: Format::Docker,
    },
    Files {
        runtime: Runtime::Podman,
        folders: STORAGE,
        paths: &[
            "overlay-containers/containers.json",
            "overlay-containers/volatile-containers.json",
        ],
        format: Format::Podman,
    },
];

/// Folders of containerd, also of the distributions of Kubernetes that have it.
const CONTAINERD: &[&str] = &[
    "run/containerd",
    "run/k3s/containerd",
    "run/k0s/containerd",
    "var/snap/microk8s/common/run/containerd",
];
/// Folders of Docker.
pub(super) const DOCKER: &[&str] = &["var/lib/docker", "var/snap/docker/common/var-lib-docker"];
/// Folders of containers/storage, which CRI-O and Podman use.
const STORAGE: &[&str] = &["run/containers/storage", "var/lib/containers/storage"];

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read_file(path)?).ok()
}

/// Reads a whole file, unless it is too long or not a regular file, which could make the reader wait.
pub(super) fn read_file(path: &Path) -> Option<Vec<u8>> {
    regular_file::read(path, LONGEST_FILE).ok()
}

/// The first of these members that is a non-empty text.
fn text(object: Option<&Value>, members: &[&str]) -> Option<Box<str>> {
    let texts = members
        .iter()
        .filter_map(|member| object?.get(member)?.as_str());
    let mut texts = texts.filter(|text| !text.is_empty() && text.len() <= LONGEST_NAME);
    texts.next().map(Into::into)
}

/// The labels that the kubelet sets for every runtime.
fn of_kubelet(labels: Option<&Value>) -> Labels {
    Labels {
        name: text(labels, &["io.kubernetes.container.name"]),
        pod: text(labels, &["io.kubernetes.pod.name"]),
        namespace: text(labels, &["io.kubernetes.pod.namespace"]),
        image: None,
    }
}

/// The annotations of an OCI bundle: those of containerd's plugin for Kubernetes, or of CRI-O.
fn of_bundle(bundle: &Value) -> Labels {
    let annotations = bundle.get("annotations");
    let labels = of_kubelet(annotations);
    let text = |members| text(annotations, members);
    Labels {
        name: labels
            .name
            .or_else(|| text(&["io.kubernetes.cri.container-name"])),
        pod: labels
            .pod
            .or_else(|| text(&["io.kubernetes.cri.sandbox-name"])),
        namespace: labels
            .namespace
            .or_else(|| text(&["io.kubernetes.cri.sandbox-namespace"])),
        image: text(&[
            "io.kubernetes.cri.image-name",
            "io.kubernetes.cri.podsandbox.image-name",
            "io.kubernetes.cri-o.ImageName",
        ]),
    }
}

/// The annotation of nerdctl. Its users set others.
fn of_nerdctl(bundle: &Value) -> Labels {
    Labels {
        name: text(bundle.get("annotations"), &["nerdctl/name"]),
        ..Labels::default()
    }
}

/// The names in Docker's file of a container. Whoever starts one chooses its labels. Those of the kubelet have the pod of
/// the cgroup.
fn of_docker(container: &Value, pod: Option<PodUid>) -> Labels {
    let config = container.get("Config");
    let labels = config.and_then(|config| config.get("Labels"));
    let uid = text(labels, &["io.kubernetes.pod.uid"]);
    let is_of_kubelet = pod.is_some_and(|pod| uid.as_deref() == Some(pod.as_str()));
    let labels = of_kubelet(labels.filter(|_| is_of_kubelet));
    let name = || {
        let name = text(Some(container), &["Name"])?;
        Some(
            name.strip_prefix('/')
                .map_or_else(|| name.clone(), Into::into),
        )
    };
    Labels {
        name: labels.name.or_else(name),
        image: text(config, &["Image"]),
        ..labels
    }
}

/// The names in Podman's list of all containers, by id. The data of each is JSON in a text.
fn of_podman(list: &Value) -> HashMap<Box<str>, Labels> {
    let containers = list.as_array().map_or(&[][..], Vec::as_slice);
    let names = containers.iter().filter_map(|container| {
        let id = container.get("id")?.as_str()?;
        let metadata = container.get("metadata").and_then(Value::as_str);
        let metadata: Option<Value> = metadata.and_then(|text| serde_json::from_str(text).ok());
        let first_name = container
            .get("names")
            .and_then(|names| names.get(0)?.as_str())
            .filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
        let labels = Labels {
            name: text(metadata.as_ref(), &["name"]).or_else(|| first_name.map(Into::into)),
            image: text(metadata.as_ref(), &["image-name"]),
            ..Labels::default()
        };
        Some((id.into(), labels))
    });
    names.collect()
}
