/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a task to its record. Included by the two programs that walk the tasks; each says how a pointer without a
 * type is read (FIELD): by bpf_rdonly_cast(), or by bpf_probe_read_kernel() where the kernel has no cast; and whether
 * a task that does not run has a wait channel (WAITS).
 *
 * Functions with inner loops are global (not static, not inlined): the verifier then checks each once instead of
 * once for every path that leads to it, and loading takes a tenth of a second instead of several. A kernel pointer
 * cannot be passed to a global function, so the task travels through run.task.
 */
#ifndef FASTPROC_COLLECT_H
#define FASTPROC_COLLECT_H

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The library sets the real sizes before it loads the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_record);
} records SEC(".maps");

/* The few bits of every record that the library looks at each time, side by side. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} index_of_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	/* without types: the library makes the value as large as the pool, and the kernel compares sizes with types */
	__uint(key_size, 4);
	__uint(value_size, 8);
} pool SEC(".maps");

/* Byte distance from a per-CPU cookie to the memory of each CPU whose part of rss counts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} cpu_offsets SEC(".maps");

const volatile struct fp_settings settings;
struct fp_run run SEC(".data.run");

#define WANTED(group) (settings.groups & (group))
/* A load that the compiler may neither merge with another nor move. */
#define RELOAD(x) (*(volatile typeof(x) *)&(x))
#define ARRAY_OF_ACTIONS 64
#define MAX_ACTION_WORDS 8
#define MAX_GROUPS 4096
#define MAX_LEVEL 32

/* The largest single take from the pool; max_pool is never below it. */
#define POOL_SLACK (MAX_GROUPS / 2)

/* Room for n words, n <= POOL_SLACK. 0: none, and the record is torn. */
static __always_inline u32 pool_take(struct fp_record *r, u32 n)
{
	u32 at = run.pool;

	if (!at)
		at = 1;
	if (at > settings.max_pool - POOL_SLACK || n > POOL_SLACK) {
		run.lost_pool += n;
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	run.pool = at + n;
	return at;
}

static __always_inline u64 *pool_at(u32 at)
{
	u32 zero = 0;
	u64 *words = bpf_map_lookup_elem(&pool, &zero);

	/* The bound is the compiler's to forget and the verifier's to want: keep it next to the use. */
	asm volatile("" : "+r"(at));
	if (!words || at > settings.max_pool - POOL_SLACK)
		return 0;
	return words + at;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} anchor SEC(".maps");

/*
 * Where each CPU keeps its part of a per-CPU object, without symbols: the address of our own per-CPU map element
 * on that CPU, less the cookie the map keeps for it. Run once, by the library, for all possible CPUs.
 */
SEC("syscall") int find_cpu_offsets(void *ctx)
{
	volatile u64 *slot = &run.task;
	u64 cookie = 0;

	/* through memory, here and below: no arithmetic is allowed on a map pointer, and none of two pointers */
	*slot = (u64)&anchor;
	bpf_probe_read_kernel(&cookie, sizeof(cookie), (void *)(*slot + bpf_core_field_offset(struct bpf_array, pptrs)));
	for (u32 i = 0; i < settings.max_cpus; i++) {
		u32 zero = 0, key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);
		void *element = bpf_map_lookup_percpu_elem(&anchor, &zero, i);

		if (!offset || !element)
			continue;
		*slot = (u64)element;
		*offset = *slot - cookie;
	}
	return 0;
}

/* The task state as __task_state_index() folds it; the library takes the highest bit. */
static __always_inline u32 report_state(u32 state, u32 exit_state)
{
	u32 report = (state | exit_state) & TASK_REPORT;

	if ((state & TASK_IDLE) == TASK_IDLE)
		report = TASK_REPORT_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		report = TASK_UNINTERRUPTIBLE;
	return report;
}

static __always_inline u32 state_of(struct task_struct *t)
{
	struct task_struct___5_13 *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return old->state;
}

static __always_inline u32 cpu_of(struct task_struct *t)
{
	struct task_struct___5_15 *old = (void *)t;

	if (bpf_core_field_exists(t->thread_info.cpu))
		return t->thread_info.cpu;
	return old->cpu;
}

static __always_inline u32 pid_nr(struct pid *p)
{
	return p ? p->numbers[0].nr : 0;
}

/* 1 unless v is 0, without a branch: every branch doubles the paths that the verifier follows. */
static __always_inline u64 nonzero(u64 v)
{
	u64 negative = -v;

	asm volatile("" : "+r"(negative));
	v |= negative;
	asm volatile("" : "+r"(v));
	return v >> 63;
}

