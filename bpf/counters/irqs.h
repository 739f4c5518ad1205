/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_IRQS_H
#define FASTPROC_COUNTERS_IRQS_H

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
	u32 room, found;
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
		index = walk->found;
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
 * Finds all interrupt descriptors through the directories of /sys/kernel/irq: their kernfs tree has had the same form
 * since 3.x and counts its own changes, while the kernel's tree of descriptors was a radix tree until 6.4 and is a
 * maple tree since. Returns 0 if the tree was complete and did not change meanwhile.
 */
SEC("syscall")
int walk_irqs(void *unused)
{
	u32 zero = 0;
	struct counters_config *from = bpf_map_lookup_elem(&config, &zero);
	struct counters_run *run = bpf_map_lookup_elem(&runs, &zero);
	struct irq_walk walk = {};
	u64 dir, rev, children;

	if (!from || !run || !from->irq_dir)
		return 1;
	dir = from->irq_dir;
	rev = READ_IF(struct kernfs_node, dir, dir.rev);
	ordered();
	walk.node = POINTER(struct kernfs_node, dir, dir.children.rb_node);
	walk.room = from->max_irqs;
	if (walk.node)
		bpf_loop(3 * walk.room + 8, walk_step, &walk, 0);
	ordered();
	children = READ(struct kernfs_node, dir, dir.subdirs);
	run->irqs = walk.found;
	run->irq_rev = rev;
	return !walk.closed || walk.found != children || rev != READ_IF(struct kernfs_node, dir, dir.rev);
}

static long read_hot(u32 i, u32 *hot_sum)
{
	u64 *position = bpf_map_lookup_elem(&hot, &i);
	struct counters_irq *irq;
	u32 index;

	if (!position)
		return 1;
	index = *position;
	irq = bpf_map_lookup_elem(&irqs, &index);
	if (!irq)
		return 1;
	irq->count = irq_count(irq->desc);
	*hot_sum += irq->count;
	return 0;
}

static long read_irq(u32 i, void *unused)
{
	struct counters_irq *irq = bpf_map_lookup_elem(&irqs, &i);

	if (!irq)
		return 1;
	irq->count = irq_count(irq->desc);
	return 0;
}

struct sum_loop {
	u64 sum;
	u32 generation;
};

static long add_irqs_sum(u32 cpu, struct sum_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	struct counters_cpu *record = bpf_map_lookup_elem(&cpus, &cpu);

	if (!place || !record)
		return 1;
	if (has_settled(record, place, loop->generation))
		loop->sum += record->irqs_sum;
	else
		loop->sum += READ(struct kernel_stat, place->kstat, irqs_sum);
	return 0;
}

static __always_inline u64 irqs_sum(struct counters_config *from)
{
	struct sum_loop loop = { .generation = from->generation };

	bpf_loop(possible_cpus, add_irqs_sum, &loop, 0);
	return loop.sum;
}

/*
 * Every interrupt that has a row also adds to its CPU's irqs_sum. If the sum did not move while the hot counts were
 * read, and they explain all of it, no other count has moved since the library last read all of them.
 */
static __always_inline void read_irqs(struct counters_config *from, struct counters_run *run)
{
	u64 before = 0, after = 0;
	u32 hot_sum = 0;

	run->shortcut = 0;
	run->irq_rev_now = READ_IF(struct kernfs_node, from->irq_dir, dir.rev);
	if (run->irq_rev_now != run->irq_rev)
		return;
	ordered();
	before = irqs_sum(from);
	ordered();
	if (!(run->want & COUNTERS_WANT_ALL_IRQS)) {
		bpf_loop(run->hot, read_hot, &hot_sum, 0);
		ordered();
		after = irqs_sum(from);
		if (before == after && (u32)after - hot_sum == run->irqs_explained)
			run->shortcut = 1;
	}
	if (!run->shortcut) {
		if (after)
			before = after;
		ordered();
		bpf_loop(run->irqs, read_irq, NULL, 0);
		ordered();
		after = irqs_sum(from);
	}
	run->irqs_sum = before;
	run->irqs_sum_after = after;
	/* a descriptor that was freed meanwhile left the directory before that */
	ordered();
	run->irq_rev_now = READ_IF(struct kernfs_node, from->irq_dir, dir.rev);
}

#endif
