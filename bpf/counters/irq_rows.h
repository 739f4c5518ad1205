/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_IRQ_ROWS_H
#define FASTPROC_COUNTERS_IRQ_ROWS_H

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
	barrier_var(column); /* the verifier must see the compared and the used value in one register */
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

/* The counts by CPU of up to COUNTERS_IRQ_ROWS descriptors, starting with `first`. */
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

#endif
