//! Files of runtimes with the names of containers.

use std::path::Path;

use serde_json::Value;

use super::{
    names::Labels,
    origin::{Origin, Runtime},
    pod_uid::PodUid,
};
use crate::base::regular_file;

/// The longest file that is read. A container's file has about 20 KiB; Podman has one file for all containers.
const LONGEST_FILE: u64 = 16 << 20;
/// The longest name. Names of Kubernetes have at most 253 bytes, and that of an image may have a digest.
pub(super) const LONGEST_NAME: usize = 1024;

/// The names of the container with this id in the first file below this root that has them. The runtime may be unknown.
pub(super) fn labels(root: &Path, id: &str, origin: &Origin<'_>) -> Option<Labels> {
    let files = FILES.iter();
    let mut files = files.filter(|file| origin.runtime.is_none_or(|of| of == file.runtime));
    files.find_map(|file| {
        let path = root.join(file.path.replace("ID", id));
        let content = regular_file::read(&path, LONGEST_FILE).ok()?;
        let content = serde_json::from_slice(&content).ok()?;
        file.format.labels(&content, id, origin.pod_uid)
    })
}

/// A file of a runtime.
struct File {
    runtime: Runtime,
    /// Its path, with `ID` for the id of the container.
    path: &'static str,
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

impl Format {
    /// The names of the container with this id, whose cgroup is in that of this pod.
    fn labels(&self, content: &Value, id: &str, pod: Option<PodUid>) -> Option<Labels> {
        match self {
            Self::Bundle => Some(of_bundle(content)),
            Self::Nerdctl => Some(of_nerdctl(content)),
            Self::Docker => Some(of_docker(content, pod)),
            Self::Podman => of_podman(content, id),
        }
    }
}

const fn file(runtime: Runtime, path: &'static str, format: Format) -> File {
    File {
        runtime,
        path,
        format,
    }
}

#[rustfmt::skip]
const FILES: &[File] = &[
    // For each namespace of containerd, and each folder of a distribution of Kubernetes.
    file(Runtime::Containerd, "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json", Format::Bundle),
    file(Runtime::Containerd, "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json", Format::Nerdctl),
    file(Runtime::Containerd, "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json", Format::Bundle),
    file(Runtime::Containerd, "run/k0s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json", Format::Bundle),
    file(Runtime::Containerd, "var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json", Format::Bundle),
    file(Runtime::CriO, "run/containers/storage/overlay-containers/ID/userdata/config.json", Format::Bundle),
    file(Runtime::CriO, "var/lib/containers/storage/overlay-containers/ID/userdata/config.json", Format::Bundle),
    file(Runtime::Docker, "var/lib/docker/containers/ID/config.v2.json", Format::Docker),
    file(Runtime::Docker, "var/snap/docker/common/var-lib-docker/containers/ID/config.v2.json", Format::Docker),
    file(Runtime::Podman, "var/lib/containers/storage/overlay-containers/containers.json", Format::Podman),
    file(Runtime::Podman, "var/lib/containers/storage/overlay-containers/volatile-containers.json", Format::Podman),
    file(Runtime::Podman, "run/containers/storage/overlay-containers/volatile-containers.json", Format::Podman),
];

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

/// The names in Podman's list of all containers. The data of each is JSON in a text.
fn of_podman(list: &Value, id: &str) -> Option<Labels> {
    let is_it = |container: &&Value| container.get("id").and_then(Value::as_str) == Some(id);
    let container = list.as_array()?.iter().find(is_it)?;
    let metadata = container.get("metadata").and_then(Value::as_str);
    let metadata: Option<Value> = metadata.and_then(|text| serde_json::from_str(text).ok());
    let first_name = container
        .get("names")
        .and_then(|names| names.get(0)?.as_str())
        .filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    Some(Labels {
        name: text(metadata.as_ref(), &["name"]).or_else(|| first_name.map(Into::into)),
        image: text(metadata.as_ref(), &["image-name"]),
        ..Labels::default()
    })
}
