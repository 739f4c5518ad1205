//! Cgroups and files as on a node of Kubernetes.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use fastproc::cgroups::Cgroups;

use super::{idle::Idle, measure::Failure, tree::Tree};

/// The folder where containerd keeps the configuration of containers.
const BUNDLES: &str = "run/containerd/io.containerd.runtime.v2.task/k8s.io";

/// Containers with processes, each in its own pod. Everything is removed when this is dropped.
pub struct Containers {
    _tree: Tree,
    root: Root,
}

/// A folder in place of the root of the host's files.
struct Root(PathBuf);

impl Containers {
    /// Creates this many containers, and distributes these processes among them.
    pub fn new(wanted: u32, idle: Option<&Idle>) -> Result<Self, Failure> {
        let mount = Cgroups::builder().open()?.mount().to_owned();
        let root = Root::new()?;
        let mut tree = Tree::new(&mount)?;
        let pods = tree.top().join("kubepods.slice");
        tree.add(pods.clone())?;
        for at in 0..wanted {
            let pod = pods.join(format!(
                "kubepods-pod{at:08x}_b2b3_4d51_a2c6_5e5d1a2d4f11.slice"
            ));
            let id = format!("{at:064x}");
            tree.add(pod.clone())?;
            tree.add_leaf(pod.join(format!("cri-containerd-{id}.scope")))?;
            root.name(&id, at)?;
        }
        if let Some(idle) = idle {
            tree.settle(idle)?;
        }
        Ok(Self { _tree: tree, root })
    }

    /// The folder with the names of the containers.
    pub fn host_root(&self) -> &Path {
        &self.root.0
    }
}

impl Root {
    fn new() -> io::Result<Self> {
        let name = format!("fastproc-bench-{}", std::process::id());
        let root = env::temp_dir().join(name);
        fs::create_dir(&root)?;
        Ok(Self(root))
    }

    /// Writes the runtime's configuration of a container.
    fn name(&self, id: &str, at: u32) -> io::Result<()> {
        let bundle = self.0.join(BUNDLES).join(id);
        fs::create_dir_all(&bundle)?;
        let config = format!(
            r#"{{"annotations": {{"io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.sandbox-name": "web-{at}",
                "io.kubernetes.cri.sandbox-namespace": "shop", "io.kubernetes.cri.image-name": "example.org/shop/web:1.2.3"}}}}"#
        );
        fs::write(bundle.join("config.json"), config)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // If this fails, the rest stays in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
