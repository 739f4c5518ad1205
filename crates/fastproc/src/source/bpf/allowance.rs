//! The memory that the control groups of this process have left. Maps are charged to the process that creates them, and
//! the kernel kills a process that exceeds its limit.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::base::error::Error;

/// The tightest limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowance {
    file: PathBuf,
    limit: u64,
    left: u64,
}

/// The file names of one version of the interface.
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// The members of `memory.stat` that the kernel reclaims before it kills a process.
    reclaimable: &'static [&'static str],
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: &["total_active_file", "total_inactive_file"],
};
const V2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: &["active_file", "inactive_file", "slab_reclaimable"],
};

/// Fails if less than `needed` bytes are left. If the files cannot be read, no limit is known.
pub(super) fn check(needed: u64) -> Result<(), Error> {
    let groups = fs::read("/proc/self/cgroup").unwrap_or_default();
    check_in(needed, &groups, Path::new("/sys/fs/cgroup"))
}

fn check_in(needed: u64, groups: &[u8], mounted: &Path) -> Result<(), Error> {
    match tightest(groups, mounted) {
        Some(Allowance { file, limit, left }) if left < needed => Err(Error::MemoryLimit {
            file,
            limit_bytes: limit,
            left_bytes: left,
            needed_bytes: needed,
        }),
        _ => Ok(()),
    }
}

/// The control group with the least memory left: the process's own or one above it. `groups` is the text of
/// `/proc/self/cgroup`.
fn tightest(groups: &[u8], mounted: &Path) -> Option<Allowance> {
    let (names, root, group) = hierarchy(groups, mounted)?;
    let group = group.strip_prefix(b"/").unwrap_or(group);
    let group = Path::new(OsStr::from_bytes(group));
    // A container may have its own group mounted as the root. Then the folders of the path do not exist.
    group
        .ancestors()
        .filter_map(|group| allowance(&names, &root.join(group)).ok().flatten())
        .min_by_key(|allowance| allowance.left)
}

/// The hierarchy that controls memory: its own in version 1, else that of all controllers.
fn hierarchy<'a>(groups: &'a [u8], mounted: &Path) -> Option<(Names, PathBuf, &'a [u8])> {
    let lines = || {
        groups.split(|&byte| byte == b'\n').filter_map(|line| {
            let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
            Some((parts.next()?, parts.next()?))
        })
    };
    let is_of_memory = |controllers: &[u8]| {
        let mut names = controllers.split(|&byte| byte == b',');
        names.any(|name| name == b"memory")
    };
    let own = lines().find(|(controllers, _)| is_of_memory(controllers));
    if let Some((_, group)) = own {
        return Some((V1, mounted.join("memory"), group));
    }
    let (_, group) = lines().find(|(controllers, _)| controllers.is_empty())?;
    Some((V2, mounted.to_owned(), group))
}

/// The memory that a group has left. `None` if it has no limit.
fn allowance(names: &Names, group: &Path) -> io::Result<Option<Allowance>> {
    let file = group.join(names.limit);
    let Some(limit) = number(&fs::read_to_string(&file)?) else {
        return Ok(None);
    };
    let usage = number(&fs::read_to_string(group.join(names.usage))?).unwrap_or(0);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let left = limit.saturating_sub(usage.saturating_sub(reclaimable(&stat, names.reclaimable)));
    Ok(Some(Allowance { file, limit, left }))
}

