//! Units and slices of systemd in the path of a cgroup (systemd.unit(5)).

/// The suffixes of unit names.
const TYPES: [&str; 11] = [
    "service",
    "scope",
    "socket",
    "mount",
    "swap",
    "slice",
    "target",
    "device",
    "automount",
    "timer",
    "path",
];

/// The folders of the path, without the prefix by which systemd protects names that the kernel could use.
fn folders(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|folder| !folder.is_empty())
        .map(|folder| folder.strip_prefix(b"_").unwrap_or(folder))
}

fn has_type(folder: &[u8], wanted: impl Fn(&str) -> bool) -> bool {
    let dot = folder.iter().rposition(|&byte| byte == b'.');
    let is = |dot: usize| {
        let end = std::str::from_utf8(&folder[dot + 1..]);
        end.is_ok_and(|end| TYPES.contains(&end) && wanted(end))
    };
    dot.is_some_and(|dot| dot > 0 && is(dot))
}

fn is_slice(folder: &[u8]) -> bool {
    has_type(folder, |end| end == "slice")
}

/// The unit: the first folder below the slices. `None` if systemd did not create it.
pub fn unit(path: &[u8]) -> Option<&[u8]> {
    let first = folders(path).find(|folder| !is_slice(folder))?;
    has_type(first, |_| true).then_some(first)
}

/// The slice: the innermost of the slices at the start of the path; without any, the root slice.
pub fn slice(path: &[u8]) -> &[u8] {
    let slices = folders(path).take_while(|folder| is_slice(folder));
    slices.last().unwrap_or(b"-.slice")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_unit_and_slice() {
        for (path, of_unit, of_slice) in [
            (
                "/system.slice/sshd.service",
                Some("sshd.service"),
                "system.slice",
            ),
            (
                "/system.slice/system-getty.slice/getty@tty1.service",
                Some("getty@tty1.service"),
                "system-getty.slice",
            ),
            (
                "/user.slice/user-0.slice/session-3.scope",
                Some("session-3.scope"),
                "user-0.slice",
            ),
            (
                "/user.slice/user-0.slice/user@0.service/app.slice/a.service",
                Some("user@0.service"),
                "user-0.slice",
            ),
            ("/init.scope", Some("init.scope"), "-.slice"),
            ("/_cpu.service", Some("cpu.service"), "-.slice"),
            ("/machines/a", None, "-.slice"),
            ("/.service", None, "-.slice"),
            ("/system.slice", None, "system.slice"),
            ("/", None, "-.slice"),
        ] {
            assert_eq!(unit(path.as_bytes()), of_unit.map(str::as_bytes), "{path}");
            assert_eq!(slice(path.as_bytes()), of_slice.as_bytes(), "{path}");
        }
    }
}
