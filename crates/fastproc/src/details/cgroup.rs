//! Paths of cgroups, kept by cgroup id.

use std::{collections::HashMap, sync::OnceLock};

use super::hierarchy::Hierarchy;

/// The known paths, by id.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// The hierarchy, if it is mounted; searched for on demand, since most readers need no cgroups.
    hierarchy: OnceLock<Option<Hierarchy>>,
    kept: HashMap<u64, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The path in the whole hierarchy, if known.
    whole: Option<Box<[u8]>>,
    /// The path in the reader's cgroup namespace, if it differs.
    shown: Option<Box<[u8]>>,
}

impl Cgroups {
    /// For a recording: there is no hierarchy.
    pub(super) fn none() -> Self {
        Self {
            hierarchy: None.into(),
            ..Self::default()
        }
    }

    fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.get_or_init(Hierarchy::find).as_ref()
    }

    /// Searches for the hierarchy now: later this process may lack the privileges for that.
    pub(super) fn find(&self) {
        self.hierarchy();
    }

    /// Keeps a path from a recording.
    pub(super) fn take(&mut self, id: u64, path: &[u8]) {
        let kept = self.kept.entry(id).or_default();
        kept.whole = Some(path.into());
    }

    /// The path of this cgroup in the reader's namespace, if it is kept or the kernel returns it.
    pub(super) fn shown(&mut self, id: u64) -> Option<&[u8]> {
        let is_known = |kept: &Kept| kept.shown.is_some();
        if !self.kept.get(&id).is_some_and(is_known) {
            // A recording has only one path of each.
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

    /// The path of this cgroup in the whole hierarchy, if it is kept or the kernel returns it.
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

    /// Keeps a path that a process of this cgroup had. The process may have moved since its id was read, so the id of
    /// the folder is compared.
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

    /// The path in the whole hierarchy for the path `shown` of the reader's namespace, if known.
    pub(super) fn whole_path(&self, shown: &[u8]) -> Option<Vec<u8>> {
        self.hierarchy()?.whole_path(shown)
    }

    /// Forgets all paths, since a removed cgroup has another path.
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

    /// The id of the cgroup at this path.
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
