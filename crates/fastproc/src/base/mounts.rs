//! Where the cgroup hierarchy of version 2 is mounted.

/// The mounts of the hierarchy, or of a part of it: the cgroup at the root of each, and its mount point. In a line of
/// `/proc/PID/mountinfo` (proc(5)) they are the fourth and fifth of the fields before ` - `, and the type is the first
/// field after it.
pub(crate) fn of_cgroup2(mountinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ").then_some((root, point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_among_the_mounts() {
        let mounts = "25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      nonsense\n\
                      26 19 0:23 /part /mnt rw - cgroup2 none rw\n\
                      27 19 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let expected = [("/part", "/mnt"), ("/", "/sys/fs/cgroup/unified")];
        assert!(of_cgroup2(mounts).eq(expected));
        assert_eq!(of_cgroup2("").count(), 0);
    }
}