/* Which signals are ignored or caught. 2 KiB a process: the largest single cost of a full record. */
u64 actions[ARRAY_OF_ACTIONS * MAX_ACTION_WORDS];

int collect_actions(u32 index);
__noinline int collect_actions(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct sighand_struct *sighand;
	u32 size = bpf_core_type_size(struct k_sigaction), words = size / 8;
	u64 ignored = 0, caught = 0;

	if (!r || words > MAX_ACTION_WORDS)
		return 0;
	sighand = FIELD(struct task_struct, run.task, sighand);
	if (!sighand) {
		r->signals.ignored = r->signals.caught = 0;
		return 0;
	}
	bpf_probe_read_kernel(actions, ARRAY_OF_ACTIONS * size,
			      (void *)sighand + bpf_core_field_offset(struct sighand_struct, action));
	/* Most actions are SIG_DFL, a zero: look at eight at a time, and closer only where one is not. */
	for (u32 base = 0; base < ARRAY_OF_ACTIONS; base += 8) {
		u64 any = 0;

		for (u32 i = 0; i < 8; i++)
			any |= actions[(base + i) * words];
		if (!any)
			continue;
		for (u32 i = 0; i < 8; i++) {
			u64 handler = actions[(base + i) * words];
			u64 set = nonzero(handler), caught_or_default = nonzero(handler ^ 1 /* SIG_IGN */);

			ignored |= (caught_or_default ^ 1) << (base + i);
			caught |= (set & caught_or_default) << (base + i);
		}
	}
	if (FIELD(struct task_struct, run.task, sighand) != sighand)
		r->identity.torn |= FP_TORN_SIGHAND;
	r->signals.ignored = ignored;
	r->signals.caught = caught;
	return 0;
}

/*
 * The exact resident set: count plus what every CPU has not yet folded in. percpu_counter_init_many() lays the
 * four counters of a process side by side, so a CPU's four parts are 16 adjacent bytes.
 */
s64 rss_sum[4];

int collect_rss(u64 counters);
__noinline int collect_rss(u64 counters)
{
	s64 file = 0, anon = 0, swap = 0, shmem = 0;

	for (u32 i = 0; i < settings.max_cpus && i < run.cpus; i++) {
		u32 key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);
		u64 part;

		if (!offset)
			continue;
		part = counters + *offset;
		file += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_FILEPAGES]);
		anon += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_ANONPAGES]);
		swap += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_SWAPENTS]);
		shmem += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_SHMEMPAGES]);
	}
	rss_sum[MM_FILEPAGES] = file;
	rss_sum[MM_ANONPAGES] = anon;
	rss_sum[MM_SWAPENTS] = swap;
	rss_sum[MM_SHMEMPAGES] = shmem;
	return 0;
}

static __always_inline u64 positive(s64 v)
{
	return v > 0 ? v : 0;
}

static __always_inline void collect_rss_counters(struct mm_struct *mm, struct fp_memory *m)
{
	struct mm_struct___6_1 *old = (void *)mm;
	s64 file = 0, anon = 0, swap = 0, shmem = 0;
	u32 shift = settings.page_shift;

	if (bpf_core_field_exists(mm->rss_stat[0].count)) {
		file = mm->rss_stat[MM_FILEPAGES].count;
		anon = mm->rss_stat[MM_ANONPAGES].count;
		swap = mm->rss_stat[MM_SWAPENTS].count;
		shmem = mm->rss_stat[MM_SHMEMPAGES].count;
	} else if (bpf_core_field_exists(old->rss_stat.count)) {
		file = BPF_CORE_READ(old, rss_stat.count[MM_FILEPAGES].counter);
		anon = BPF_CORE_READ(old, rss_stat.count[MM_ANONPAGES].counter);
		swap = BPF_CORE_READ(old, rss_stat.count[MM_SWAPENTS].counter);
		shmem = BPF_CORE_READ(old, rss_stat.count[MM_SHMEMPAGES].counter);
	}
	m->rss_approx = (positive(file) + positive(anon) + positive(shmem)) << shift;
	if (bpf_core_field_exists(mm->rss_stat[0].count) && run.cpus) {
		volatile u64 *slot = &run.task;
		u64 task = *slot;

		/* through memory: a kernel pointer may not be handed to a global function, its value may */
		*slot = (u64)mm->rss_stat[0].counters;
		collect_rss(*slot);
		*slot = task;
		file += rss_sum[MM_FILEPAGES];
		anon += rss_sum[MM_ANONPAGES];
		swap += rss_sum[MM_SWAPENTS];
		shmem += rss_sum[MM_SHMEMPAGES];
	}
	m->rss_file = positive(file) << shift;
	m->rss_anon = positive(anon) << shift;
	m->swap = positive(swap) << shift;
	m->rss_shmem = positive(shmem) << shift;
}

