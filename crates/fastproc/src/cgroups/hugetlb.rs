//! Huge pages: the files hugetlb.SIZE.* of each page size.

use super::{
    files::{Files, value},
    record::{Hugetlb, PageSize, huge_page_limit},
    tree::Tree,
};

/// A page size, and the names of its files.
#[derive(Debug)]
pub(super) struct Names {
    bytes: u64,
    current: &'static str,
    max: &'static str,
    reserved: &'static str,
    reserved_max: &'static str,
    events: &'static str,
}

macro_rules! names {
    ($($bits:literal $size:literal),* $(,)?) => {
        /// Every page size that a kernel may have. Only it knows which it has.
        static NAMES: &[Names] = &[$(Names {
            bytes: 1 << $bits,
            current: concat!("hugetlb.", $size, ".current"),
            max: concat!("hugetlb.", $size, ".max"),
            reserved: concat!("hugetlb.", $size, ".rsvd.current"),
            reserved_max: concat!("hugetlb.", $size, ".rsvd.max"),
            events: concat!("hugetlb.", $size, ".events"),
        }),*];
    };
}

names! {
    14 "16KB", 15 "32KB", 16 "64KB", 17 "128KB", 18 "256KB", 19 "512KB", 20 "1MB", 21 "2MB", 22 "4MB", 23 "8MB", 24 "16MB",
    25 "32MB", 26 "64MB", 27 "128MB", 28 "256MB", 29 "512MB", 30 "1GB", 31 "2GB", 32 "4GB", 33 "8GB", 34 "16GB",
}

impl PageSize {
    /// The size as in the names of the kernel's files: `2MB`.
    pub fn name(&self) -> String {
        let (mut size, mut unit) = (self.size >> 10, "KB");
        for larger in ["MB", "GB"] {
            if size >= 1 << 10 {
                (size, unit) = (size >> 10, larger);
            }
        }
        format!("{size}{unit}")
    }
}

/// Whether the controller is enabled for a cgroup.
fn is_enabled(files: &mut Files, tree: &mut Tree, id: u64) -> bool {
    let text = files.text(tree, id, "cgroup.controllers");
    text.is_some_and(|text| text.split_ascii_whitespace().any(|name| name == "hugetlb"))
}

/// The page sizes of this kernel, from the first cgroup that has their files.
#[derive(Debug, Default)]
pub(super) struct PageSizes(Vec<&'static Names>);

impl PageSizes {
    /// Looks for the files in a cgroup, unless they were found in another.
    fn find(&mut self, files: &mut Files, tree: &mut Tree, id: u64) {
        if !self.0.is_empty() || !is_enabled(files, tree, id) {
            return;
        }
        let mut has = |of: &&Names| files.number(tree, id, of.current).is_some();
        let found = NAMES.iter().filter(&mut has).collect();
        // A cgroup that is removed meanwhile lacks some of them.
        if is_enabled(files, tree, id) && !tree.lacks_something() {
            self.0 = found;
        }
    }

    /// Adds the page sizes of a cgroup to the list, and returns the sums. `None`: it has no such files.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        tree: &mut Tree,
        id: u64,
        list: &mut Vec<PageSize>,
    ) -> Option<Hugetlb> {
        self.find(files, tree, id);
        let at = list.len();
        for names in &self.0 {
            let mut one = PageSize {
                size: names.bytes,
                current: files.number(tree, id, names.current)?,
                ..PageSize::default()
            };
            one.set_max(files.number(tree, id, names.max).map(huge_page_limit));
            one.set_reserved(files.number(tree, id, names.reserved));
            one.set_reserved_max(
                files
                    .number(tree, id, names.reserved_max)
                    .map(huge_page_limit),
            );
            let events = files.text(tree, id, names.events);
            one.set_failures(events.and_then(|text| value(text, "max")));
            list.push(one);
        }
        let sizes = list.get(at..).filter(|sizes| !sizes.is_empty())?;
        let sum = |of: fn(&PageSize) -> Option<u64>| sizes.iter().map(of).sum::<Option<u64>>();
        let mut all = Hugetlb {
            current: sum(|size| Some(size.current))?,
            sizes_at: at as u32,
            sizes: sizes.len() as u32,
            ..Hugetlb::default()
        };
        all.set_reserved(sum(PageSize::reserved));
        all.set_failures(sum(PageSize::failures));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fastproc_testbed::Folder;

    use super::*;
    use crate::cgroups::{Cgroups, Fields, record::UNLIMITED};

    #[test]
    fn names_are_those_of_the_kernel() {
        for names in NAMES {
            let size = PageSize {
                size: names.bytes,
                ..PageSize::default()
            };
            assert_eq!(names.current, format!("hugetlb.{}.current", size.name()));
        }
    }

    #[test]
    fn every_page_size_of_a_cgroup_is_read_and_summed_up() {
        let folder = Folder::new("hugetlb");
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        };
        write("cgroup.controllers", "hugetlb\n");
        write("a/cgroup.controllers", "hugetlb\n");
        for (size, current, events) in [("2MB", 4 << 20, 3), ("1GB", 1 << 30, 4)] {
            write(
                &format!("a/hugetlb.{size}.current"),
                &format!("{current}\n"),
            );
            write(&format!("a/hugetlb.{size}.max"), "max\n");
            write(&format!("a/hugetlb.{size}.rsvd.current"), "0\n");
            write(
                &format!("a/hugetlb.{size}.events"),
                &format!("max {events}\n"),
            );
        }
        write("a/hugetlb.2MB.rsvd.current", "2097152\n");
        write("a/hugetlb.2MB.max", "8388608\n");
        write("a/hugetlb.2MB.rsvd.max", "9223372036854771712\n");
        write("b/cgroup.controllers", "\n");
        let builder = Cgroups::builder().fields(Fields::HUGETLB);
        let mut cgroups = builder.open_recorded(&folder).expect("it is a folder");
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let a = snapshot.find(b"/a").expect("the cgroup is shown");
        let all = a.hugetlb().expect("it has the files");
        assert_eq!(all.current, (4 << 20) + (1 << 30));
        assert_eq!((all.reserved(), all.failures()), (Some(2 << 20), Some(7)));
        let sizes = a
            .page_sizes()
            .iter()
            .map(|of| (of.size, of.current, of.max(), of.reserved_max()));
        let expected = [
            (2 << 20, 4 << 20, Some(8 << 20), Some(UNLIMITED)),
            (1 << 30, 1 << 30, Some(UNLIMITED), None),
        ];
        assert_eq!(sizes.collect::<Vec<_>>(), expected);
        for other in [&b"/"[..], b"/b"] {
            let other = snapshot.find(other).expect("the cgroup is shown");
            assert!(other.hugetlb().is_none() && other.page_sizes().is_empty());
        }
        assert_eq!(
            cgroups.absent_controllers(),
            ["cpu", "memory", "pids", "io"]
        );
    }
}
