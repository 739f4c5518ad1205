//! The names of containers and pods, from files that the runtimes keep on the host's disk.

use std::{collections::HashMap, path::PathBuf};

use super::{
    origin::{Origin, Runtime, is_id},
    runtime_files,
};
use crate::base::proc_root;

/// The number of containers whose names are kept.
const MOST_KEPT: usize = 10_000;

/// Names of a container in files of its runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels {
    /// The name of the container; in a pod, the one in the pod's manifest.
    pub name: Option<Box<str>>,
    /// The name of the pod.
    pub pod: Option<Box<str>>,
    /// The namespace of the pod.
    pub namespace: Option<Box<str>>,
    /// The image, under the name that the user gave.
    pub image: Option<Box<str>>,
}

/// Reads names of containers and pods, and keeps them by the ids of the containers.
///
/// It reads files of containerd, CRI-O, Docker and Podman, once for each container, and contacts no daemon. Only root
/// can read most of them; other readers get no names. Containers that other users run with rootless Docker or Podman
/// have no names.
#[derive(Debug)]
pub struct Names {
    /// Folders that may be the root of the host's file system; empty for recordings.
    roots: Vec<PathBuf>,
    kept: HashMap<Box<[u8]>, Labels>,
}

impl Default for Names {
    /// Reads files below `/`. If they are missing there, as in a container, it reads them below the root of process 1,
    /// which needs `CAP_SYS_PTRACE`, and in a container also the pid namespace of the host.
    fn default() -> Self {
        Self {
            roots: vec!["/".into(), proc_root::path("/proc/1/root").into()],
            kept: HashMap::new(),
        }
    }
}

impl Names {
    /// Reads files below this folder, the root of the host's file system.
    pub fn from_root(root: impl Into<PathBuf>) -> Self {
        Self {
            roots: vec![root.into()],
            kept: HashMap::new(),
        }
    }

    /// Knows only the names that [`keep`](Self::keep) adds.
    #[doc(hidden)]
    pub fn recorded() -> Self {
        Self {
            roots: Vec::new(),
            kept: HashMap::new(),
        }
    }

    /// Adds the names of a recorded container, by its id.
    #[doc(hidden)]
    pub fn keep(&mut self, id: &[u8], labels: Labels) {
        self.kept.insert(Self::key("", id), labels);
    }

    /// Two runtimes may use the same id, and a path may contain the id of another runtime's container.
    fn key(runtime: &str, id: &[u8]) -> Box<[u8]> {
        [runtime.as_bytes(), b" ", id].concat().into()
    }

    /// The names of the container of a cgroup. `None` if the cgroup belongs to none.
    pub fn get(&mut self, origin: &Origin<'_>) -> Option<&Labels> {
        let id = origin.container?;
        // A user can create cgroups with any name below its own, so these are not the containers of root.
        if origin.unit.is_some_and(|unit| unit.starts_with(b"user@")) {
            return None;
        }
        let is_recorded = self.roots.is_empty();
        let runtime = origin.runtime.filter(|_| !is_recorded);
        let key = Self::key(runtime.map_or("", Runtime::name), id);
        if !self.kept.contains_key(&key) {
            if self.kept.len() >= MOST_KEPT {
                self.kept.clear();
            }
            let labels = self.read(id, origin);
            self.kept.insert(key.clone(), labels);
        }
        self.kept.get(&key)
    }

    fn read(&self, id: &[u8], origin: &Origin<'_>) -> Labels {
        if self.roots.is_empty() {
            return Labels::default();
        }
        // LXC and systemd-nspawn use names as ids.
        if matches!(origin.runtime, Some(Runtime::Lxc | Runtime::Nspawn)) {
            let machine = origin.machine.as_deref();
            let name = machine.filter(|_| origin.runtime == Some(Runtime::Nspawn));
            let name = name.unwrap_or(id);
            let name = std::str::from_utf8(name).ok().map(Into::into);
            return Labels {
                name,
                ..Labels::default()
            };
        }
        // Use an id in a path only if it has the form of an id.
        let id = std::str::from_utf8(id)
            .ok()
            .filter(|id| is_id(id.as_bytes()));
        let Some(id) = id else {
            return Labels::default();
        };
        let mut found = self
            .roots
            .iter()
            .filter_map(|root| runtime_files::labels(root, id, origin));
        found.next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use fastproc_testbed::Folder;

    use super::{super::runtime_files::LONGEST_NAME, *};

    const ID: &str = "3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e";

    /// A folder used as the root of a host.
    struct Root(Folder);

    impl Root {
        fn new() -> Self {
            Self(Folder::new("names"))
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }

        fn labels(&self, cgroup: &str) -> Option<Labels> {
            let origin = Origin::from_cgroup(cgroup.as_bytes());
            Names::from_root(&*self.0).get(&origin).cloned()
        }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "it is compared with what may be missing"
    )]
    fn labels(
        name: Option<&str>,
        pod: Option<&str>,
        namespace: Option<&str>,
        image: Option<&str>,
    ) -> Option<Labels> {
        let text = |text: Option<&str>| text.map(Into::into);
        Some(Labels {
            name: text(name),
            pod: text(pod),
            namespace: text(namespace),
            image: text(image),
        })
    }

