//! The lines of `/proc/PID/mountinfo` (proc(5)).

use std::borrow::Cow;

use rustix::fs::{Dev, makedev};

/// A line. Names are bytes, without the kernel's escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// The kernel's number of the mount.
    pub id: u32,
    /// The device of the file system, as in `st_dev` of most.
    pub device: Dev,
    /// The folder of the file system that is mounted.
    pub root: Cow<'a, [u8]>,
    /// Where it is mounted.
    pub point: Cow<'a, [u8]>,
    /// The type of the file system.
    pub kind: Cow<'a, [u8]>,
    /// What is mounted, such as a device or the path of a server.
    pub source: Cow<'a, [u8]>,
    /// Whether the mount or the file system is read-only.
    pub is_read_only: bool,
    /// Options of the file system, as the kernel escapes them.
    pub options: &'a [u8],
}

/// The mounts of this `mountinfo`. A line of another form is left out.
pub fn parse(mountinfo: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(line)
}

/// The mounts of the cgroup hierarchy of version 2, or of a part of it.
pub(crate) fn of_cgroup2(mountinfo: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    parse(mountinfo).filter(|mount| &*mount.kind == b"cgroup2")
}

fn line(line: &[u8]) -> Option<Mount<'_>> {
    let mut words = line.split(|&byte| byte == b' ');
    let id = number(words.next()?)?;
    let mut device = words.nth(1)?.splitn(2, |&byte| byte == b':');
    let device = makedev(number(device.next()?)?, number(device.next()?)?);
    let (root, point) = (plain(words.next()?), plain(words.next()?));
    let of_mount = words.next()?;
    // Optional words end at a dash.
    words.find(|word| word == b"-")?;
    let (kind, source) = (plain(words.next()?), plain(words.next()?));
    let options = words.next()?;
    let is_read_only = |options: &[u8]| options.split(|&byte| byte == b',').any(|it| it == b"ro");
    Some(Mount {
        id,
        device,
        root,
        point,
        kind,
        source,
        is_read_only: is_read_only(of_mount) || is_read_only(options),
        options,
    })
}

fn number(word: &[u8]) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The bytes of a word, in which the kernel writes blanks and backslashes as `\040` (`mangle_path()`).
fn plain(word: &[u8]) -> Cow<'_, [u8]> {
    if !word.contains(&b'\\') {
        return Cow::Borrowed(word);
    }
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, others)) = rest.split_first() {
        if let [
            b'\\',
            high @ b'0'..=b'3',
            middle @ b'0'..=b'7',
            low @ b'0'..=b'7',
            after @ ..,
        ] = rest
        {
            plain.push(((high - b'0') << 6) | ((middle - b'0') << 3) | (low - b'0'));
            rest = after;
        } else {
            plain.push(first);
            rest = others;
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_a_mount_are_bytes_without_the_kernels_escapes() {
        let mounts = b"36 35 98:7 /a\\134b /mnt/my\\040cg rw,noatime master:1 shared:2 - cifs //srv/My\\040Share rw,x\n\
            nonsense\n\
            37 35 0:40 / /tmp/u\xff\\011\\012 ro - fuse.a\\043b  rw\n\
            38 35 0:41 / /r rw - ext4 /dev/x\\9 rw,ro\n";
        let found: Vec<_> = parse(mounts).collect();
        let names: Vec<_> = found
            .iter()
            .map(|mount| {
                [&mount.root, &mount.point, &mount.kind, &mount.source].map(|name| &**name)
            })
            .collect();
        let expected: [[&[u8]; 4]; 3] = [
            [b"/a\\b", b"/mnt/my cg", b"cifs", b"//srv/My Share"],
            [b"/", b"/tmp/u\xff\t\n", b"fuse.a#b", b""],
            [b"/", b"/r", b"ext4", b"/dev/x\\9"],
        ];
        assert_eq!(names, expected);
        let rest = found
            .iter()
            .map(|mount| (mount.id, mount.device, mount.is_read_only));
        let expected = [
            (36, makedev(98, 7), false),
            (37, makedev(0, 40), true),
            (38, makedev(0, 41), true),
        ];
        assert!(rest.eq(expected));
    }

    #[test]
    fn the_hierarchy_is_found_beside_a_mount_that_is_not_utf_8() {
        let mounts = b"25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            28 19 0:25 / /tmp/u\xff rw - fuse.f \xfe rw\n\
            26 19 0:23 /part /mnt/my\\040cg rw - cgroup2 none rw\n\
            27 19 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let found: Vec<_> = of_cgroup2(mounts)
            .map(|mount| (mount.root, mount.point))
            .collect();
        let expected = [("/part", "/mnt/my cg"), ("/", "/sys/fs/cgroup/unified")];
        let expected =
            expected.map(|(root, point)| (root.as_bytes().into(), point.as_bytes().into()));
        assert_eq!(found, expected);
        assert_eq!(of_cgroup2(b"").count(), 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&text).count();
            let _ = plain(&text);
        }
    }
}
