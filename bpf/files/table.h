/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of a process, word by word: each word of the bitmap says which of 64 descriptors are open.
 *
 * The kernel replaces a table that is too small, and frees the old one. So a word belongs to the table if the process
 * still has the same files, and these the same table, when it has been read; else it is read again.
 *
 * While a process is alone with its table and does not run, nobody changes it: no word of its files can come back.
 * Otherwise the time of each record is measured: see record.h.
 */
#ifndef FASTPROC_FILES_TABLE_H
#define FASTPROC_FILES_TABLE_H

#define WORD_TRIES 4
/* Threads of an ended leader that are asked for their table. */
#define MOST_THREADS 64

/* The process's counts of kinds when a word was begun. */
u32 kinds_before[FILES_KINDS];

/*
 * The number of the lowest bit, by a sequence in which each six bits in a row are different: without a branch, so that
 * the verifier follows one path through a loop.
 */
const u8 bit_of_sequence[64] = {
	0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
	62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
	46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
};
static __always_inline u32 lowest(u64 bits)
{
	return bit_of_sequence[(bits & -bits) * 0x3f79d71b4cb0a89ULL >> 58];
}

/* How often a task has stopped running, or ~0 if it runs. */
static __always_inline u64 switches_of(u64 task)
{
	struct task_struct *t = CAST(struct task_struct, task);
	u64 switches;

	if (!bpf_core_field_exists(t->on_cpu) || RELOAD(t->on_cpu))
		return ~0ULL;
	ordered();
	switches = RELOAD(t->nvcsw) + RELOAD(t->nivcsw);
	ordered();
	return switches;
}

static __always_inline void search_threads(void)
{
	struct task_struct *t = CAST(struct task_struct, run.task);
	u64 head = (u64)t->signal + bpf_core_field_offset(struct signal_struct, thread_head), node = head;

	RELOAD(run.holder) = run.task;
	if (RELOAD(t->files) || !t->signal)
		return;
	for (u32 i = 0; i < MOST_THREADS; i++) {
		node = (u64)RELOAD(CAST(struct list_head, node)->next);
		if (!node || node == head)
			return;
		RELOAD(run.holder) = node - bpf_core_field_offset(struct task_struct, thread_node);
		if (RELOAD(CAST(struct task_struct, RELOAD(run.holder))->files))
			return;
	}
}

/* The task that has the files: the leader, or a thread if the leader has ended. */
static __always_inline void find_holder(void)
{
	search_threads();
	run.holder_start = CAST(struct task_struct, RELOAD(run.holder))->start_boottime;
}

/* Finds the table of the process, from the word run.at on. */
int find_table(void);
__noinline int find_table(void)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	struct files_struct *files;
	struct fdtable *t;

	find_holder();
	if (p && run.holder != run.task)
		p->state |= FILES_OF_THREAD;
	RELOAD(run.files) = (u64)RELOAD(CAST(struct task_struct, run.holder)->files);
	files = CAST(struct files_struct, run.files);
	RELOAD(run.fdt) = (u64)RELOAD(files->fdt);
	t = CAST(struct fdtable, run.fdt);
	run.fd = (u64)t->fd;
	run.open = (u64)t->open_fds;
	run.cloexec = (u64)t->close_on_exec;
	run.max = run.files ? t->max_fds : 0;
	run.word = 0;
	run.begun = 0;
	return 0;
}

/* Begins the word at run.at. */
int begin_word(void);
__noinline int begin_word(void)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	int is_alone = CAST(struct files_struct, run.files)->count.counter == 1;

	if (!p)
		return 0;
	run.switches = is_alone ? switches_of(run.holder) : ~0ULL;
	run.is_timed = run.tries || run.switches == ~0ULL;
	run.word = WORD(run.open + run.at / 8);
	run.cloexec_word = WORD(run.cloexec + run.at / 8);
	run.word_records = run.records;
	run.word_sockets = run.sockets;
	run.word_text = run.text;
	run.word_text_at = run.text_at;
	run.word_open = p->open;
	run.word_own = p->records;
	for (u32 i = 0; i < FILES_KINDS; i++)
		kinds_before[i] = p->kinds[i];
	run.begun = 1;
	return 0;
}

