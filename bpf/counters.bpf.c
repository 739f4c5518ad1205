// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counters behind /proc/stat, /proc/vmstat, /proc/softirqs and /proc/interrupts, in one run.
 *
 * The library finds the addresses (by `locate`, `find_nodes`, `walk_irqs`, and kallsyms where it shows data) and writes
 * them into `places`, `blocks` and `config`; `collect` reads what lies there. Nothing here takes a lock or stays in an
 * RCU section, so every pointer may be stale: all reads are of the kind that cannot fault, every loop is bounded, and
 * what could have changed under a read is checked afterwards (seqcounts, revisions, sums), here or by the library.
 */
#include "kernel_counters.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load, by trying: typed loads (from 6.2), and helpers that read any address (not under lockdown). */
const volatile bool may_cast = true;
const volatile bool may_probe = true;
const volatile __u32 possible_cpus = 1;
const volatile __u32 row_bytes = 64; /* of `rows`: the pending numa events, then one group of counters */
const volatile __u32 arch_bytes; /* of irq_cpustat_t, at most 4 * COUNTERS_ARCH_WORDS */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, __u32);
	__type(value, struct counters_place);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters_block);
} blocks SEC(".maps");

/* __percpu pointers of the populated zones' struct per_cpu_zonestat */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} zonestats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, __u32);
	__type(value, struct counters_run);
} runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x possible CPUs */
	__type(key, __u32);
	__type(value, struct counters_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x (possible CPUs + blocks) */
	__uint(key_size, 4);
	__uint(value_size, 64); /* row_bytes */
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x max_irqs */
	__type(key, __u32);
	__type(value, struct counters_irq);
} irqs SEC(".maps");

/* indices into `irqs` of the interrupts that have moved lately */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x max_hot */
	__type(key, __u32);
	__type(value, __u64);
} hot SEC(".maps");

/* /proc/interrupts, COUNTERS_IRQ_ROWS descriptors at a time */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x COUNTERS_IRQ_ROWS */
	__uint(key_size, 4);
	__uint(value_size, 4); /* 4 x possible CPUs */
} irq_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots x COUNTERS_IRQ_ROWS */
	__type(key, __u32);
	__type(value, struct counters_irq_words);
} irq_words SEC(".maps");

/* forks since load */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} forks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters_located);
} located SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COUNTERS_MAX_NODES);
	__type(key, __u32);
	__type(value, __u64); /* struct pglist_data */
} nodes SEC(".maps");

/* where this element lies on each CPU: the library reads `__per_cpu_offset` off it */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} anchor SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, __u32);
	__type(value, __u64);
} anchors SEC(".maps");

extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

/* One member of a structure at an address that may be stale: 0 where it cannot be read. */
#define READ(type, address, member)                                                                                    \
	({                                                                                                                 \
		typeof(((type *)0)->member) read_value = 0;                                                                    \
		u64 read_address = (u64)(address);                                                                             \
		if (may_cast)                                                                                                  \
			read_value =                                                                                               \
				((type *)bpf_rdonly_cast((void *)read_address, bpf_core_type_id_kernel(type)))->member;                \
		else                                                                                                           \
			bpf_core_read(&read_value, sizeof(read_value), &((type *)read_address)->member);                           \
		read_value;                                                                                                    \
	})

/* The same, where a kernel may lack the member: the library compares with the text, and will see. */
#define READ_IF(type, address, member)                                                                                 \
	(bpf_core_field_exists(((type *)0)->member) ? READ(type, address, member) : 0)

/* Any 64-bit word. rb_node begins with one, which is all that is asked of it here. */
static __always_inline u64 word(u64 address)
{
	u64 value = 0;

	if (may_cast)
		return ((struct rb_node *)bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct rb_node)))
			->__rb_parent_color;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* A pointer, as a number: the verifier would go on checking a typed one against the type it came from. */
#define POINTER(type, address, member)                                                                                 \
	(bpf_core_field_exists(((type *)0)->member)                                                                        \
		 ? word((u64)(address) + bpf_core_field_offset(((type *)0)->member))                                           \
		 : 0)

/* Any 32-bit word, by a structure that is one. */
static __always_inline u32 half(u64 address)
{
	u32 value = 0;

	if (may_cast)
		return ((struct seqcount *)bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct seqcount)))
			->sequence;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* `bytes` is a constant to the verifier, or bounded by one. */