static __always_inline void collect_memory(struct mm_struct *mm, struct fp_memory *m)
{
	u32 shift = settings.page_shift;
	u64 page = 1ULL << shift;
	u64 total = mm->total_vm << shift, peak = mm->hiwater_vm << shift, exec = mm->exec_vm << shift;
	u64 text = ((mm->end_code + page - 1) & -page) - (mm->start_code & -page);
	u64 rss, hiwater;

	collect_rss_counters(mm, m);
	rss = m->rss_anon + m->rss_file + m->rss_shmem;
	hiwater = mm->hiwater_rss << shift;
	m->vsize = total;
	m->peak_vsize = peak > total ? peak : total;
	m->peak_rss = hiwater > rss ? hiwater : rss;
	m->locked = mm->locked_vm << shift;
	m->pinned = mm->pinned_vm.counter << shift;
	m->data = mm->data_vm << shift;
	m->stack = mm->stack_vm << shift;
	m->text = text;
	m->exe = text < exec ? text : exec;
	m->lib = exec - m->exe;
}

static __always_inline void collect_memory_details(struct mm_struct *mm, struct fp_memory_details *m)
{
	struct mm_struct___6_1 *old = (void *)mm;
	u32 shift = settings.page_shift;

	m->page_tables = mm->pgtables_bytes.counter;
	m->hugetlb = 0;
	if (bpf_core_field_exists(mm->hugetlb_usage))
		m->hugetlb = (u64)mm->hugetlb_usage.counter << shift;
	if (bpf_core_field_exists(mm->flags.__mm_flags))
		m->mm_flags = mm->flags.__mm_flags[0];
	else
		m->mm_flags = old->flags;
	m->untag_mask = ~0ULL;
	if (bpf_core_field_exists(mm->context.untag_mask))
		m->untag_mask = mm->context.untag_mask;
}

static __always_inline void collect_layout(struct mm_struct *mm, struct fp_layout *l)
{
	l->start_code = mm->start_code;
	l->end_code = mm->end_code;
	l->start_stack = mm->start_stack;
	l->kstkesp = l->kstkeip = 0;
	l->start_data = mm->start_data;
	l->end_data = mm->end_data;
	l->start_brk = mm->start_brk;
	l->arg_start = mm->arg_start;
	l->arg_end = mm->arg_end;
	l->env_start = mm->env_start;
	l->env_end = mm->env_end;
}

static __always_inline void collect_mm(struct task_struct *t, struct fp_record *r, u32 flags)
{
	/* A kernel thread may borrow a user's mm (kthread_use_mm); get_task_mm() does not count it. */
	struct mm_struct *mm = flags & PF_KTHREAD ? 0 : RELOAD(t->mm);

	if (!mm) {
		r->identity.has_mm = 0;
		if (WANTED(FP_MEMORY))
			__builtin_memset(&r->memory, 0, sizeof(r->memory));
		if (WANTED(FP_MEMORY_DETAILS))
			__builtin_memset(&r->memory_details, 0, sizeof(r->memory_details));
		if (WANTED(FP_LAYOUT))
			__builtin_memset(&r->layout, 0, sizeof(r->layout));
		return;
	}
	r->identity.has_mm = 1;
	if (WANTED(FP_MEMORY))
		collect_memory(mm, &r->memory);
	if (WANTED(FP_MEMORY_DETAILS))
		collect_memory_details(mm, &r->memory_details);
	if (WANTED(FP_LAYOUT))
		collect_layout(mm, &r->layout);
	/*
	 * An mm is not freed by RCU: if it was replaced meanwhile, what was read may be of a freed one. And where
	 * the user registers of a dying task lie depends on the architecture: such a record comes from /proc.
	 */
	if (RELOAD(t->mm) != mm ||
	    (WANTED(FP_LAYOUT) && (flags & (PF_EXITING | PF_DUMPCORE | PF_POSTCOREDUMP))))
		r->identity.torn |= FP_TORN_MM;
}

