//! The UID of a pod in the name of a cgroup.

use std::fmt;

/// The UID of a pod as Kubernetes writes it: `34dd2e8f-b2b3-4d51-a2c6-5e5d1a2d4f11`. A pod from a file of the kubelet has 32
/// hexadecimal digits instead, without dashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PodUid {
    bytes: [u8; LENGTH],
    len: u8,
}

const LENGTH: usize = 36;
/// The length of a UID without dashes.
const BARE: usize = 32;

impl PodUid {
    /// The UID in the name of the pod's cgroup: `podUID`, or `kubepods-burstable-podUID.slice` with `_` for `-`. `None`
    /// if the cgroup is not that of a pod.
    pub(super) fn from_folder(folder: &[u8]) -> Option<Self> {
        let name = folder.strip_suffix(b".slice").unwrap_or(folder);
        let uid = name.strip_prefix(b"pod");
        Self::parse(uid.or_else(|| after_last(name, b"-pod"))?)
    }

    fn parse(uid: &[u8]) -> Option<Self> {
        let is_dash = |at: usize| uid.len() == LENGTH && matches!(at, 8 | 13 | 18 | 23);
        let is_right = |(at, byte): (usize, &u8)| match byte {
            b'-' | b'_' => is_dash(at),
            _ => byte.is_ascii_hexdigit() && !is_dash(at),
        };
        if !matches!(uid.len(), LENGTH | BARE) || !uid.iter().enumerate().all(is_right) {
            return None;
        }
        let mut bytes = [0; LENGTH];
        for (to, &from) in bytes.iter_mut().zip(uid) {
            *to = if from == b'_' { b'-' } else { from };
        }
        let len = uid.len() as u8;
        Some(Self { bytes, len })
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// The text after the last `mark`.
fn after_last<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(mark.len()).rposition(|part| part == mark)?;
    text.get(at + mark.len()..)
}

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
