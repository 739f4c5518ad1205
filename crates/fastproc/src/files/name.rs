//! The name of an open file, as readlink(2) of `/proc/PID/fd/N` says it.

use std::io::Write;

use super::object::layout::{
    ANON_INODE_FS_MAGIC, DELETED, DMABUF_MAGIC, HUGETLBFS_MAGIC, NO_TEXT, NSFS_MAGIC, PIDFS_MAGIC,
    PIPEFS_MAGIC, ROOTLESS, Record, SOCKFS_MAGIC, TMPFS_MAGIC,
};

const DELETED_SUFFIX: &[u8] = b" (deleted)";

/// Whether a name cannot be made from the record and its text, so the kernel's text must tell it.
pub(super) fn is_missing(record: &Record) -> bool {
    let state = u32::from(record.state);
    let has_known_form = || {
        matches!(
            record.magic,
            ANON_INODE_FS_MAGIC
                | PIDFS_MAGIC
                | NSFS_MAGIC
                | TMPFS_MAGIC
                | HUGETLBFS_MAGIC
                | DMABUF_MAGIC
        )
    };
    state & NO_TEXT != 0 || state & ROOTLESS != 0 && !has_known_form()
}

/// Appends the name of a record of the program, whose text is this.
pub(super) fn write(record: &Record, text: &[u8], to: &mut Vec<u8>) {
    let numbered = |name: &[u8], to: &mut Vec<u8>| {
        to.extend_from_slice(name);
        write!(to, ":[{}]", record.ino).expect("a vector takes everything");
    };
    let has_root = u32::from(record.state) & ROOTLESS == 0;
    match record.magic {
        SOCKFS_MAGIC => numbered(b"socket", to),
        PIPEFS_MAGIC => numbered(b"pipe", to),
        NSFS_MAGIC => numbered(text, to),
        PIDFS_MAGIC => to.extend_from_slice(b"anon_inode:[pidfd]"),
        ANON_INODE_FS_MAGIC => {
            to.extend_from_slice(b"anon_inode:");
            to.extend_from_slice(text);
        }
        DMABUF_MAGIC if !has_root => {
            to.extend_from_slice(b"/dmabuf:");
            to.extend_from_slice(text);
        }
        _ if !has_root => {
            to.push(b'/');
            to.extend_from_slice(text);
            to.extend_from_slice(DELETED_SUFFIX);
        }
        _ => {
            to.extend_from_slice(text);
            if u32::from(record.state) & DELETED != 0 {
                to.extend_from_slice(DELETED_SUFFIX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(magic: u32, state: u32, text: &[u8]) -> String {
        let record = Record {
            magic,
            ino: 7,
            state: state as u8,
            ..Record::default()
        };
        let mut name = Vec::new();
        write(&record, text, &mut name);
        String::from_utf8(name).expect("text")
    }

    #[test]
    fn objects_without_a_path_have_the_kernels_names() {
        assert_eq!(name(SOCKFS_MAGIC, 0, b""), "socket:[7]");
        assert_eq!(name(PIPEFS_MAGIC, 0, b""), "pipe:[7]");
        assert_eq!(name(NSFS_MAGIC, 0, b"net"), "net:[7]");
        assert_eq!(
            name(ANON_INODE_FS_MAGIC, ROOTLESS, b"[eventfd]"),
            "anon_inode:[eventfd]"
        );
        assert_eq!(name(PIDFS_MAGIC, ROOTLESS, b""), "anon_inode:[pidfd]");
        assert_eq!(
            name(TMPFS_MAGIC, ROOTLESS, b"memfd:a"),
            "/memfd:a (deleted)"
        );
        assert_eq!(name(0xef53, 0, b"/a/b"), "/a/b");
        assert_eq!(name(0xef53, DELETED, b"/a/b"), "/a/b (deleted)");
    }

    #[test]
    fn a_name_of_an_unknown_form_is_asked_for() {
        let missing = |magic, state: u32| {
            is_missing(&Record {
                magic,
                state: state as u8,
                ..Record::default()
            })
        };
        assert!(missing(0xef53, NO_TEXT) && missing(0xef53, ROOTLESS));
        assert!(!missing(0xef53, 0) && !missing(TMPFS_MAGIC, ROOTLESS));
    }
}