/* Takes back what was read of a word. */
static __always_inline void drop_word(struct files_process *p)
{
	run.records = run.word_records;
	run.sockets = run.word_sockets;
	run.text = run.word_text;
	run.text_at = run.word_text_at;
	p->open = run.word_open;
	p->records = run.word_own;
	for (u32 i = 0; i < FILES_KINDS; i++)
		p->kinds[i] = kinds_before[i];
}

/* Counts a descriptor. Returns whether it did not change meanwhile. A function of its own, which the verifier checks once. */
int count_one(u64 slot);
__noinline int count_one(u64 slot)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	u64 file = WORD(slot);

	/* closed meanwhile, or not opened yet */
	return !p || !file || count_file(p, slot, file);
}

/* Counts all descriptors of a word. If one changes meanwhile, they are read again one by one. */
int count_word(u64 slot, u64 word);
__noinline int count_word(u64 slot, u64 word)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);

	run.word = 0;
	if (!p)
		return 0;
	for (u32 i = 0; i < 64 && word; i++, word >>= 1, slot += 8) {
		if (!(word & 1) || count_one(slot))
			continue;
		run.retried++;
		run.tries++;
		drop_word(p);
		run.begun = 0;
		return 0;
	}
	return 0;
}

static __always_inline int has_same_table(void)
{
	ordered();
	return (u64)RELOAD(CAST(struct task_struct, run.holder)->files) == run.files &&
	       (u64)RELOAD(CAST(struct files_struct, run.files)->fdt) == run.fdt;
}

/* Takes the table that the process has now: a larger copy of the last one, or that of another thread. */
static __always_inline void take_table(struct files_process *p)
{
	/* after an exit there is no table, and nothing is left to read */
	find_table();
	if (++run.tries <= WORD_TRIES)
		return;
	p->state |= FILES_CHANGED;
	run.at += 64;
	run.tries = 0;
}

/* Goes on with a process in another run. */
static __always_inline void continue_table(void)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	u64 holder = run.holder, start = run.holder_start;

	if (!p)
		return;
	/* only of the leader it is known that it still exists, and that it has its threads */
	find_holder();
	if (run.holder == holder && run.holder_start == start && has_same_table())
		return;
	if (run.begun)
		drop_word(p);
	take_table(p);
}

/* Ends a word: it counts, or is read again. */
int end_word(void);
__noinline int end_word(void)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	int is_same, is_proven;

	if (!p)
		return 0;
	is_same = has_same_table();
	is_proven = run.is_timed || (CAST(struct files_struct, run.files)->count.counter == 1 &&
				     switches_of(run.holder) == run.switches);
	run.begun = 0;
	if (is_same && is_proven) {
		run.at += 64;
		run.tries = 0;
		return 0;
	}
	drop_word(p);
	if (is_same)
		run.tries++;
	else
		take_table(p);
	return 0;
}

/* Counts the open descriptors of a word, as the kernel counts them for everybody (proc_readfd_count() of fs/proc/fd.c). */
static __always_inline void count_open(void)
{
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	u64 word = WORD(run.open + run.at / 8);
	u32 open = __builtin_popcountll(VALUE(word));

	if (!p)
		return;
	if (has_same_table()) {
		p->open += open;
		run.at += 64;
		return;
	}
	find_table();
	p->open = run.at = 0;
	if (++run.tries > WORD_TRIES) {
		p->state |= FILES_UNCOUNTED;
		run.at = run.max;
	}
}