static __always_inline int copy(void *to, u64 from, u32 bytes)
{
	if (may_probe)
		return bpf_probe_read_kernel(to, bytes, (void *)from) != 0;
	for (u32 i = 0; i < bytes / 8; i++)
		((u64 *)to)[i] = word(from + 8 * i);
	return 0;
}

/* "kswapd", as the first bytes of task_struct.comm */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KSWAPD(word) (((word) & 0xffffffffffffULL) == 0x64706177736bULL)
#else
#define KSWAPD(word) ((word) >> 16 == 0x6b7377617064ULL)
#endif

/* ---- once, and after a change: where things are ---- */

static long anchor_of(u32 cpu, void *unused)
{
	u32 zero = 0;
	u64 *to = bpf_map_lookup_elem(&anchors, &cpu);
	void *element = bpf_map_lookup_percpu_elem(&anchor, &zero, cpu);

	if (!to)
		return 1;
	*to = (u64)element;
	return 0;
}

/*
 * The structural route: this CPU's run queue is reachable from the running task, and every other per-CPU variable lies
 * where BTF says relative to it. The nodes of /sys/kernel/irq are reachable from a file descriptor of the caller, and
 * each is embedded in its interrupt's descriptor.
 */
SEC("syscall")
int locate(void *unused)
{
	u32 zero = 0;
	struct counters_located *to = bpf_map_lookup_elem(&located, &zero);
	u64 task = (u64)bpf_get_current_task();
	u64 map, queue, files, table, file, inode;
	s32 fd;

	if (!to)
		return 1;
	bpf_loop(possible_cpus, anchor_of, 0, 0);
	/* through memory, for the verifier knows a map too well to let it be looked into */
	*(volatile u64 *)&to->percpu_pointer = (u64)&anchor;
	map = *(volatile u64 *)&to->percpu_pointer;
	to->percpu_pointer = word(map + bpf_core_field_offset(struct bpf_array, pptrs));

	queue = POINTER(struct task_struct, task, se.cfs_rq);
	queue = queue ? POINTER(struct cfs_rq, queue, rq) : 0;
	to->rq = queue;
	to->rq_cpu = queue ? READ_IF(struct rq, queue, cpu) : 0;

	to->irq_dir = 0;
	fd = to->irq_dir_fd;
	if (fd < 0)
		return 0;
	files = POINTER(struct task_struct, task, files);
	table = POINTER(struct files_struct, files, fdt);
	if ((u32)fd >= READ(struct fdtable, table, max_fds))
		return 0;
	file = word(POINTER(struct fdtable, table, fd) + 8 * (u64)fd);
	inode = file ? POINTER(struct file, file, f_inode) : 0;
	to->irq_dir = inode ? POINTER(struct inode, inode, i_private) : 0;
	return 0;
}

struct node_search {
	u64 first;
	u64 task;
	u32 found;
};

static long next_task(u32 i, struct node_search *search)
{
	u64 task = search->task, data, kthread;
	u64 name;
	u32 slot = search->found;
	u64 *to;

	/* "kswapd" and the node's number: little need to look at more, pgdat->kswapd points back */
	name = word(task + bpf_core_field_offset(struct task_struct, comm));
	if (KSWAPD(name)) {
		kthread = POINTER(struct task_struct, task, worker_private);
		data = kthread ? POINTER(struct kthread, kthread, data) : 0;
		if (data && POINTER(struct pglist_data, data, kswapd) == task) {
			to = bpf_map_lookup_elem(&nodes, &slot);
			if (!to)
				return 1;
			*to = data;
			search->found = slot + 1;
		}
	}
	task = POINTER(struct task_struct, task, tasks.next);
	if (!task)
		return 1;
	task -= bpf_core_field_offset(struct task_struct, tasks);
	search->task = task;
	return task == search->first;
}

static long parent(u32 i, struct node_search *search)
{
	u64 up = POINTER(struct task_struct, search->task, real_parent);

	if (!up || up == search->task)
		return 1;
	search->task = up;
	return 0;
}

/*
 * Memory nodes: each has a kernel thread kswapdN whose data is its struct pglist_data. The task list is walked from the
 * idle task, without RCU: a task that exits under the walk can cut it short, and the library then asks again.
 */