int collect_groups(u32 index);
__noinline int collect_groups(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	const struct cred *cred;
	struct group_info *info;
	u32 n, at;
	u64 *words;

	if (!r)
		return 0;
	n = r->credentials.ngroups;
	if (n > MAX_GROUPS) {
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	at = pool_take(r, (n + 1) / 2);
	words = pool_at(at);
	if (!at || !words)
		return 0;
	cred = FIELD(struct task_struct, run.task, real_cred);
	info = FIELD(struct cred, cred, group_info);
	bpf_probe_read_kernel(words, n * 4, (void *)info + bpf_core_field_offset(struct group_info, gid));
	r->credentials.groups_at = at;
	return 0;
}

static __always_inline void collect_credentials(struct task_struct *t, struct fp_record *r, u32 index)
{
	/* the objective credentials, as __task_cred() takes them: not what the task may be acting as */
	const struct cred *cred = t->real_cred;
	struct cred___6_2 *old = (void *)cred;
	struct task_struct___6_6 *shadowed = (void *)t;
	struct fp_credentials *c = &r->credentials;
	struct fs_struct *fs;

	c->uid = cred->uid.val;
	c->euid = cred->euid.val;
	c->suid = cred->suid.val;
	c->fsuid = cred->fsuid.val;
	c->gid = cred->gid.val;
	c->egid = cred->egid.val;
	c->sgid = cred->sgid.val;
	c->fsgid = cred->fsgid.val;
	if (bpf_core_field_exists(cred->cap_inheritable.val)) {
		c->cap_inheritable = cred->cap_inheritable.val;
		c->cap_permitted = cred->cap_permitted.val;
		c->cap_effective = cred->cap_effective.val;
		c->cap_bounding = cred->cap_bset.val;
		c->cap_ambient = cred->cap_ambient.val;
	} else {
		bpf_core_read(&c->cap_inheritable, 8, &old->cap_inheritable);
		bpf_core_read(&c->cap_permitted, 8, &old->cap_permitted);
		bpf_core_read(&c->cap_effective, 8, &old->cap_effective);
		bpf_core_read(&c->cap_bounding, 8, &old->cap_bset);
		bpf_core_read(&c->cap_ambient, 8, &old->cap_ambient);
	}
	c->atomic_flags = t->atomic_flags;
	c->user_ns = 0;
	if (bpf_core_field_exists(cred->user_ns))
		c->user_ns = cred->user_ns->ns.inum;
	c->seccomp_mode = c->seccomp_filters = 0;
	if (bpf_core_field_exists(t->seccomp.mode))
		c->seccomp_mode = t->seccomp.mode;
	if (bpf_core_field_exists(t->seccomp.filter_count))
		c->seccomp_filters = t->seccomp.filter_count.counter;
	c->thread_features = c->thread_features_locked = 0;
	if (bpf_core_field_exists(shadowed->thread.features) && bpf_core_field_exists(shadowed->thread.features_locked)) {
		c->thread_features = shadowed->thread.features;
		c->thread_features_locked = shadowed->thread.features_locked;
	}
	c->umask = -1;
	fs = RELOAD(t->fs);
	if (fs) {
		c->umask = fs->umask;
		if (RELOAD(t->fs) != fs)
			r->identity.torn |= FP_TORN_FS;
	}
	c->groups_at = 0;
	c->ngroups = cred->group_info->ngroups;
	if (c->ngroups)
		collect_groups(index);
}

/* How many signals the user has queued: a counter of the user, not of the process. */
static __always_inline u64 queued_signals(struct task_struct *t)
{
	const struct cred *cred = t->real_cred;
	struct cred___5_13 *old = (void *)cred;
	u64 index, at, queued = 0;

	if (!bpf_core_field_exists(cred->ucounts))
		return old->user->sigpending.counter;
	if (bpf_core_field_exists(cred->ucounts->rlimit)) {
		index = bpf_core_enum_value(enum rlimit_type, UCOUNT_RLIMIT_SIGPENDING);
		if (index == UCOUNT_RLIMIT_SIGPENDING)
			return FIELD(struct ucounts, cred->ucounts, rlimit[UCOUNT_RLIMIT_SIGPENDING].counter);
		at = bpf_core_field_offset(struct ucounts, rlimit);
	} else {
		index = bpf_core_enum_value(enum ucount_type___6_0, UCOUNT_RLIMIT_SIGPENDING___6_0);
		at = bpf_core_field_offset(struct ucounts___6_0, ucount);
	}
	bpf_probe_read_kernel(&queued, sizeof(queued), (void *)cred->ucounts + at + 8 * index);
	return queued;
}

/*
 * Signal actions belong to the task that runs: only sigaction(2), execve(2) and a caught one-shot signal change
 * them, all of them in the task itself. So a lone task that has not been on a CPU since they were read still has
 * them. Every run ends in a counted switch before on_cpu falls to zero; hence on_cpu is looked at first.
 */
static __always_inline u64 resting_switches(struct task_struct *t)
{
	if (!bpf_core_field_exists(t->on_cpu))
		return ~0ULL;
	if (RELOAD(t->on_cpu) || t->signal->nr_threads != 1 || !t->sighand || t->sighand->count.refs.counter != 1)
		return ~0ULL;
	return RELOAD(t->nvcsw) + RELOAD(t->nivcsw);
}

/* Takes the actions over from the run before, where they still hold. Returns whether it did. */
int reuse_actions(u32 index, u64 switches);
__noinline int reuse_actions(u32 index, u64 switches)
{
	u32 at = run.old_at;
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct fp_record *old = bpf_map_lookup_elem(&records, &at);

	if (!run.has_old || switches == ~0ULL || !r || !old || old->signals.switches != switches)
		return 0;
	r->signals.ignored = old->signals.ignored;
	r->signals.caught = old->signals.caught;
	run.reused_actions++;
	return 1;
}

static __always_inline void collect_signals(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct signal_struct *signal = t->signal;
	struct fp_signals *s = &r->signals;
	u64 switches = resting_switches(t);

	s->pending = t->pending.signal.sig[0];
	s->shared_pending = signal->shared_pending.signal.sig[0];
	s->blocked = t->blocked.sig[0];
	s->queued = queued_signals(t);
	s->queue_limit = signal->rlim[RLIMIT_SIGPENDING].rlim_cur;
	if (!reuse_actions(index, switches))
		collect_actions(index);
	s->switches = switches;
}

static __always_inline u32 nr_at_level(u64 pid, u32 level, u64 ns)
{
	u64 at;

	if (!pid || FIELD(struct pid, pid, level) < level)
		return 0;
	at = pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	if ((u64)FIELD(struct upid, at, ns) != ns)
		return 0;
	return FIELD(struct upid, at, nr);
}

int collect_nested_ids(u32 index);
__noinline int collect_nested_ids(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct signal_struct *signal;
	u64 own, tgid, pgrp, session;
	u32 level, at;
	u64 *words;

	if (!r)
		return 0;
	level = r->namespaces.level;
	if (level > MAX_LEVEL) {
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	at = pool_take(r, 2 * level);
	words = pool_at(at);
	if (!at || !words)
		return 0;
	own = (u64)FIELD(struct task_struct, run.task, thread_pid);
	signal = FIELD(struct task_struct, run.task, signal);
	tgid = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_TGID]);
	pgrp = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_PGID]);
	session = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_SID]);
	for (u32 i = 0; i < MAX_LEVEL; i++) {
		u64 entry, ns;

		if (i >= level)
			break;
		entry = own + bpf_core_field_offset(struct pid, numbers) + (i + 1) * bpf_core_type_size(struct upid);
		ns = (u64)FIELD(struct upid, entry, ns);
		words[2 * i] = nr_at_level(tgid, i + 1, ns) | (u64)(u32)FIELD(struct upid, entry, nr) << 32;
		words[2 * i + 1] = nr_at_level(pgrp, i + 1, ns) | (u64)nr_at_level(session, i + 1, ns) << 32;
	}
	r->namespaces.ids_at = at;
	return 0;
}

