//! Containers and pods: identifies them by the paths of cgroups, and reads their names from files of the runtimes.
//!
//! A runtime puts the id of a container into the path of its cgroup, and Kubernetes the UID of the pod.
//! [`Origin::from_cgroup`] parses both from the path alone. Names are in files of the runtime, which only root can
//! read: [`Names`] reads them when they are requested, and again when they change.
//!
//! ```
//! use fastproc::container::{Origin, Runtime};
//!
//! let id = "3f5c".repeat(16);
//! let path = format!("/kubepods.slice/kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice/crio-{id}.scope");
//! let origin = Origin::from_cgroup(path.as_bytes());
//! assert_eq!(origin.runtime, Some(Runtime::CriO));
//! assert_eq!(origin.container, Some(id.as_bytes()));
//! assert_eq!(origin.pod_uid.unwrap().as_str(), "34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11");
//! ```

mod names;
mod origin;
mod pod_uid;
mod runtime_files;
pub(crate) mod runtime_roots;
#[cfg(test)]
mod tests;
mod unit;

pub use self::{
    names::{Labels, Names},
    origin::{Origin, Runtime},
    pod_uid::PodUid,
};