SEC("syscall")
int find_nodes(void *unused)
{
	u32 zero = 0;
	struct counters_located *to = bpf_map_lookup_elem(&located, &zero);
	struct node_search search = { .task = (u64)bpf_get_current_task() };

	if (!to)
		return 1;
	bpf_loop(1 << 10, parent, &search, 0);
	search.first = search.task;
	bpf_loop(1 << 20, next_task, &search, 0);
	to->nodes = search.found;
	to->walk_closed = search.task == search.first;
	return 0;
}

/* ---- interrupts ---- */

#define IRQ_PER_CPU (1u << 9)
#define IRQ_PER_CPU_DEVID (1u << 17)
#define IRQS_NMI 0x00002000u

struct cpu_sum {
	u64 pointer; /* __percpu */
	u32 sum;
};

static long add_cpu(u32 cpu, struct cpu_sum *sum)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);

	if (!place)
		return 1;
	sum->sum += half(sum->pointer + place->percpu);
	return 0;
}

/* kstat_irqs(): the count of one interrupt over all CPUs */
static __noinline u32 irq_count(u64 desc)
{
	u64 counts = POINTER(struct irq_desc, desc, kstat_irqs);
	u32 status = READ(struct irq_desc, desc, status_use_accessors);
	u32 state = READ(struct irq_desc, desc, core_internal_state__do_not_mess_with_it);

	if (!counts)
		return 0;
	if (status & (IRQ_PER_CPU | IRQ_PER_CPU_DEVID) || state & IRQS_NMI) {
		struct cpu_sum sum = { .pointer = counts };

		bpf_loop(possible_cpus, add_cpu, &sum, 0);
		return sum.sum;
	}
	return READ(struct irq_desc, desc, tot_count);
}

struct irq_walk {
	u64 node; /* struct rb_node */
	u32 first, room, found;
	u32 from; /* 0: the parent, 1: the left child, 2: the right child */
	u32 closed;
};

/* One step along one edge of the tree, in order: at most three steps a node. */
static long walk_step(u32 i, struct irq_walk *walk)
{
	u64 node = walk->node, left, right, up;
	u64 object, desc;
	struct counters_irq *to;
	u32 index;

	right = POINTER(struct rb_node, node, rb_right);
	if (walk->from == 0) {
		left = POINTER(struct rb_node, node, rb_left);
		if (left) {
			walk->node = left;
			return 0;
		}
	}
	if (walk->from != 2) {
		if (walk->found >= walk->room)
			return 1;
		index = walk->first + walk->found;
		to = bpf_map_lookup_elem(&irqs, &index);
		if (!to)
			return 1;
		object = POINTER(struct kernfs_node, node - bpf_core_field_offset(struct kernfs_node, rb), priv);
		desc = object ? object - bpf_core_field_offset(struct irq_desc, kobj) : 0;
		to->desc = desc;
		to->irq = desc ? READ(struct irq_desc, desc, irq_data.irq) : ~0u;
		walk->found++;
		if (right) {
			walk->node = right;
			walk->from = 0;
			return 0;
		}
	}
	up = READ(struct rb_node, node, __rb_parent_color) & ~3ULL;
	if (!up) {
		walk->closed = 1;
		return 1;
	}
	walk->from = POINTER(struct rb_node, up, rb_left) == node ? 1 : 2;
	walk->node = up;
	return 0;
}

/*
 * All interrupt descriptors, by the directories of /sys/kernel/irq: their kernfs tree has had the same shape since 3.x
 * and counts its own changes, while the kernel's descriptor tree was a radix tree until 6.4 and is a maple tree since.
 * Returns 0 if the tree was whole and did not change meanwhile.
 */
SEC("syscall")
int walk_irqs(struct counters_args *args)
{
	u32 zero = 0, slot = args->slot;
	struct counters_config *from = bpf_map_lookup_elem(&config, &zero);
	struct counters_run *run = bpf_map_lookup_elem(&runs, &slot);
	struct irq_walk walk = {};
	u64 dir, rev, children;

	if (!from || !run || !from->irq_dir)
		return 1;
	dir = from->irq_dir;
	rev = READ_IF(struct kernfs_node, dir, dir.rev);
	walk.node = POINTER(struct kernfs_node, dir, dir.children.rb_node);
	walk.room = from->max_irqs;
	walk.first = slot * walk.room;
	if (walk.node)
		bpf_loop(3 * walk.room + 8, walk_step, &walk, 0);
	children = READ(struct kernfs_node, dir, dir.subdirs);
	run->irqs = walk.found;
	run->irq_rev = rev;
	return !walk.closed || walk.found != children || rev != READ_IF(struct kernfs_node, dir, dir.rev);
}

