/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's structures, reduced to the members that files.bpf.c reads. See kernel.h. */
#ifndef FASTPROC_KERNEL_FILES_H
#define FASTPROC_KERNEL_FILES_H

#include "kernel_types.h"
#include "files.h"

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFLNK 0120000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define MINOR_BITS 20
#define O_CLOEXEC 02000000
#define O_PATH 010000000

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define TCP_TIME_WAIT 6
#define TCP_LISTEN 10
#define TCP_SYN_RECV 3
#define TCP_NEW_SYN_RECV 12

enum { BPF_TASK_ITER_ALL_PROCS };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct { int counter; } atomic_t;
typedef struct { atomic_t refs; } refcount_t;
typedef struct { u32 val; } kuid_t;
struct list_head { struct list_head *next, *prev; };
/* A pointer, of a type that every kernel has: used to read words of tables. */
struct callback_head { struct callback_head *next; };

struct kernfs_node { u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct css_set { struct cgroup *dfl_cgrp; };
typedef struct { u32 val; } kgid_t;
typedef struct { u64 val; } kernel_cap_t;
struct user_namespace;
struct cred {
	kuid_t uid, suid, euid;
	kgid_t gid, sgid, egid;
	kernel_cap_t cap_permitted;
	struct user_namespace *user_ns;
};

struct qstr { u32 len; const unsigned char *name; };
typedef struct { u32 sequence; } seqcount_t;
typedef struct { seqcount_t seqcount; } seqcount_spinlock_t;
struct hlist_bl_node { struct hlist_bl_node **pprev; };
struct inode;
struct dentry {
	seqcount_spinlock_t d_seq;
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};
struct vfsmount { struct dentry *mnt_root; };
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path { struct vfsmount *mnt; struct dentry *dentry; };

struct proc_ns_operations { const char *name; };
struct ns_common { const struct proc_ns_operations *ops; u32 inum; };
struct user_namespace { struct ns_common ns; };
struct super_block { u32 s_dev; u64 s_magic; };
struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	u64 i_ino;
	u32 i_rdev;
	s64 i_size;
	void *i_private;
};
struct file {
	struct inode *f_inode;
	u32 f_flags;
	struct path f_path;
	s64 f_pos;
};
struct fdtable {
	u32 max_fds;
	void *fd;
	u64 *close_on_exec, *open_fds;
};
struct files_struct { atomic_t count; struct fdtable *fdt; };
struct fs_struct { struct path root, pwd; };
typedef struct { u64 __mm_flags[1]; } mm_flags_t;
struct mm_struct { struct file *exe_file; mm_flags_t flags; };
struct mm_struct___6_1 { u64 flags; };
enum task_dumpable { TASK_DUMPABLE_OFF };
struct task_exec_state { enum task_dumpable dumpable; };

struct net { struct ns_common ns; };
typedef struct { struct net *net; } possible_net_t;
struct in6_addr { union { u32 u6_addr32[4]; } in6_u; };
struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct socket;
struct sock {
	struct sock_common __sk_common;
	struct { atomic_t rmem_alloc; } sk_backlog;
	struct socket *sk_socket;
	refcount_t sk_wmem_alloc;
	kuid_t sk_uid;
	u16 sk_protocol, sk_type;
	u32 sk_ack_backlog;
	u64 sk_ino;
};
struct inet_timewait_sock { volatile u8 tw_substate; };
struct tcp_sock { u32 copied_seq, write_seq, rcv_nxt, snd_una; };
struct udp_sock { int forward_deficit; };
struct sockaddr_un { u16 sun_family; char sun_path[108]; };
struct unix_address { int len; struct sockaddr_un name[1]; };
struct unix_sock { struct unix_address *addr; struct sock *peer; };
struct socket { struct sock *sk; };
struct socket_alloc { struct socket socket; struct inode vfs_inode; };

struct signal_struct { struct list_head thread_head; };
struct task_struct {
	struct list_head tasks, thread_node;
	u32 on_cpu;
	int pid, tgid;
	u32 user_dumpable : 1;
	u64 start_boottime, nvcsw, nivcsw, self_exec_id;
	struct task_exec_state *exec_state;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct files_struct *files;
	struct fs_struct *fs;
	struct mm_struct *mm;
	const struct cred *real_cred;
	struct css_set *cgroups;
	char comm[16];
};

struct bpf_iter_meta;
struct bpf_iter__tcp { struct bpf_iter_meta *meta; struct sock_common *sk_common; u32 uid; };
struct bpf_iter__udp { struct bpf_iter_meta *meta; struct udp_sock *udp_sk; u32 uid; };
struct bpf_iter__unix { struct bpf_iter_meta *meta; struct unix_sock *unix_sk; };

#pragma clang attribute pop

/* Not relocated: the verifier knows this size. */
struct bpf_iter_task { u64 opaque[3]; };

#endif
