/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the library and the walk of the open files exchange, in the form of record.h. */
#ifndef FASTPROC_FILES_H
#define FASTPROC_FILES_H

#include "types.h"

/* What is read, as bits of settings.groups. Without any, descriptors are only counted. */
#define FILES_FILES 1	/* a record of every descriptor */
#define FILES_SOCKETS 2 /* the addresses of sockets; without FILES_FILES, only sockets have records */
#define FILES_PATHS 4	/* names and paths, in the pool of texts */
#define FILES_GPUS 8	/* open GPUs; without FILES_FILES, only they have records */

/* File systems of objects without a path: include/uapi/linux/magic.h. */
#define FILES_SOCKFS_MAGIC 0x534f434b
#define FILES_PIPEFS_MAGIC 0x50495045
#define FILES_ANON_INODE_FS_MAGIC 0x09041934
#define FILES_NSFS_MAGIC 0x6e736673
#define FILES_PIDFS_MAGIC 0x50494446

/* The others whose files may have no path. */
#define FILES_TMPFS_MAGIC 0x01021994
#define FILES_HUGETLBFS_MAGIC 0x958458f6
#define FILES_DMABUF_MAGIC 0x444d4142

/* Devices of GPUs: DRM_MAJOR of include/drm/drm_drv.h. */
#define FILES_GPU_MAJOR 226

/* What a descriptor is open on. */
#define FILES_OTHER 0
#define FILES_FILE 1
#define FILES_DIRECTORY 2
#define FILES_CHARACTER 3
#define FILES_BLOCK 4
#define FILES_FIFO 5	  /* a pipe with a path */
#define FILES_PIPE 6
#define FILES_SOCKET 7
#define FILES_ANONYMOUS 8 /* an eventfd, an epoll set, a BPF object and so on */
#define FILES_NAMESPACE 9
#define FILES_PIDFD 10
#define FILES_LINK 11	  /* a symbolic link, by O_PATH */
#define FILES_BOUND 12	  /* the file that a unix socket is bound to, by O_PATH */
#define FILES_KINDS 16

/* files_record.state */
#define FILES_TORN 1	/* it changed whenever it was read: the text tells */
#define FILES_DELETED 2 /* its path ends with " (deleted)" */
#define FILES_NO_TEXT 4 /* its name could not be read: the text tells */
#define FILES_ROOTLESS 8 /* its name is not below a mounted root: anonymous, or in no folder */
#define FILES_STATED 16 /* from /proc: device, inode number and size are those of stat(2) */
#define FILES_WHOLE 32 /* from /proc: the text is the whole name */

/* Numbers of files that a process holds without a descriptor. */
#define FILES_CWD 0xfffffffd
#define FILES_ROOT 0xfffffffe
#define FILES_PROGRAM 0xffffffff

/* files_process.state */
#define FILES_OF_THREAD 1 /* the leader has ended, so these are a thread's */
#define FILES_CHANGED 2 /* files are missing: it took another table whenever it was read, or has more than run.most */
#define FILES_HIDDEN 4 /* the kernel does not show which files it has open */
#define FILES_UNCOUNTED 8 /* how many it has open is not known */
#define FILES_UNSURE 16 /* hidden, because it is not known what the kernel shows: /proc must be asked */

/* Texts lie in pieces of this size, from the end to the beginning of each. */
#define FILES_PIECE 65536

/* Fixed when the program is loaded. */
struct files_settings {
	u32 groups, pieces;
};

/* A process, with its name and its effective user. */
struct files_process {
	u64 start_ns; /* start_boottime */
	u64 cgroup;   /* the id of its cgroup of version 2 */
	u32 tgid, uid;
	char comm[16];
	u32 first, records; /* its records: files that it holds without a descriptor come last */
	u32 open, state;
	u32 kinds[FILES_KINDS]; /* open descriptors of each kind */
};

/* The rights of a process when its first descriptor was read: they decide which readers see its files. Only the library sees them. */
struct files_rights {
	u64 cap_permitted, exec_id;
	u32 uid, euid, suid, gid, egid, sgid;
	u32 user_ns, dumpable;
};

/* A descriptor. */
struct files_record {
	u64 ino, pos, size;
	u32 fd, flags; /* f_flags, with O_CLOEXEC of the descriptor */
	u32 dev, rdev, magic; /* s_dev, i_rdev and s_magic */
	u32 socket;	      /* the number of its socket, from 1 */
	u32 text;	      /* where its name is in the pool */
	u32 text_len, mode;
	u8 kind, state;
	u8 reserved[2];
};

/* A socket. */
struct files_socket {
	u32 saddr[4], daddr[4];
	u8 family, sock_type, state, reserved;
	u32 protocol, sport, dport, netns;
	u32 rxq, txq;
	u32 uid, peer; /* peer: the inode number of the other unix socket */
	u32 text, text_len; /* the name of a unix socket */
	u32 end;
};

/* One walk: the library sets it up, the program counts in it. */
struct files_run {
	u32 processes, records, sockets, text; /* in use; text: pieces in use */
	u32 lost_processes, lost_records, lost_sockets, lost_texts; /* for which there was no room */
	u32 done; /* every process was met; else the library runs the program again */
	u32 retried, torn, dropped; /* records read again; given up; processes that left before their end */
	u32 units, at, max, is_timed;
	u32 word_records, word_sockets, word_text, word_text_at; /* in use when a word of the table was begun */
	u32 word_open, word_own;
	u32 text_at, text_end; /* where the next text of the piece ends; the end of the one that is written */
	u32 is_for_user, user; /* from the library: only this user's processes are read, and the descriptors of others counted */
	u32 only_counts; /* so it is for the process that is read now */
	u32 is_renamed; /* a rename is under way in the path that is read */
	u64 section_ns, deadline_ns; /* how long a run may take, from the library, and when this one ends */
	u64 longest_ns;		     /* how long the longest run took */
	/* the walk's own state */
	u64 first, next, task, holder, holder_start, files, fdt, fd, open, cloexec, word, cloexec_word, switches;
	u64 dentry, mount, root_dentry, root_mount, sum, ahead;
	u32 back, searches, found, inside, begun, tries;
	u32 most; /* records of a process, from the library; more are only counted */
	u32 restarts, again, reserved; /* processes that were begun again; of how many nothing is read then */
};

#endif
