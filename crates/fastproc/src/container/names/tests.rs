//! Names in the files of a host that is a folder.

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

/// The names at first, after a change while they are not checked, and after that when they are.
fn after(root: &Root, cgroup: &str, change: impl Fn()) -> [Option<Labels>; 3] {
    let origin = Origin::from_cgroup(cgroup.as_bytes());
    let mut names = Names::from_root(&*root.0);
    names.check_every(Duration::MAX / 4);
    let first = names.get(&origin).cloned();
    change();
    let later = names.get(&origin).cloned();
    names.check_every(Duration::ZERO);
    [first, later, names.get(&origin).cloned()]
}

#[test]
fn a_file_that_has_changed_is_read_again() {
    let root = Root::new();
    let path = format!("var/lib/docker/containers/{ID}/config.v2.json");
    root.write(&path, r#"{"Name": "/web"}"#);
    let cgroup = format!("/docker/{ID}");
    let (web, other) = (
        labels(Some("web"), None, None, None),
        labels(Some("another"), None, None, None),
    );
    let found = after(&root, &cgroup, || {
        root.write(&path, r#"{"Name": "/another"}"#);
    });
    assert_eq!(found, [web.clone(), web.clone(), other.clone()]);
    // The container ends, and its processes are still shown.
    let found = after(&root, &cgroup, || {
        fs::remove_file(root.0.join(&path)).expect("the file is removed");
    });
    assert_eq!(found, [other.clone(), other.clone(), other]);
}

#[test]
fn a_container_without_names_is_asked_for_again() {
    let none = labels(None, None, None, None);
    let web = labels(Some("web"), None, None, None);
    let docker = format!("var/lib/docker/containers/{ID}/config.v2.json");
    let podman = "var/lib/containers/storage/overlay-containers/containers.json";
    for (cgroup, path, before, content) in [
        (
            format!("/docker/{ID}"),
            &*docker,
            None,
            r#"{"Name": "/web"}"#.into(),
        ),
        (
            format!("/machine.slice/libpod-{ID}.scope"),
            podman,
            Some("[]"),
            format!(r#"[{{"id": "{ID}", "names": ["web"]}}]"#),
        ),
    ] {
        let root = Root::new();
        if let Some(before) = before {
            root.write(path, before);
        }
        let found = after(&root, &cgroup, || root.write(path, &content));
        assert_eq!(found, [none.clone(), none.clone(), web.clone()], "{path}");
    }
}

#[test]
fn folders_that_a_configuration_names_are_searched() {
    let docker = (
        format!("/docker/{ID}"),
        format!("containers/{ID}/config.v2.json"),
        r#"{"Name": "/web"}"#.to_owned(),
    );
    let podman = (
        format!("/machine.slice/libpod-{ID}.scope"),
        "overlay-containers/containers.json".to_owned(),
        format!(r#"[{{"id": "{ID}", "names": ["web"]}}]"#),
    );
    let containerd = (
        in_pod(&format!("cri-containerd-{ID}.scope")),
        format!("io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"),
        r#"{"annotations": {"io.kubernetes.cri.container-name": "web"}}"#.to_owned(),
    );
    for (configuration, content, folder, (cgroup, path, names)) in [
        (
            "etc/docker/daemon.json",
            r#"{"data-root": "/srv/docker"}"#,
            "srv/docker",
            &docker,
        ),
        // With userns-remap.
        (
            "etc/docker/daemon.json",
            "{}",
            "var/lib/docker/100000.100000",
            &docker,
        ),
        (
            "etc/containers/storage.conf",
            "[storage]\ngraphroot = \"/srv/storage\"\n",
            "srv/storage",
            &podman,
        ),
        (
            "etc/containerd/config.toml",
            "version = 2\nstate = \"/srv/run\"\n[plugins]\n",
            "srv/run",
            &containerd,
        ),
    ] {
        let root = Root::new();
        root.write(configuration, content);
        root.write(&format!("{folder}/{path}"), names);
        let expected = labels(Some("web"), None, None, None);
        assert_eq!(root.labels(cgroup), expected, "{configuration}");
    }
    // Not outside the root.
    let root = Root::new();
    let (cgroup, path, names) = &docker;
    root.write(
        "host/etc/docker/daemon.json",
        r#"{"data-root": "/a/../../out"}"#,
    );
    root.write(&format!("out/{path}"), names);
    let origin = Origin::from_cgroup(cgroup.as_bytes());
    let mut names = Names::from_root(root.0.join("host"));
    assert_eq!(names.get(&origin), Some(&Labels::default()));
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
