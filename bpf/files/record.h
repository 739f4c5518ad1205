/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The record of a descriptor, and its proof.
 *
 * While a record is read, the descriptor may be closed, and the next file may get the same number, the same memory and
 * even the same inode. So each word is read, and after the last of them read again: first the descriptor, then the
 * file's inode with its number, then the others. If all are the same, none changed between the two readings, unless it
 * changed and came back. What excludes that:
 *
 * - Sockets, pipes and what else has an inode of its own: its number comes from a counter. The descriptor led to this
 *   file, and the file after that to the inode with this number; a file that was closed never leads to its old inode
 *   again. So the file was open all the time, and so was its socket.
 * - A process that is alone with its table and did not run while a word of it was read: see table.h.
 * - Else the time: words of two files must take turns in the same memory three times, each time by close(2) and open(2).
 *   That takes longer than SLOW_NS. A record that took longer is read again.
 *
 * Position and size are those of their moment, as in the kernel's own text.
 */
#ifndef FASTPROC_FILES_RECORD_H
#define FASTPROC_FILES_RECORD_H

#define RECORD_TRIES 4
#define SLOW_NS 1000

static __always_inline u32 kind_of(u32 mode, u64 magic)
{
	/* namespaces and pidfds have the mode of a regular file */
	if (magic == FILES_NSFS_MAGIC)
		return FILES_NAMESPACE;
	if (magic == FILES_PIDFS_MAGIC)
		return FILES_PIDFD;
	switch (mode & S_IFMT) {
	case S_IFREG: return FILES_FILE;
	case S_IFDIR: return FILES_DIRECTORY;
	case S_IFCHR: return FILES_CHARACTER;
	case S_IFBLK: return FILES_BLOCK;
	case S_IFIFO: return magic == FILES_PIPEFS_MAGIC ? FILES_PIPE : FILES_FIFO;
	case S_IFSOCK: return magic == FILES_SOCKFS_MAGIC ? FILES_SOCKET : FILES_BOUND;
	case S_IFLNK: return FILES_LINK;
	}
	return magic == FILES_ANON_INODE_FS_MAGIC ? FILES_ANONYMOUS : FILES_OTHER;
}

/* Reads what an inode says. */
static __always_inline void read_inode(struct files_record *r, struct inode *inode, struct super_block *sb)
{
	r->ino = inode->i_ino;
	r->size = inode->i_size;
	r->rdev = inode->i_rdev;
	r->mode = inode->i_mode;
	r->dev = sb->s_dev;
	r->magic = sb->s_magic;
	r->kind = kind_of(r->mode, r->magic);
	r->socket = r->text = r->text_len = r->state = 0;
}

/* What is read of a file before it is proven. */
struct seen {
	u64 slot, file, inode, sb, dentry, mount;
	u32 flags;
};

/* Whether the words of a record are still the same. */
static __always_inline int is_same(struct files_record *r, struct seen *was)
{
	struct file *f = CAST(struct file, was->file);
	struct inode *i = CAST(struct inode, was->inode);

	ordered();
	if (WORD(was->slot) != was->file)
		return 0;
	ordered();
	return (u64)RELOAD(f->f_inode) == was->inode && RELOAD(i->i_ino) == r->ino && RELOAD(f->f_flags) == was->flags &&
	       RELOAD(i->i_mode) == r->mode && (u64)RELOAD(i->i_sb) == was->sb && RELOAD(i->i_rdev) == r->rdev &&
	       (u64)RELOAD(f->f_path.dentry) == was->dentry && (u64)RELOAD(f->f_path.mnt) == was->mount;
}

/* The same, and in time: see above. */
static __always_inline int is_proven(struct files_record *r, struct seen *was, u64 began)
{
	if (!is_same(r, was))
		return 0;
	return !run.is_timed || r->kind == FILES_SOCKET || r->kind == FILES_PIPE || bpf_ktime_get_ns() - began <= SLOW_NS;
}

static __always_inline void count(struct files_process *p, u32 kind)
{
	p->open++;
	p->kinds[kind & (FILES_KINDS - 1)]++;
}

/* Only counts a descriptor. Returns -1 if its record is wanted, and 0 if it must be read again. */
static __always_inline int count_file(struct files_process *p, u64 slot, u64 file)
{
	struct file *f = CAST(struct file, file);
	u64 inode = (u64)RELOAD(f->f_inode);
	struct inode *i = CAST(struct inode, inode);
	u32 mode = RELOAD(i->i_mode), kind = kind_of(mode, CAST(struct super_block, i->i_sb)->s_magic);

	if (WANTED(FILES_FILES) || (WANTED(FILES_SOCKETS) && kind == FILES_SOCKET) ||
	    (WANTED(FILES_GPUS) && kind == FILES_CHARACTER && i->i_rdev >> MINOR_BITS == FILES_GPU_MAJOR)) {
		if (p->records < run.most)
			return -1;
		p->state |= FILES_CHANGED;
	}
	ordered();
	if (WORD(slot) != file)
		return 0;
	ordered();
	if ((u64)RELOAD(f->f_inode) != inode || RELOAD(i->i_mode) != mode)
		return 0;
	count(p, kind);
	return 1;
}