/* The bitmaps of a machine with more than 64 CPUs or memory nodes. */
int collect_masks(u32 index);
__noinline int collect_masks(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	u64 *words;
	u32 at;

	if (!r)
		return 0;
	if (settings.cpu_words > 1 && settings.cpu_words <= POOL_SLACK) {
		at = pool_take(r, settings.cpu_words);
		words = pool_at(at);
		if (!at || !words)
			return 0;
		bpf_probe_read_kernel(words, settings.cpu_words * 8,
				      (void *)run.task + bpf_core_field_offset(struct task_struct, cpus_mask));
		r->scheduling.cpus_at = at;
	}
	if (settings.mem_words > 1 && settings.mem_words <= POOL_SLACK) {
		at = pool_take(r, settings.mem_words);
		words = pool_at(at);
		if (!at || !words)
			return 0;
		bpf_probe_read_kernel(words, settings.mem_words * 8,
				      (void *)run.task + bpf_core_field_offset(struct task_struct, mems_allowed));
		r->scheduling.mems_at = at;
	}
	return 0;
}

static __always_inline void collect_scheduling(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct fp_scheduling *s = &r->scheduling;
	struct task_delay_info *delays;
	struct numa_group *group = 0;

	s->priority = t->prio - 100; /* MAX_RT_PRIO */
	s->nice = t->static_prio - 120;
	s->rt_priority = t->rt_priority;
	s->policy = t->policy;
	s->processor = cpu_of(t);
	s->ngid = 0;
	if (bpf_core_field_exists(t->numa_group)) {
		group = t->numa_group;
		if (group)
			s->ngid = group->gid;
	}
	s->blkio_ns = 0;
	if (bpf_core_field_exists(t->delays)) {
		delays = t->delays;
		if (delays) {
			s->blkio_ns = delays->blkio_delay;
			/* where swapping in has no clock of its own yet, it counts as block I/O */
			if (!bpf_core_field_exists(delays->swapin_start))
				s->blkio_ns += delays->swapin_delay;
		}
	}
	s->cpus_at = s->mems_at = 0;
	s->cpus_allowed = t->cpus_mask.bits[0];
	s->mems_allowed = 1;
	if (bpf_core_field_exists(t->mems_allowed))
		s->mems_allowed = t->mems_allowed.bits[0];
	if (settings.cpu_words > 1 || settings.mem_words > 1)
		collect_masks(index);
}