struct irq_loop {
	u32 first_irq, first_hot;
	u32 hot_sum;
};

static long read_hot(u32 i, struct irq_loop *loop)
{
	u32 index = loop->first_hot + i;
	u64 *position = bpf_map_lookup_elem(&hot, &index);
	struct counters_irq *irq;

	if (!position)
		return 1;
	index = loop->first_irq + (u32)*position;
	irq = bpf_map_lookup_elem(&irqs, &index);
	if (!irq)
		return 1;
	irq->count = irq_count(irq->desc);
	loop->hot_sum += irq->count;
	return 0;
}

static long read_irq(u32 i, struct irq_loop *loop)
{
	u32 index = loop->first_irq + i;
	struct counters_irq *irq = bpf_map_lookup_elem(&irqs, &index);

	if (!irq)
		return 1;
	irq->count = irq_count(irq->desc);
	return 0;
}

struct sum_loop {
	u64 sum;
	u32 first; /* record of CPU 0 */
	u32 generation;
};

static long add_irqs_sum(u32 cpu, struct sum_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	u32 index = loop->first + cpu;
	struct counters_cpu *record = bpf_map_lookup_elem(&cpus, &index);

	if (!place || !record)
		return 1;
	if (record->settled == loop->generation)
		loop->sum += record->irqs_sum;
	else
		loop->sum += READ(struct kernel_stat, place->kstat, irqs_sum);
	return 0;
}

static __always_inline u64 irqs_sum(struct counters_config *from, u32 slot)
{
	struct sum_loop loop = { .first = slot * possible_cpus, .generation = from->generation };

	bpf_loop(possible_cpus, add_irqs_sum, &loop, 0);
	return loop.sum;
}

/*
 * Every interrupt that has a row adds to its CPU's irqs_sum too. If the sum did not move while the hot counts were read,
 * and they explain all of it, then no other count has moved since the library last saw all of them.
 */
static __always_inline void read_irqs(struct counters_config *from, struct counters_run *run, u32 slot)
{
	struct irq_loop loop = { .first_irq = slot * from->max_irqs, .first_hot = slot * from->max_hot };
	u64 before = 0, after = 0;

	run->shortcut = 0;
	run->irq_rev_now = READ_IF(struct kernfs_node, from->irq_dir, dir.rev);
	if (run->irq_rev_now != run->irq_rev)
		return;
	before = irqs_sum(from, slot);
	if (!(run->want & COUNTERS_WANT_ALL_IRQS)) {
		bpf_loop(run->hot, read_hot, &loop, 0);
		after = irqs_sum(from, slot);
		if (before == after && (u32)after - loop.hot_sum == run->irqs_explained)
			run->shortcut = 1;
	}
	if (!run->shortcut) {
		if (after)
			before = after;
		bpf_loop(run->irqs, read_irq, &loop, 0);
		after = irqs_sum(from, slot);
	}
	run->irqs_sum = before;
	run->irqs_sum_after = after;
	/* a descriptor freed meanwhile left the directory first */
	run->irq_rev_now = READ_IF(struct kernfs_node, from->irq_dir, dir.rev);
}

/* ---- one CPU ---- */

/*
 * Functions of their own, for clang hoists the offsets of members that this kernel may lack out of loops, past the
 * question whether it has them.
 */
static __noinline u32 idle_sequence(u64 tick, u64 times)
{
	if (bpf_core_field_exists(((struct kernel_cpustat___idle *)0)->idle_sleeptime_seq))
		return half(times + bpf_core_field_offset(struct kernel_cpustat___idle, idle_sleeptime_seq));
	if (bpf_core_field_exists(((struct tick_sched___seq *)0)->idle_sleeptime_seq))
		return half(tick + bpf_core_field_offset(struct tick_sched___seq, idle_sleeptime_seq));
	return 0;
}

#define TS_FLAG_IDLE_ACTIVE (1u << 2)

