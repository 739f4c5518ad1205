//! The archive format of an initramfs, cpio's `newc`, as in the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`.

/// An archive to which files can be added.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Adds a directory; a directory comes before its contents.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file that every user can run.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// Returns the whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        let size = u32::try_from(content.len()).expect("a newc archive holds no file of 4 GiB");
        let name_size = path.len() as u32 + 1;
        self.entries += 1;
        let [inode, links] = [self.entries, 1];
        let [
            uid,
            gid,
            time,
            major,
            minor,
            device_major,
            device_minor,
            check,
        ] = [0; 8];
        let fields = [
            inode,
            mode,
            uid,
            gid,
            links,
            time,
            size,
            major,
            minor,
            device_major,
            device_minor,
            name_size,
            check,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_documented_bytes() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.program("init", b"hello");
        let bytes = archive.finish();
        let expected = [
            "070701000000010000\
             41ed00000000000000000000000100000000000000000000000000000000000000000000000000000004000000\
             00dev\0\0\0",
            "070701000000020000\
             81ed00000000000000000000000100000000000000050000000000000000000000000000000000000005000000\
             00init\0\0hello\0\0\0",
            "070701000000030000\
             00000000000000000000000000010000000000000000000000000000000000000000000000000000000b000000\
             00TRAILER!!!\0\0\0\0",
        ];
        assert_eq!(String::from_utf8(bytes).unwrap(), expected.concat());
    }
}