static __always_inline void *kthread_of(struct task_struct *t)
{
	struct task_struct___5_16 *old = (void *)t;

	if (bpf_core_field_exists(t->worker_private))
		return t->worker_private;
	return old->set_child_tid;
}

/* A kernel thread's name is longer than comm: its full name, or for a workqueue worker what it works on. */
static __always_inline void collect_name(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct fp_name *n = &r->name;
	u32 flags = r->identity.flags;
	void *kthread;
	const char *full;

	kthread = kthread_of(t);
	if (!kthread)
		return;
	if (flags & PF_WQ_WORKER) {
		void *worker = FIELD(struct kthread, kthread, data);
		void *pool = FIELD(struct worker, worker, pool);
		void *rescued = FIELD(struct worker, worker, rescue_wq);
		u32 worker_flags = 0;

		n->worker_id = FIELD(struct worker, worker, id);
		if (pool) {
			void *attrs = FIELD(struct worker_pool, pool, attrs);

			worker_flags |= FP_WORKER_POOL;
			n->pool_id = FIELD(struct worker_pool, pool, id);
			n->pool_cpu = FIELD(struct worker_pool, pool, cpu);
			if (FIELD(struct workqueue_attrs, attrs, nice) < 0)
				worker_flags |= FP_WORKER_HIGH;
		}
		if (FIELD(struct worker, worker, current_work))
			worker_flags |= FP_WORKER_BUSY;
		n->text[32] = 0;
		if (rescued) {
			worker_flags |= FP_WORKER_RESCUER;
			bpf_probe_read_kernel_str(n->text + 32, 32,
						  rescued + bpf_core_field_offset(struct workqueue_struct, name));
		}
		n->text[0] = 0;
		bpf_probe_read_kernel_str(n->text, 32, worker + bpf_core_field_offset(struct worker, desc));
		n->worker_flags = worker_flags;
		n->kind = FP_NAME_WORKER;
		return;
	}
	if (!bpf_core_field_exists(((struct kthread *)0)->full_name))
		return;
	full = FIELD(struct kthread, kthread, full_name);
	if (full && bpf_probe_read_kernel_str(n->text, sizeof(n->text), full) > 0)
		n->kind = FP_NAME_FULL;
}

static __always_inline void collect_tty(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct signal_struct *signal = t->signal;
	struct tty_struct *tty = RELOAD(signal->tty);
	struct tty_struct___5_15 *old = (void *)tty;
	struct fp_identity *id = &r->identity;
	u32 minor, major;

	if (!tty)
		return;
	minor = tty->driver->minor_start + tty->index;
	major = tty->driver->major;

	/* new_encode_dev() */
	id->tty_nr = (minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12);
	if (bpf_core_field_exists(tty->ctrl.pgrp))
		id->tpgid = pid_nr(tty->ctrl.pgrp);
	else
		id->tpgid = pid_nr(old->pgrp);
	if (RELOAD(signal->tty) != tty)
		id->torn |= FP_TORN_TTY;
}

static __always_inline u8 dumps_core(struct task_struct *t, struct signal_struct *signal)
{
	struct mm_struct___5_15 *old;

	if (bpf_core_field_exists(signal->core_state))
		return signal->core_state != 0;
	old = (void *)RELOAD(t->mm);
	return old && old->core_state;
}