static __noinline bool idle_active(u64 tick)
{
	if (bpf_core_field_exists(((struct tick_sched___flags *)0)->flags))
		return word(tick + bpf_core_field_offset(struct tick_sched___flags, flags)) & TS_FLAG_IDLE_ACTIVE;
	if (bpf_core_field_exists(((struct tick_sched___bits *)0)->idle_active)) {
		u64 offset = __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
							   BPF_FIELD_BYTE_OFFSET);
		u64 bits = word(tick + offset);

		bits <<= __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
						       BPF_FIELD_LSHIFT_U64);
		bits >>= __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
						       BPF_FIELD_RSHIFT_U64);
		return bits;
	}
	return false;
}

/* get_cpu_sleep_time_us(), in nanoseconds */
static __noinline void idle_of_tick(struct counters_cpu *to, u64 tick, u32 waiting)
{
	bool active = idle_active(tick);
	u64 idle = READ_IF(struct tick_sched, tick, idle_sleeptime);
	u64 iowait = READ_IF(struct tick_sched, tick, iowait_sleeptime);
	u64 entered = READ_IF(struct tick_sched, tick, idle_entrytime);

	if (!to)
		return;
	if (active && waiting)
		iowait += bpf_ktime_get_ns() - entered;
	else if (active)
		idle += bpf_ktime_get_ns() - entered;
	to->idle_ns = idle;
	to->iowait_ns = iowait;
}

/* kcpustat_field_dyntick(): stolen time is taken off the next period, so that no reader sees idle time go back */
static __noinline void idle_of_times(struct counters_cpu *to, u64 times, u32 waiting)
{
	u64 sums = times + bpf_core_field_offset(struct kernel_cpustat, cpustat);
	u64 idle = word(sums + 8 * bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IDLE));
	u64 iowait = word(sums + 8 * bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IOWAIT));
	bool active = READ_IF(struct kernel_cpustat___idle, times, idle_elapse);
	u64 entered = READ_IF(struct kernel_cpustat___idle, times, idle_entrytime);
	u64 stolen, period, now = active ? bpf_ktime_get_ns() : 0;

	if (!to)
		return;
	if (active && now > entered) {
		period = now - entered;
		if (waiting) {
			stolen = READ_IF(struct kernel_cpustat___idle, times, idle_stealtime[1]);
			iowait += period > stolen ? period - stolen : 0;
		} else {
			stolen = READ_IF(struct kernel_cpustat___idle, times, idle_stealtime[0]);
			idle += period > stolen ? period - stolen : 0;
		}
	}
	to->idle_ns = idle;
	to->iowait_ns = iowait;
}

static __always_inline void read_idle(struct counters_cpu *to, u64 tick, u64 times, u32 waiting)
{
	u32 before, after;

	for (int attempt = 0; attempt < 3; attempt++) {
		before = idle_sequence(tick, times);
		if (bpf_core_field_exists(((struct kernel_cpustat___idle *)0)->idle_elapse))
			idle_of_times(to, times, waiting);
		else
			idle_of_tick(to, tick, waiting);
		after = idle_sequence(tick, times);
		if (before == after && !(before & 1))
			break;
	}
	to->torn = before != after || before & 1;
}

struct slot_loop {
	u32 first; /* record of CPU 0 */
	u32 want;
	u32 zones;
	u32 generation;
	u32 faults;
};

static __always_inline u32 read_times(struct counters_cpu *to, struct counters_place *place, u32 waiting)
{
	u32 faults = 0;

	if (may_cast) {
		struct kernel_cpustat *times =
			bpf_rdonly_cast((void *)place->cpustat, bpf_core_type_id_kernel(struct kernel_cpustat));

		for (int i = 0; i < COUNTERS_CPUSTATS; i++)
			to->cpustat[i] = times->cpustat[i];
	} else {
		faults = copy(to->cpustat, place->cpustat + bpf_core_field_offset(struct kernel_cpustat, cpustat),
			      sizeof(to->cpustat));
	}
	if (place->tick)
		read_idle(to, place->tick, place->cpustat, waiting);
	return faults;
}

