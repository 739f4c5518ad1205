//! File systems of which stat(2) shows the device and the inode number that the kernel keeps in its inodes.

use super::object::layout;

/// `s_magic` of these file systems: include/uapi/linux/magic.h, and the sources of each for the others.
///
/// overlayfs shows other devices, and numbers of the layer below; btrfs a device for each subvolume; FUSE, CIFS and NFS may map
/// numbers. What is not in this list is asked for, or unknown.
const TRUSTED: [u32; 30] = [
    0x0000_ef53, // ext2, ext3, ext4
    0x5846_5342, // xfs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs
    0x9584_58f6, // hugetlbfs
    0x7371_7368, // squashfs
    0x2011_bab0, // exfat
    0x0000_4d44, // vfat
    0x0000_9660, // iso9660
    0x1501_3346, // udf
    0xe0f5_e1e2, // erofs
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x0000_1cd1, // devpts
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6367_7270, // cgroup2
    0x0027_e0eb, // cgroup
    0x6264_6576, // bdev
    0x1980_0202, // mqueue
    0x6265_6570, // configfs
    0x4249_4e4d, // binfmt_misc
    layout::SOCKFS_MAGIC,
    layout::PIPEFS_MAGIC,
    layout::ANON_INODE_FS_MAGIC,
    layout::NSFS_MAGIC,
    layout::PIDFS_MAGIC,
];

/// Whether stat(2) shows what the kernel keeps.
pub(super) fn is_trusted(magic: u32) -> bool {
    TRUSTED.contains(&magic)
}
