//! Paths of cgroups, kept by the ids of the cgroups.

use std::{collections::HashMap, sync::OnceLock};

use super::hierarchy::Hierarchy;

/// The paths that are known, by ids.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// The hierarchy, if it is mounted; looked for when it is needed, since most readers ask for no cgroup.
    hierarchy: OnceLock<Option<Hierarchy>>,
    kept: HashMap<u64, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The path in the whole hierarchy, as far as it is known.
    whole: Option<Box<[u8]>>,
    /// The path as the reader's cgroup namespace shows it, if it is another one.
    shown: Option<Box<[u8]>>,
}

impl Cgroups {
    /// Of a machine that is not there.
    pub(super) fn none() -> Self {
        Self {
            hierarchy: None.into(),
            ..Self::default()
        }
    }

    fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.get_or_init(Hierarchy::find).as_ref()
    }

    /// Looks for the hierarchy now: later this process may have lost the right to.
    pub(super) fn find(&self) {
        self.hierarchy();
    }

    /// Takes a path that was recorded.
    pub(super) fn take(&mut self, id: u64, path: &[u8]) {
        let kept = self.kept.entry(id).or_default();
        kept.whole = Some(path.into());
    }

    /// The path of this cgroup as the reader's namespace shows it, if it is known, or the kernel says it.
    pub(super) fn shown(&mut self, id: u64) -> Option<&[u8]> {
        let is_known = |kept: &Kept| kept.shown.is_some();
        if !self.kept.get(&id).is_some_and(is_known) {
            // A recording has one path of each.
            if self
                .hierarchy()
                .is_some_and(|hierarchy| !hierarchy.shows_whole_paths())
            {
                return None;
            }
            return self.whole(id);
        }
        self.kept.get(&id)?.shown.as_deref()
    }

    /// The path of this cgroup in the whole hierarchy, likewise.
    pub(super) fn whole(&mut self, id: u64) -> Option<&[u8]> {
        let is_known = |kept: &Kept| kept.whole.is_some();
        if !self.kept.get(&id).is_some_and(is_known) {
            let path = self.hierarchy()?.path(id)?;
            self.kept.entry(id).or_default().whole = Some(path.into());
        }
        self.kept.get(&id)?.whole.as_deref()
    }

    /// Whether a path is kept under this id.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.kept.contains_key(&id)
    }

    /// Keeps a path that a process of this cgroup had. The process may have moved since its id was read: only the
    /// folder itself tells whose path it is.
    pub(super) fn keep(&mut self, id: u64, shown: &[u8]) {
        let Some(hierarchy) = self.hierarchy() else {
            return;
        };
        if hierarchy.id(shown) != Some(id) {
            return;
        }
        let whole = hierarchy.whole_path(shown);
        let kept = Kept {
            whole: whole.map(Into::into),
            shown: Some(shown.into()),
        };
        self.kept.insert(id, kept);
    }

    /// What the reader's namespace calls `shown`, in the whole hierarchy, as far as it is known.
    pub(super) fn whole_path(&self, shown: &[u8]) -> Option<Vec<u8>> {
        self.hierarchy()?.whole_path(shown)
    }

    /// Forgets all paths: a cgroup that is removed has another one.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// From now on no cgroup is opened by its id, as without `CAP_DAC_READ_SEARCH`.
    #[cfg(test)]
    pub(super) fn open_no_ids(&self) {
        if let Some(hierarchy) = self.hierarchy() {
            hierarchy.open_no_ids();
        }
    }

    /// Id of the cgroup at this path.
    #[cfg(test)]
    pub(super) fn folder_id(&self, path: &[u8]) -> Option<u64> {
        self.hierarchy()?.id(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_for_its_own_id_only() {
        let mut cgroups = Cgroups::default();
        let Some(id) = cgroups.folder_id(b"/") else {
            fastproc_testbed::gate::skipped("the default hierarchy is not mounted here");
            return;
        };
        let other = u64::MAX;
        cgroups.keep(other, b"/");
        assert_eq!(cgroups.shown(other), None);
        cgroups.keep(id, b"/");
        assert!(cgroups.kept.contains_key(&id));
        assert_eq!(cgroups.shown(id), Some(b"/".as_slice()));
        cgroups.clear();
        assert!(cgroups.kept.is_empty());
    }
}