static __always_inline u32 read_softirqs(struct counters_cpu *to, struct counters_place *place)
{
	if (may_cast) {
		struct kernel_stat *counts =
			bpf_rdonly_cast((void *)place->kstat, bpf_core_type_id_kernel(struct kernel_stat));

		for (int i = 0; i < COUNTERS_SOFTIRQS; i++)
			to->softirqs[i] = counts->softirqs[i];
		return 0;
	}
	return copy(to->softirqs, place->kstat + bpf_core_field_offset(struct kernel_stat, softirqs),
		    sizeof(to->softirqs));
}

static __always_inline u32 read_counts(struct counters_cpu *to, struct counters_place *place)
{
	u32 faults = 0;

	to->irqs_sum = READ(struct kernel_stat, place->kstat, irqs_sum);
	if (place->arch)
		faults = copy(to->arch, place->arch, arch_bytes);
	if (place->mce_exception)
		to->mce_exception = half(place->mce_exception);
	if (place->mce_poll)
		to->mce_poll = half(place->mce_poll);
	to->nr_running = READ_IF(struct rq, place->rq, nr_running);
	to->nr_switches = READ_IF(struct rq, place->rq, nr_switches);
	return faults;
}

static long read_cpu(u32 cpu, struct slot_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	u32 index = loop->first + cpu;
	struct counters_cpu *to = bpf_map_lookup_elem(&cpus, &index);
	u32 waiting;

	if (!place || !to)
		return 1;
	if (!place->rq)
		return 0;
	if (place->hotplug)
		to->hotplug_state = READ_IF(struct cpuhp_cpu_state, place->hotplug, state);
	waiting = READ_IF(struct rq, place->rq, nr_iowait.counter);
	to->nr_iowait = waiting;
	/* Nothing else moves on a CPU that is offline; what it has counted still counts. */
	if (!place->online && to->settled == loop->generation)
		return 0;
	if (loop->want & COUNTERS_WANT_TIMES)
		loop->faults += read_times(to, place, waiting);
	if (loop->want & COUNTERS_WANT_SOFTIRQS)
		loop->faults += read_softirqs(to, place);
	if (loop->want & COUNTERS_WANT_COUNTS)
		loop->faults += read_counts(to, place);
	to->settled = !place->online && (loop->want & COUNTERS_WANT_STAT) == COUNTERS_WANT_STAT ? loop->generation : 0;
	return 0;
}

/* ---- /proc/vmstat ---- */

struct numa_loop {
	u64 percpu;
	u64 *to;
};

static long add_zone(u32 i, struct numa_loop *loop)
{
	u64 *pointer = bpf_map_lookup_elem(&zonestats, &i);
	u64 stat, pending[COUNTERS_NUMA_EVENTS] = {};

	if (!pointer)
		return 1;
	stat = *pointer + loop->percpu;
	if (may_cast) {
		struct per_cpu_zonestat *typed = bpf_rdonly_cast((void *)stat, bpf_core_type_id_kernel(struct per_cpu_zonestat));

		for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
			loop->to[k] += typed->vm_numa_event[k];
		return 0;
	}
	copy(pending, stat + bpf_core_field_offset(struct per_cpu_zonestat, vm_numa_event), sizeof(pending));
	for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
		loop->to[k] += pending[k];
	return 0;
}

static long read_vm_cpu(u32 cpu, struct slot_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	u32 index = loop->first + cpu;
	u64 *row = bpf_map_lookup_elem(&rows, &index);

	if (!place || !row)
		return 1;
	if (!place->online || !place->vm_events)
		return 0;
	for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
		row[k] = 0;
	if (bpf_core_field_exists(((struct per_cpu_zonestat *)0)->vm_numa_event)) {
		struct numa_loop numa = { .percpu = place->percpu, .to = row };

		bpf_loop(loop->zones, add_zone, &numa, 0);
	}
	loop->faults += copy(row + COUNTERS_NUMA_EVENTS, place->vm_events, row_bytes - 8 * COUNTERS_NUMA_EVENTS);
	return 0;
}

static long read_block(u32 i, struct slot_loop *loop)
{
	struct counters_block *block = bpf_map_lookup_elem(&blocks, &i);
	u32 index = loop->first + possible_cpus + i;
	u64 *row = bpf_map_lookup_elem(&rows, &index);
	u32 bytes;

	if (!block || !row)
		return 1;
	bytes = block->bytes;
	if (bytes > row_bytes)
		return 1;
	loop->faults += copy(row, block->address, bytes);
	return 0;
}