/* Reads a descriptor into the next record. Returns 0 if it must be read again. */
int read_record(u64 slot, u32 fd, u32 is_cloexec);
__noinline int read_record(u64 slot, u32 fd, u32 is_cloexec)
{
	u32 index = run.records, owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	struct files_record *r = bpf_map_lookup_elem(&records, &index);
	struct seen was = { .slot = slot, .file = WORD(slot) };
	struct file *f = CAST(struct file, was.file);
	u64 began = 0;

	/* closed meanwhile, or not opened yet */
	if (!was.file || !p)
		return 1;
	if (run.is_timed)
		began = bpf_ktime_get_ns();
	was.inode = (u64)RELOAD(f->f_inode);
	was.sb = (u64)RELOAD(CAST(struct inode, was.inode)->i_sb);
	if (!WANTED(FILES_FILES) || p->records >= run.most) {
		int counted = count_file(p, slot, was.file);

		if (counted >= 0)
			return counted;
	}
	if (!r) {
		run.lost_records++;
		return 1;
	}
	was.flags = RELOAD(f->f_flags);
	was.dentry = (u64)RELOAD(f->f_path.dentry);
	was.mount = (u64)RELOAD(f->f_path.mnt);
	read_inode(r, CAST(struct inode, was.inode), CAST(struct super_block, was.sb));
	r->fd = fd;
	r->flags = (was.flags & ~O_CLOEXEC) | (is_cloexec ? O_CLOEXEC : 0);
	r->pos = RELOAD(f->f_pos);
	if (WANTED(FILES_SOCKETS) && r->kind == FILES_SOCKET) {
		r->socket = read_socket(VALUE(CAST(struct socket, socket_of(was.inode))->sk));
	}
	if (!is_proven(r, &was, began))
		return 0;
	if (WANTED(FILES_PATHS) && r->kind != FILES_SOCKET && r->kind != FILES_PIPE) {
		put_name(index, VALUE(was.dentry), VALUE(was.mount));
		/* RCU keeps the entries of folders, and neither others nor namespaces */
		if (((r->state & FILES_ROOTLESS) || r->magic == FILES_NSFS_MAGIC) && !is_proven(r, &was, began))
			return 0;
	}
	run.records = index + 1;
	p->records++;
	count(p, r->kind);
	return 1;
}

/* Records a descriptor that changes whenever it is read. */
int read_torn(u32 fd);
__noinline int read_torn(u32 fd)
{
	u32 index = run.records, owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	struct files_record *r = bpf_map_lookup_elem(&records, &index);

	run.torn++;
	if (!p)
		return 0;
	count(p, FILES_OTHER);
	if (!WANTED(FILES_FILES | FILES_SOCKETS | FILES_GPUS) || p->records >= run.most)
		return 0;
	if (!r) {
		run.lost_records++;
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->fd = fd;
	r->state = FILES_TORN | FILES_NO_TEXT;
	run.records = index + 1;
	p->records++;
	return 0;
}

/* Reads a descriptor until its record is right. */
static __always_inline void read_descriptor(u64 slot, u32 fd, u32 is_cloexec)
{
	u32 sockets = run.sockets, text = run.text, text_at = run.text_at;

	for (u32 i = 0; i < RECORD_TRIES; i++) {
		if (read_record(slot, fd, is_cloexec))
			return;
		run.retried++;
		run.sockets = sockets;
		run.text = text;
		run.text_at = text_at;
	}
	read_torn(fd);
}

/* Records a file that the process holds without a descriptor, by its entry in a folder. */
int read_held(u64 dentry, u64 mount, u32 fd);
__noinline int read_held(u64 dentry, u64 mount, u32 fd)
{
	u32 index = run.records, owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	struct files_record *r = bpf_map_lookup_elem(&records, &index);
	struct inode *i;

	if (!p || !dentry)
		return 0;
	if (!r) {
		run.lost_records++;
		return 0;
	}
	i = CAST(struct inode, CAST(struct dentry, dentry)->d_inode);
	read_inode(r, i, CAST(struct super_block, i->i_sb));
	r->fd = fd;
	r->flags = 0;
	r->pos = 0;
	run.records = index + 1;
	p->records++;
	if (WANTED(FILES_PATHS))
		put_name(index, VALUE(dentry), VALUE(mount));
	return 1;
}

#endif
