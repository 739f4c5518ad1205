/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names and paths. A path is read from its end to its beginning, so texts are written from the end of a piece towards
 * its beginning.
 *
 * A rename while a path is read could give one that never was. The kernel counts the renames of each dentry in its
 * d_seq, which is odd meanwhile. So the way up is gone twice, and must lead through the same dentries with the same
 * counts: at the moment between the two all of them had the names that were read. RCU keeps dentries and mounts.
 */
#ifndef FASTPROC_FILES_TEXT_H
#define FASTPROC_FILES_TEXT_H

/* PATH_MAX: the kernel shows no longer path either. */
#define MOST_TEXT 4096
#define MOST_NAME 256
/* The text has longer paths: no section takes long for one. */
#define MOST_COMPONENTS 256
#define PATH_TRIES 3

/* Begins a text. Returns whether there is room for it. */
static __always_inline int begin_text(void)
{
	if (!run.text || run.text_at < MOST_TEXT + MOST_NAME) {
		if (run.text >= settings.pieces) {
			run.lost_texts++;
			return 0;
		}
		run.text++;
		/* put_before() needs room behind the place where it writes */
		run.text_at = FILES_PIECE - MOST_NAME;
	}
	run.text_end = run.text_at;
	return 1;
}

/* Writes a name and the character before it in front of the text. Returns whether there was room. */
static __always_inline int put_before(const void *name, u64 length, char first)
{
	u32 piece = run.text - 1;
	struct piece *p = bpf_map_lookup_elem(&texts, &piece);
	u64 at = run.text_at;

	if (!p || length >= MOST_NAME || run.text_end - run.text_at + length >= MOST_TEXT)
		return 0;
	/* the verifier must see the bounds in the registers that are used */
	at = (at - length) & (FILES_PIECE - 1);
	length &= MOST_NAME - 1;
	asm volatile("" : "+r"(at), "+r"(length));
	if (at > FILES_PIECE - MOST_NAME)
		return 0;
	asm volatile("" : "+r"(at));
	if (length > MOST_NAME - 1)
		return 0;
	bpf_probe_read_kernel(p->bytes + at, length, name);
	if (first) {
		at--;
		p->bytes[at & (FILES_PIECE - 1)] = first;
	}
	run.text_at = at;
	return 1;
}

static __always_inline void add_to_sum(u64 value)
{
	run.sum = run.sum * 0x9e3779b97f4a7c15ULL + value;
}

#define AT_ROOT 1
#define ESCAPED 2

/*
 * Goes up to the next name of the path. Returns the dentry with the name, 0 if a mount was left, AT_ROOT, or ESCAPED at the
 * root of a file system of which only a folder is mounted, from which the file was moved away.
 */
static __always_inline u64 go_up(void)
{
	u64 dentry = RELOAD(run.dentry), mount = RELOAD(run.mount), parent;
	struct dentry *d = CAST(struct dentry, dentry);
	u32 sequence;

	run.units++;

	if (dentry == run.root_dentry && mount == run.root_mount)
		return AT_ROOT;
	add_to_sum(dentry ^ mount);
	if (dentry == (u64)CAST(struct vfsmount, mount)->mnt_root) {
		u64 at = mount - bpf_core_field_offset(struct mount, mnt);
		struct mount *m = CAST(struct mount, at);
		u64 up = (u64)m->mnt_parent;

		if (up == at)
			return AT_ROOT;
		RELOAD(run.dentry) = (u64)m->mnt_mountpoint;
		RELOAD(run.mount) = up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	sequence = RELOAD(d->d_seq.seqcount.sequence);
	run.is_renamed |= sequence & 1;
	add_to_sum(sequence);
	ordered();
	parent = (u64)RELOAD(d->d_parent);
	if (parent == dentry)
		return ESCAPED;
	RELOAD(run.dentry) = parent;
	return dentry;
}

static int read_component(u32 i, void *unused)
{
	u64 dentry = go_up();
	struct dentry *d = CAST(struct dentry, dentry);

	/* the kernel shows no name then */
	if (dentry == ESCAPED)
		run.text_at = run.text_end;
	if (dentry <= ESCAPED)
		return dentry != 0;
	run.found = put_before(d->d_name.name, d->d_name.len, '/');
	return !run.found;
}

static int check_component(u32 i, void *unused)
{
	u64 dentry = go_up();

	return dentry == AT_ROOT || dentry == ESCAPED;
}

/* Writes the path of a dentry in a mount. Returns whether it is right. */
static __always_inline int put_path(u64 dentry, u64 mount)
{
	u64 sum;

	for (u32 i = 0; i < PATH_TRIES; i++) {
		run.text_at = run.text_end;
		RELOAD(run.dentry) = dentry;
		RELOAD(run.mount) = mount;
		run.sum = run.is_renamed = 0;
		run.found = 1;
		if (bpf_loop(MOST_COMPONENTS, read_component, 0, 0) >= MOST_COMPONENTS || !run.found)
			return 0;
		if (run.text_at == run.text_end && !put_before(0, 0, '/'))
			return 0;
		ordered();
		sum = run.sum;
		RELOAD(run.dentry) = dentry;
		RELOAD(run.mount) = mount;
		run.sum = 0;
		bpf_loop(MOST_COMPONENTS, check_component, 0, 0);
		if (run.sum == sum && !run.is_renamed)
			return 1;
	}
	return 0;
}

/* Writes the name of the kind of a namespace. */
static __always_inline int put_namespace(struct inode *inode)
{
	struct ns_common *ns = CAST(struct ns_common, inode->i_private);
	const char *name;
	u64 length = 0;

	if (!bpf_core_field_exists(ns->ops) || !bpf_core_field_exists(ns->ops->name))
		return 0;
	name = CAST(struct proc_ns_operations, ns->ops)->name;
	for (; length < 32; length++) {
		char letter = 0;

		bpf_probe_read_kernel(&letter, 1, name + length);
		if (!letter)
			break;
	}
	return put_before(name, length, 0);
}

/* Writes the name of the file of a record, from its entry in a folder and its mount. */
int put_name(u32 index, u64 dentry, u64 mount);
__noinline int put_name(u32 index, u64 dentry, u64 mount)
{
	struct files_record *r = bpf_map_lookup_elem(&records, &index);
	struct dentry *d = CAST(struct dentry, dentry);
	int is_put;

	if (!r)
		return 0;
	r->state |= FILES_NO_TEXT;
	if (!begin_text())
		return 0;
	if (r->magic == FILES_NSFS_MAGIC) {
		is_put = put_namespace(CAST(struct inode, d->d_inode));
	} else if ((u64)d->d_parent == dentry && (u64)CAST(struct vfsmount, mount)->mnt_root != dentry) {
		r->state |= FILES_ROOTLESS;
		is_put = put_before(d->d_name.name, d->d_name.len, 0);
	} else {
		/* d_unlinked() */
		if (!d->d_hash.pprev && (u64)d->d_parent != dentry)
			r->state |= FILES_DELETED;
		is_put = put_path(dentry, mount);
	}
	if (!is_put) {
		run.text_at = run.text_end;
		return 0;
	}
	r->state &= ~FILES_NO_TEXT;
	r->text = (run.text - 1) * FILES_PIECE + run.text_at;
	r->text_len = run.text_end - run.text_at;
	return 0;
}

#endif