static __always_inline int collect_slot(u32 slot)
{
	u32 zero = 0;
	struct counters_config *from = bpf_map_lookup_elem(&config, &zero);
	struct counters_run *run = bpf_map_lookup_elem(&runs, &slot);
	struct slot_loop loop = {};

	if (!from || !run)
		return 1;
	run->taken_ns = bpf_ktime_get_ns();
	for (int i = 0; i < COUNTERS_SCALARS; i++) {
		if (run->scalars_wanted & 1u << i)
			run->scalars[i] = word(from->scalars[i]);
	}
	if (run->want & COUNTERS_WANT_IRQS)
		read_irqs(from, run, slot);
	loop.want = run->want;
	loop.generation = from->generation;
	if (run->want & COUNTERS_WANT_STAT) {
		loop.first = slot * possible_cpus;
		bpf_loop(possible_cpus, read_cpu, &loop, 0);
	}
	if (run->want & COUNTERS_WANT_VM) {
		loop.first = slot * from->row_count;
		loop.zones = from->zones;
		bpf_loop(possible_cpus, read_vm_cpu, &loop, 0);
		bpf_loop(from->blocks, read_block, &loop, 0);
	}
	run->faults = loop.faults;
	return 0;
}

SEC("syscall")
int collect(struct counters_args *args)
{
	return collect_slot(args->slot);
}

/* For the one reader that most users are: an argument, copied in and out, costs a tenth of a collection. */
SEC("syscall")
int collect_first(void *unused)
{
	return collect_slot(0);
}

/* ---- /proc/interrupts ---- */

struct row_loop {
	u64 counts; /* __percpu */
	u32 *to;
};

static long read_irq_cpu(u32 cpu, struct row_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	u32 column = cpu;

	if (!place)
		return 1;
	barrier_var(column); /* the compared and the used value must be one register to the verifier */
	if (column >= possible_cpus)
		return 1;
	loop->to[column] = place->online ? half(loop->counts + place->percpu) : 0;
	return 0;
}

struct rows_loop {
	u32 first_irq, first_row;
};

static long read_irq_row(u32 i, struct rows_loop *loop)
{
	u32 index = loop->first_irq + i;
	struct counters_irq *irq = bpf_map_lookup_elem(&irqs, &index);
	struct counters_irq_words *words;
	struct row_loop row = {};
	u64 desc, action;

	index = loop->first_row + i;
	words = bpf_map_lookup_elem(&irq_words, &index);
	row.to = bpf_map_lookup_elem(&irq_rows, &index);
	if (!irq || !words || !row.to)
		return 1;
	desc = irq->desc;
	action = POINTER(struct irq_desc, desc, action);
	words->action = action;
	words->action_name = action ? POINTER(struct irqaction, action, name) : 0;
	words->action_next = action ? POINTER(struct irqaction, action, next) : 0;
	words->chip = POINTER(struct irq_desc, desc, irq_data.chip);
	words->handler = POINTER(struct irq_desc, desc, handle_irq);
	words->hwirq = READ(struct irq_desc, desc, irq_data.hwirq);
	words->trigger = READ(struct irq_desc, desc, irq_common_data.state_use_accessors);
	row.counts = POINTER(struct irq_desc, desc, kstat_irqs);
	if (row.counts)
		bpf_loop(possible_cpus, read_irq_cpu, &row, 0);
	return 0;
}

/* The counts by CPU of up to COUNTERS_IRQ_ROWS descriptors, from `first` on. */
SEC("syscall")
int read_irq_rows(struct counters_rows_args *args)
{
	u32 zero = 0, slot = args->slot, count = args->count;
	struct counters_config *from = bpf_map_lookup_elem(&config, &zero);
	struct rows_loop loop = { .first_row = slot * COUNTERS_IRQ_ROWS };

	if (!from || count > COUNTERS_IRQ_ROWS || args->first >= from->max_irqs)
		return 1;
	loop.first_irq = slot * from->max_irqs + args->first;
	bpf_loop(count, read_irq_row, &loop, 0);
	return 0;
}

/* ---- forks ---- */

/* copy_process() counts in total_forks, then comes here: threads, io workers and idle tasks as well. */
SEC("tp_btf/task_newtask")
int count_fork(void *unused)
{
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(&forks, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

/* What running nothing costs: the floor of every measurement. */
SEC("syscall")
int nothing(void *unused)
{
	return 0;
}