    fn in_pod(name: &str) -> String {
        format!("/kubepods.slice/kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice/{name}")
    }

    #[test]
    fn names_are_in_the_bundle_of_containerd() {
        let content = r#"{"ociVersion": "1.2.0", "annotations": {
            "io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.image-name": "docker.io/library/nginx:1.27",
            "io.kubernetes.cri.sandbox-name": "web-6d4b75cb6d-hx7cw", "io.kubernetes.cri.sandbox-namespace": "shop"}}"#;
        let expected = labels(
            Some("web"),
            Some("web-6d4b75cb6d-hx7cw"),
            Some("shop"),
            Some("docker.io/library/nginx:1.27"),
        );
        for folder in ["run/containerd", "run/k3s/containerd", "run/k0s/containerd"] {
            let root = Root::new();
            let path = format!("{folder}/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json");
            root.write(&path, content);
            for cgroup in [
                in_pod(&format!("cri-containerd-{ID}.scope")),
                format!("/kubepods/pod34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11/{ID}"),
            ] {
                assert_eq!(root.labels(&cgroup), expected, "{path}: {cgroup}");
            }
            // It belongs to another runtime.
            let cgroup = in_pod(&format!("crio-{ID}.scope"));
            assert_eq!(root.labels(&cgroup), labels(None, None, None, None));
        }
    }

    #[test]
    fn names_are_in_the_bundle_of_cri_o_and_nerdctl() {
        let root = Root::new();
        root.write(
            &format!("run/containers/storage/overlay-containers/{ID}/userdata/config.json"),
            r#"{"annotations": {"io.kubernetes.container.name": "db", "io.kubernetes.pod.name": "db-0",
                "io.kubernetes.pod.namespace": "shop", "io.kubernetes.cri-o.ImageName": "quay.io/db:3"}}"#,
        );
        root.write(
            &format!("run/containerd/io.containerd.runtime.v2.task/default/{ID}/config.json"),
            r#"{"annotations": {"nerdctl/name": "cache", "io.kubernetes.container.name": "db",
                "io.kubernetes.cri.sandbox-name": "db-0"}}"#,
        );
        assert_eq!(
            root.labels(&in_pod(&format!("crio-{ID}.scope/container"))),
            labels(Some("db"), Some("db-0"), Some("shop"), Some("quay.io/db:3"))
        );
        assert_eq!(
            root.labels(&format!("/system.slice/nerdctl-{ID}.scope")),
            labels(Some("cache"), None, None, None)
        );
        // A process that CRI-O starts beside the container is not in it.
        let conmon = in_pod(&format!("crio-conmon-{ID}.scope"));
        assert_eq!(root.labels(&conmon), None);
    }

    #[test]
    fn names_are_in_the_files_of_docker() {
        let root = Root::new();
        let path = format!("var/lib/docker/containers/{ID}/config.v2.json");
        let cgroup = format!("/system.slice/docker-{ID}.scope");
        root.write(
            &path,
            r#"{"Name": "/web", "Config": {"Image": "nginx", "Labels": {}}}"#,
        );
        assert_eq!(
            root.labels(&cgroup),
            labels(Some("web"), None, None, Some("nginx"))
        );
        root.write(
            &path,
            r#"{"Name": "/k8s_db_db-0_shop_34dd_0", "Config": {"Image": "sha256:1234", "Labels": {
                "io.kubernetes.container.name": "db", "io.kubernetes.pod.name": "db-0",
                "io.kubernetes.pod.namespace": "shop",
                "io.kubernetes.pod.uid": "34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11"}}}"#,
        );
        let in_pod = in_pod(&format!("docker-{ID}.scope"));
        let expected = labels(Some("db"), Some("db-0"), Some("shop"), Some("sha256:1234"));
        assert_eq!(root.labels(&in_pod), expected);
        // Whoever starts a container chooses its labels.
        let own = labels(
            Some("k8s_db_db-0_shop_34dd_0"),
            None,
            None,
            Some("sha256:1234"),
        );
        let another = in_pod.replace("34dd2e8f", "44dd2e8f");
        for cgroup in [&cgroup, &another] {
            assert_eq!(root.labels(cgroup), own, "{cgroup}");
        }
    }

    #[test]
    fn a_cgroup_in_that_of_a_container_never_has_the_name_of_another_container() {
        let root = Root::new();
        let other = ID.replace('3', "4");
        for (id, name) in [(ID, "outer"), (&other, "victim")] {
            root.write(
                &format!("var/lib/docker/containers/{id}/config.v2.json"),
                &format!(r#"{{"Name": "/{name}"}}"#),
            );
        }
        for cgroup in [
            format!("/docker/{ID}/docker/{other}"),
            format!("/system.slice/docker-{ID}.scope/docker-{other}.scope"),
            format!("/docker/{ID}/pod34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11/{other}"),
        ] {
            let expected = labels(Some("outer"), None, None, None);
            assert_eq!(root.labels(&cgroup), expected, "{cgroup}");
        }
    }

    #[test]
    fn names_are_in_the_lists_of_podman() {
        let root = Root::new();
        let folder = "var/lib/containers/storage/overlay-containers";
        let other = ID.replace('3', "4");
        root.write(
            &format!("{folder}/containers.json"),
            &format!(r#"[{{"id": "{other}", "names": ["x"]}}]"#),
        );
        root.write(
            &format!("{folder}/volatile-containers.json"),
            &format!(
                r#"[{{"id": "{ID}", "names": ["web"], "metadata": "{{\"image-name\":\"quay.io/web:2\",\"name\":\"web\"}}"}}]"#
            ),
        );
        let cgroup = |id: &str| format!("/machine.slice/libpod-{id}.scope/container");
        assert_eq!(
            root.labels(&cgroup(ID)),
            labels(Some("web"), None, None, Some("quay.io/web:2"))
        );
        assert_eq!(
            root.labels(&cgroup(&other)),
            labels(Some("x"), None, None, None)
        );
    }

    #[test]
    fn a_name_that_is_an_id_needs_no_file() {
        let root = Root::new();
        let name = |cgroup| root.labels(cgroup).and_then(|labels| labels.name);
        assert_eq!(name("/lxc.payload.web/init.scope").as_deref(), Some("web"));
        let machine = r"/machine.slice/systemd-nspawn@a\x2db.service";
        assert_eq!(name(machine).as_deref(), Some("a-b"));
        assert_eq!(root.labels("/system.slice/ssh.service"), None);
    }

    #[test]
    fn files_that_are_not_right_give_no_name() {
        let path = format!("var/lib/docker/containers/{ID}/config.v2.json");
        let cgroup = format!("/docker/{ID}");
        let none = labels(None, None, None, None);
        let long = format!(r#"{{"Name": "/{}"}}"#, "a".repeat(LONGEST_NAME));
        let deep = "[".repeat(100_000);
        for content in [
            "",
            "{",
            "[]",
            "null",
            r#"{"Name": 1, "Config": []}"#,
            &long,
            &deep,
        ] {
            let root = Root::new();
            root.write(&path, content);
            assert_eq!(root.labels(&cgroup), none, "{content:.40}");
        }
        let root = Root::new();
        assert_eq!(root.labels(&cgroup), none);
        let folder = root.0.join(&path);
        fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
        symlink("/dev/zero", &folder).expect("a link");
        assert_eq!(root.labels(&cgroup), none);
    }

    #[test]
    fn a_container_is_read_once() {
        let root = Root::new();
        let path = format!("var/lib/docker/containers/{ID}/config.v2.json");
        root.write(&path, r#"{"Name": "/web"}"#);
        let cgroup = format!("/docker/{ID}");
        let origin = Origin::from_cgroup(cgroup.as_bytes());
        let mut names = Names::from_root(&*root.0);
        let first = names.get(&origin).cloned();
        assert_eq!(first, labels(Some("web"), None, None, None));
        root.write(&path, r#"{"Name": "/other"}"#);
        assert_eq!(names.get(&origin), first.as_ref());
    }

    #[test]
    fn recorded_names_come_from_no_file() {
        let cgroup = "/lxc/web";
        let origin = Origin::from_cgroup(cgroup.as_bytes());
        let mut names = Names::recorded();
        let kept = labels(Some("web"), None, None, None).expect("labels");
        names.keep(b"web", kept.clone());
        assert_eq!(names.get(&origin), Some(&kept));
        let other = Origin::from_cgroup(b"/lxc/other");
        assert_eq!(names.get(&other), Some(&Labels::default()));
    }
}