/// `None` for `max`.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn reclaimable(stat: &str, names: &[&str]) -> u64 {
    let lines = stat.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, bytes)| number(bytes))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of control groups, removed with this value.
    struct Tree(fastproc_testbed::Folder);

    impl Tree {
        fn new(name: &str) -> Self {
            Self(fastproc_testbed::Folder::new(&format!("allowance-{name}")))
        }

        fn write(&self, group: &str, files: &[(&str, &str)]) {
            let group = self.0.join(group);
            fs::create_dir_all(&group).expect("a temporary folder");
            for (name, text) in files {
                fs::write(group.join(name), text).expect("a file in it");
            }
        }

        fn tightest(&self, groups: &str) -> Option<(String, u64, u64)> {
            let Allowance { file, limit, left } = tightest(groups.as_bytes(), &self.0)?;
            let file = file.strip_prefix(&self.0).expect("it is in the tree");
            Some((file.display().to_string(), limit, left))
        }
    }

    #[test]
    fn the_group_that_leaves_least_counts() {
        let tree = Tree::new("v2");
        tree.write(
            "a/b",
            &[("memory.max", "max\n"), ("memory.current", "900\n")],
        );
        assert_eq!(tree.tightest("0::/a/b\n"), None);
        tree.write(
            "a",
            &[("memory.max", "1000\n"), ("memory.current", "900\n")],
        );
        let of_a = Some(("a/memory.max".to_owned(), 1000, 100));
        assert_eq!(tree.tightest("0::/a/b\n"), of_a);
        tree.write("a/b", &[("memory.max", "950\n")]);
        assert_eq!(
            tree.tightest("0::/a/b\n"),
            Some(("a/b/memory.max".to_owned(), 950, 50))
        );
        assert_eq!(tree.tightest("0::/a\n"), of_a);
        assert_eq!(tree.tightest("0::/\n"), None);
        // The kernel reclaims cached files.
        let stat = "anon 10\ninactive_file 300\nactive_file 200\nslab_reclaimable 50\nfile 700\n";
        tree.write("a/b", &[("memory.stat", stat)]);
        assert_eq!(tree.tightest("0::/a/b\n"), of_a);
        tree.write("a", &[("memory.current", "1100\n")]);
        assert_eq!(
            tree.tightest("0::/a\n"),
            Some(("a/memory.max".to_owned(), 1000, 0)),
            "no less than nothing is left"
        );
    }

    #[test]
    fn a_limit_counts_below_a_group_whose_name_is_not_utf_8() {
        let tree = Tree::new("bytes");
        tree.write("a", &[("memory.max", "9\n"), ("memory.current", "4\n")]);
        let found = tightest(b"3:name=x:/\xff\n0::/a/u\xff\n", &tree.0);
        assert_eq!(found.map(|it| it.left), Some(5));
    }

    #[test]
    fn the_hierarchy_of_memory_counts_where_there_is_one() {
        let tree = Tree::new("v1");
        let groups = "9:name=systemd:/x\n4:cpu,memory:/a:b/c\n0::/\n";
        assert_eq!(tree.tightest(groups), None);
        tree.write(
            "memory/a:b",
            &[
                ("memory.limit_in_bytes", "12582912\n"),
                ("memory.usage_in_bytes", "4194304\n"),
                ("memory.stat", "active_file 9\ntotal_active_file 1048576\n"),
            ],
        );
        tree.write(
            "memory",
            &[
                ("memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory.usage_in_bytes", "99999999\n"),
            ],
        );
        assert_eq!(
            tree.tightest(groups),
            Some((
                "memory/a:b/memory.limit_in_bytes".to_owned(),
                12 << 20,
                9 << 20
            ))
        );
        // In a container the process's own group is mounted as the root.
        tree.write("memory", &[("memory.limit_in_bytes", "99999999\n")]);
        assert_eq!(
            tree.tightest("4:memory:/docker/123\n"),
            Some(("memory/memory.limit_in_bytes".to_owned(), 99_999_999, 0))
        );
    }

    #[test]
    fn an_unreadable_limit_is_no_limit() {
        let tree = Tree::new("none");
        for groups in [
            "",
            "\n",
            "nonsense",
            "0::",
            "0::/gone",
            "1:cpu:/",
            "4:memory:/gone",
        ] {
            assert_eq!(tree.tightest(groups), None, "{groups:?}");
            assert!(check_in(u64::MAX, groups.as_bytes(), &tree.0).is_ok());
        }
        tree.write("a", &[("memory.max", "1000\n")]);
        assert_eq!(tree.tightest("0::/a"), None, "its use is not known");
    }

    #[test]
    fn the_limit_is_named_and_what_is_needed() {
        let tree = Tree::new("error");
        tree.write(
            "a",
            &[("memory.max", "1000\n"), ("memory.current", "900\n")],
        );
        assert!(check_in(100, b"0::/a", &tree.0).is_ok());
        let error = check_in(101, b"0::/a", &tree.0).expect_err("100 are free");
        let text = error.to_string();
        for part in [
            "a/memory.max",
            "1000 bytes",
            "100 are free",
            "101 are needed",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