/*
 * do_task_stat() prints the group's exit code since the series of changes (5.17) that also gave kernel threads
 * worker_private; before it is the leader's own.
 */
static __always_inline int shows_group_exit_code(struct task_struct *t)
{
	return bpf_core_field_exists(t->worker_private);
}

static __always_inline void collect_identity(struct task_struct *t, struct fp_record *r, u32 flags)
{
	struct signal_struct *signal = t->signal;
	struct fp_identity *id = &r->identity;
	u32 state = state_of(t), signal_flags = signal->flags;

	id->start_ns = t->start_boottime;
	id->tgid = t->tgid;
	id->ppid = t->real_parent->tgid;
	id->pgrp = pid_nr(signal->pids[PIDTYPE_PGID]);
	id->session = pid_nr(signal->pids[PIDTYPE_SID]);
	id->tracer_pid = 0;
	if (t->ptrace)
		id->tracer_pid = t->parent->pid;
	id->flags = flags;
	id->num_threads = signal->nr_threads;
	id->exit_signal = t->exit_signal;
	id->exit_code = t->exit_code;
	if (shows_group_exit_code(t) && signal_flags & (SIGNAL_GROUP_EXIT | SIGNAL_STOP_STOPPED))
		id->exit_code = signal->group_exit_code;
	id->state_bits = report_state(state, t->exit_state);
	id->core_dumping = dumps_core(t, signal);
	id->masked = 0;
	id->torn = 0;
	id->wchan = id->num_threads < 2 && state && WAITS(t, id);
	id->groups = settings.groups;
	id->seen_threads = 1;
	id->tty_nr = 0;
	id->tpgid = -1;
	__builtin_memcpy(id->comm, t->comm, sizeof(id->comm));
}

static __always_inline void collect_cpu(struct task_struct *t, struct fp_cpu *c)
{
	struct signal_struct *signal = t->signal;

	/* dead threads have left their share in the signal struct; living ones are folded in as the walk meets them */
	c->sampled_utime_ns = signal->utime + t->utime;
	c->sampled_stime_ns = signal->stime + t->stime;
	c->sum_exec_ns = signal->sum_sched_runtime + t->se.sum_exec_runtime;
	c->gtime_ns = signal->gtime + t->gtime;
	c->minflt = signal->min_flt + t->min_flt;
	c->majflt = signal->maj_flt + t->maj_flt;
	c->prev_utime_ns = signal->prev_cputime.utime;
	c->prev_stime_ns = signal->prev_cputime.stime;
	c->cutime_ns = signal->cutime;
	c->cstime_ns = signal->cstime;
	c->cgtime_ns = signal->cgtime;
	c->cminflt = signal->cmin_flt;
	c->cmajflt = signal->cmaj_flt;
	c->nvcsw = t->nvcsw;
	c->nivcsw = t->nivcsw;
}

static __always_inline void fold_cpu(struct task_struct *t, struct fp_cpu *c)
{
	c->sampled_utime_ns += t->utime;
	c->sampled_stime_ns += t->stime;
	c->sum_exec_ns += t->se.sum_exec_runtime;
	c->gtime_ns += t->gtime;
	c->minflt += t->min_flt;
	c->majflt += t->maj_flt;
}

#define IO_SET(to, op, from)                                          \
	do {                                                          \
		(to)->rchar op(from).rchar;                           \
		(to)->wchar op(from).wchar;                           \
		(to)->syscr op(from).syscr;                           \
		(to)->syscw op(from).syscw;                           \
		(to)->read_bytes op(from).read_bytes;                 \
		(to)->write_bytes op(from).write_bytes;               \
		(to)->cancelled_write_bytes op(from).cancelled_write_bytes; \
	} while (0)

static __always_inline void collect_limits(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct files_struct *files = RELOAD(t->files);

	r->limits.rss_limit = t->signal->rlim[RLIMIT_RSS].rlim_cur;
	r->limits.fd_size = 0;
	if (files) {
		r->limits.fd_size = files->fdt->max_fds;
		if (RELOAD(t->files) != files)
			r->identity.torn |= FP_TORN_FILES;
	}
}

static __always_inline void collect_namespaces(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct pid *own = t->thread_pid;

	r->namespaces.ids_at = 0;
	r->namespaces.level = own ? own->level : 0;
	if (r->namespaces.level)
		collect_nested_ids(index);
}

