//! Identifies the container, pod and unit of a cgroup by its path.

use std::borrow::Cow;

use super::{pod_uid::PodUid, unit};

/// A program that runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Runtime {
    /// Docker.
    Docker,
    /// containerd, by Kubernetes or nerdctl.
    Containerd,
    /// CRI-O.
    CriO,
    /// Podman.
    Podman,
    /// LXC, LXD and Incus.
    Lxc,
    /// systemd-nspawn.
    Nspawn,
}

impl Runtime {
    /// Its name: `docker`, `containerd`, `cri-o`, `podman`, `lxc` or `nspawn`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Containerd => "containerd",
            Self::CriO => "cri-o",
            Self::Podman => "podman",
            Self::Lxc => "lxc",
            Self::Nspawn => "nspawn",
        }
    }

    /// The runtime with this prefix of container ids.
    fn from_prefix(prefix: &[u8]) -> Option<Self> {
        Some(match prefix {
            b"docker" => Self::Docker,
            b"cri-containerd" | b"containerd" | b"nerdctl" => Self::Containerd,
            b"crio" => Self::CriO,
            b"libpod" | b"libpod-payload" | b"podman" => Self::Podman,
            _ => return None,
        })
    }

    /// The runtime whose containers are in this folder, named by their ids alone. In a pod's folder any runtime may be.
    fn from_parent(parent: &[u8]) -> Option<Self> {
        Some(match parent {
            b"docker" | b"buildkit" => Self::Docker,
            b"k8s.io" | b"default" => Self::Containerd,
            _ => return None,
        })
    }
}

/// The container, pod and unit of a cgroup, according to its path.
///
/// Of nested containers it has the outermost one, because whoever is in a container can name the cgroups below it. A
/// member is `None` if it is not in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin<'a> {
    /// The runtime of the container. With the cgroupfs driver of Kubernetes, it is not in the path.
    pub runtime: Option<Runtime>,
    /// The full id of the container; its name for LXC and systemd-nspawn. The processes that CRI-O and Podman start
    /// beside a container (conmon) are in no container.
    pub container: Option<&'a [u8]>,
    /// The UID of the pod.
    pub pod_uid: Option<PodUid>,
    /// The systemd unit of the host.
    pub unit: Option<&'a [u8]>,
    /// The systemd slice of the host.
    pub slice: &'a [u8],
    /// The machine that systemd-machined knows: a container of systemd-nspawn, or a virtual machine of libvirt.
    pub machine: Option<Cow<'a, [u8]>>,
}

impl<'a> Origin<'a> {
    /// Parses the path of a cgroup, as in `/proc/PID/cgroup`.
    pub fn from_cgroup(path: &'a [u8]) -> Self {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let mut origin = Self {
            runtime: None,
            container: None,
            pod_uid: None,
            unit: unit::unit(path),
            slice: unit::slice(path),
            machine: None,
        };
        let mut parent: &[u8] = b"";
        for folder in path.split(|&byte| byte == b'/') {
            if origin.container.is_some() {
                if folder == b"conmon" && parent.starts_with(b"libpod-") {
                    // Podman's own process beside the container, with the cgroupfs driver.
                    (origin.runtime, origin.container) = (None, None);
                }
                break;
            }
            origin.enter(folder, parent);
            parent = folder;
        }
        origin
    }

    /// Processes a folder of the path.
    fn enter(&mut self, folder: &'a [u8], parent: &[u8]) {
        // containerd without its systemd driver uses the three parts of a systemd path as a name: SLICE:PREFIX:ID.
        let mut parts = folder.split(|&byte| byte == b':');
        if let (Some(slice), Some(prefix), Some(id), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
            && is_id(id)
        {
            self.pod_uid = PodUid::from_folder(slice).or(self.pod_uid);
            self.found(Runtime::from_prefix(prefix), id);
        } else if let Some(uid) = PodUid::from_folder(folder) {
            self.pod_uid = Some(uid);
        } else if let Some((runtime, id)) = container(folder, parent) {
            self.found(runtime, id);
        } else if let Some(escaped) = machine(folder, parent) {
            let name = unescape(escaped);
            let is_virtual = [b"qemu-".as_slice(), b"xen-"]
                .iter()
                .any(|hypervisor| name.starts_with(hypervisor));
            if !is_virtual {
                self.found(Some(Runtime::Nspawn), escaped);
            }
            self.machine = Some(name);
        }
    }

    fn found(&mut self, runtime: Option<Runtime>, id: &'a [u8]) {
        (self.runtime, self.container) = (runtime, Some(id));
    }
}

/// The container of this folder.
fn container<'a>(folder: &'a [u8], parent: &[u8]) -> Option<(Option<Runtime>, &'a [u8])> {
    let name = folder.strip_suffix(b".scope").unwrap_or(folder);
    if let Some(name) = name.strip_prefix(b"lxc.payload.") {
        return Some((Some(Runtime::Lxc), name));
    }
    match parent {
        b"lxc" | b"lxc.payload" if !name.is_empty() => return Some((Some(Runtime::Lxc), name)),
        // A pod of Podman, which contains its containers.
        b"libpod_parent" if is_id(name) => return None,
        _ => {}
    }
    if is_id(name) {
        return Some((Runtime::from_parent(parent), name));
    }
    if let Some(id) = name.strip_prefix(b"kata_").filter(|id| is_id(id)) {
        return Some((None, id));
    }
    // A task of Amazon ECS and the number of the container in it.
    let dash = name.iter().rposition(|&byte| byte == b'-')?;
    let (prefix, id) = (&name[..dash], &name[dash + 1..]);
    let is_task = prefix.len() == 32 && prefix.iter().all(u8::is_ascii_hexdigit);
    if is_task && id.iter().all(u8::is_ascii_digit) && !id.is_empty() {
        return Some((None, name));
    }
    (is_id(id) && !prefix.ends_with(b"conmon")).then(|| (Runtime::from_prefix(prefix), id))
}

/// Whether this is an id, which has 256 bits.
pub(super) fn is_id(id: &[u8]) -> bool {
    id.len() == 64 && id.iter().all(u8::is_ascii_hexdigit)
}

/// The name of the machine of this folder, escaped by systemd.
fn machine<'a>(folder: &'a [u8], parent: &[u8]) -> Option<&'a [u8]> {
    if !parent.starts_with(b"machine") || !parent.ends_with(b".slice") {
        return None;
    }
    let of_scope = || {
        folder
            .strip_prefix(b"machine-")?
            .strip_suffix(b".scope")
            .filter(|name| !name.is_empty())
    };
    let of_service = || {
        folder
            .strip_prefix(b"systemd-nspawn@")?
            .strip_suffix(b".service")
    };
    of_scope().or_else(of_service)
}

/// Removes systemd's escapes: `\x2d` stands for `-` (`systemd-escape(1)`).
fn unescape(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'\\') {
        return Cow::Borrowed(name);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, others)) = rest.split_first() {
        if let [b'\\', b'x', high, low, after @ ..] = rest
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            plain.push((high * 16 + low) as u8);
            rest = after;
        } else {
            plain.push(first);
            rest = others;
        }
    }
    Cow::Owned(plain)
}