/* Records the current directory, the root directory and the program. The kernel frees fs and mm without RCU. */
int read_others(void);
__noinline int read_others(void)
{
	struct task_struct *t = CAST(struct task_struct, run.task);
	u32 owner = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &owner);
	u32 records = run.records, text = run.text, text_at = run.text_at, own;
	u64 fs = (u64)RELOAD(t->fs), mm = (u64)RELOAD(t->mm), program;
	struct fs_struct *f = CAST(struct fs_struct, fs);

	if (!p)
		return 0;
	own = p->records;
	if (fs) {
		u64 dentry = (u64)RELOAD(f->pwd.dentry), mount = (u64)RELOAD(f->pwd.mnt);
		u64 root = (u64)RELOAD(f->root.dentry), root_mount = (u64)RELOAD(f->root.mnt);

		read_held(VALUE(dentry), VALUE(mount), FILES_CWD);
		read_held(VALUE(root), VALUE(root_mount), FILES_ROOT);
		ordered();
		if ((u64)RELOAD(f->pwd.dentry) != dentry || (u64)RELOAD(f->pwd.mnt) != mount ||
		    (u64)RELOAD(f->root.dentry) != root || (u64)RELOAD(f->root.mnt) != root_mount ||
		    (u64)RELOAD(t->fs) != fs)
			goto changed;
	}
	program = (u64)RELOAD(CAST(struct mm_struct, mm)->exe_file);
	if (mm && program) {
		struct file *exe = CAST(struct file, program);
		u64 dentry = (u64)RELOAD(exe->f_path.dentry), mount = (u64)RELOAD(exe->f_path.mnt);

		read_held(VALUE(dentry), VALUE(mount), FILES_PROGRAM);
		ordered();
		if ((u64)RELOAD(exe->f_path.dentry) != dentry || (u64)RELOAD(exe->f_path.mnt) != mount ||
		    (u64)RELOAD(CAST(struct mm_struct, mm)->exe_file) != program || (u64)RELOAD(t->mm) != mm)
			goto changed;
	}
	return 0;
changed:
	run.records = records;
	run.text = text;
	run.text_at = text_at;
	p->records = own;
	if (++run.tries <= WORD_TRIES)
		return 1;
	p->state |= FILES_CHANGED;
	return 0;
}

#define TOUCH(member)                              \
	do {                                       \
		u64 touched = (u64)RELOAD(member); \
		asm volatile("" : : "r"(touched)); \
	} while (0)

/*
 * Fetches the lines of the next files: see ahead.h. The first line of a file is needed to find its inode, so the file
 * after the next one is fetched, and the inode of the next one.
 */
static __always_inline void touch_ahead(u64 word)
{
	u64 first = run.ahead, file;

	if (first) {
		u64 inode = (u64)CAST(struct file, first)->f_inode;
		struct inode *i = CAST(struct inode, inode);

		TOUCH(i->i_mode);
		TOUCH(i->i_ino);
		if (WANTED(FILES_SOCKETS)) {
			/* a socket lies before its inode */
			TOUCH(CAST(struct socket, socket_of(inode))->sk);
		}
	}
	run.ahead = 0;
	word &= word - 1;
	if (!word)
		return;
	file = WORD(run.fd + 8 * (u64)(run.at + lowest(word)));
	run.ahead = file;
	TOUCH(CAST(struct file, file)->f_inode);
	if (WANTED(FILES_FILES))
		TOUCH(CAST(struct file, file)->f_pos);
}

/* Reads the next descriptor, or begins or ends a word. */
static __always_inline int step_table(void)
{
	if (run.at >= run.max) {
		/* a kernel thread has no program, and its folders are those of all of them */
		run.inside = WANTED(FILES_FILES) && !run.only_counts && read_others();
		if (!run.inside)
			prove_rights();
		return out_of_time(1);
	}
	if (run.only_counts) {
		count_open();
	} else if (!run.begun) {
		begin_word();
	} else if (run.word && !WANTED(FILES_FILES | FILES_SOCKETS | FILES_GPUS) && !run.tries) {
		count_word(run.fd + 8 * (u64)run.at, run.word);
		return out_of_time(UNITS);
	} else if (run.word) {
		for (u32 i = 0; i < UNITS / UNITS_OF_RECORD && run.word && run.units < UNITS; i++) {
			u32 bit = lowest(run.word);

			run.units += UNITS_OF_RECORD;
			run.word &= run.word - 1;
			if (run.word)
				touch_ahead(run.word);
			read_descriptor(run.fd + 8 * (u64)(run.at + bit), run.at + bit, run.cloexec_word >> (bit & 63) & 1);
		}
	} else {
		end_word();
	}
	return out_of_time(1);
}

#endif