static __always_inline void collect_io(struct task_struct *t, struct fp_record *r, u32 index)
{
	if (!bpf_core_field_exists(t->ioac))
		return;
	IO_SET(&r->io, =, t->signal->ioac);
	IO_SET(&r->io, +=, t->ioac);
}

/*
 * What a walk calls for the parts of a record that branch: PART(tty) calls collect_tty(), in line or by way of a
 * global function, as the walk has it.
 */
PART_DEFINE(tty)
PART_DEFINE(name)
PART_DEFINE(credentials)
PART_DEFINE(signals)
PART_DEFINE(namespaces)
PART_DEFINE(scheduling)
PART_DEFINE(limits)
PART_DEFINE(io)

/* The whole record of a thread group leader. */
static __always_inline void collect_leader(struct task_struct *t, struct fp_record *r, u32 index)
{
	volatile u64 *slot = &run.task;
	u32 flags = t->flags;
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	/* the record still holds the process that had this place in the run before: usually the same one */
	u64 start_ns = r->identity.start_ns, ran = r->cpu.sum_exec_ns;
	u64 shown_utime = r->cpu.prev_utime_ns, shown_stime = r->cpu.prev_stime_ns, moved;

	*slot = (u64)t;
	collect_identity(t, r, flags);
	moved = start_ns ^ r->identity.start_ns;
	r->name.kind = FP_NAME_COMM;
	if (t->signal->tty)
		PART(tty, t, r, index);
	if (flags & PF_KTHREAD)
		PART(name, t, r, index);
	if (WANTED(FP_CPU)) {
		collect_cpu(t, &r->cpu);
		moved |= (ran ^ r->cpu.sum_exec_ns) | (shown_utime ^ r->cpu.prev_utime_ns) |
			 (shown_stime ^ r->cpu.prev_stime_ns);
	}
	if (WANTED(FP_MEMORY | FP_MEMORY_DETAILS | FP_LAYOUT))
		collect_mm(t, r, flags);
	if (WANTED(FP_CREDENTIALS))
		PART(credentials, t, r, index);
	if (WANTED(FP_SIGNALS))
		PART(signals, t, r, index);
	if (WANTED(FP_NAMESPACES))
		PART(namespaces, t, r, index);
	if (WANTED(FP_SCHEDULING))
		PART(scheduling, t, r, index);
	if (WANTED(FP_LIMITS))
		PART(limits, t, r, index);
	if (WANTED(FP_IO))
		PART(io, t, r, index);
	if (WANTED(FP_CGROUP) && bpf_core_field_exists(t->cgroups))
		r->cgroup_id = t->cgroups->dfl_cgrp->kn->id;
	if (!RELOAD(t->signal->nr_threads))
		r->identity.torn |= FP_TORN_RELEASED;
	if (r->identity.torn)
		run.torn++;
	if (entry)
		*entry = r->identity.tgid | (r->identity.torn ? FP_INDEX_TORN : 0) |
			 (moved || r->identity.num_threads > 1 ? FP_INDEX_CHANGED : 0);
}

static __always_inline void collect_thread(struct task_struct *t, struct fp_thread *r)
{
	r->start_ns = t->start_boottime;
	r->utime_ns = r->stime_ns = 0;
	r->gtime_ns = t->gtime;
	r->minflt = t->min_flt;
	r->majflt = t->maj_flt;
	r->nvcsw = t->nvcsw;
	r->nivcsw = t->nivcsw;
	r->sum_exec_ns = t->se.sum_exec_runtime;
	r->sampled_utime_ns = t->utime;
	r->sampled_stime_ns = t->stime;
	r->prev_utime_ns = t->prev_cputime.utime;
	r->prev_stime_ns = t->prev_cputime.stime;
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
		IO_SET(&r->io, =, t->ioac);
	r->tid = t->pid;
	r->tgid = t->tgid;
	r->state_bits = report_state(state_of(t), t->exit_state);
	r->flags = t->flags;
	r->priority = t->prio - 100;
	r->nice = t->static_prio - 120;
	r->rt_priority = t->rt_priority;
	r->policy = t->policy;
	r->processor = cpu_of(t);
	r->reserved = 0;
	__builtin_memcpy(r->comm, t->comm, sizeof(r->comm));
}

static __always_inline void list_thread(struct task_struct *t)
{
	u32 at = run.threads;
	struct fp_thread *r = bpf_map_lookup_elem(&threads, &at);

	if (!r) {
		run.lost_threads++;
		return;
	}
	run.threads = at + 1;
	collect_thread(t, r);
}

#endif
