/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The long names of kernel threads. */
#ifndef FASTPROC_TASKS_NAME_H
#define FASTPROC_TASKS_NAME_H

static __always_inline void *kthread_of(struct task_struct *t)
{
	struct task_struct___5_16 *old = (void *)t;

	if (bpf_core_field_exists(t->worker_private))
		return t->worker_private;
	return old->set_child_tid;
}

/* The name of a kernel thread may be longer than comm: its full name, or for a workqueue worker its current work. */
static __always_inline void collect_name(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct fp_name_parts *n = &r->name;
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
		/* an exiting worker clears the flag before it frees what was read here */
		ordered();
		if (!(RELOAD(t->flags) & PF_WQ_WORKER))
			r->identity.torn |= FP_TORN_NAME;
		return;
	}
	if (!bpf_core_field_exists(((struct kthread *)0)->full_name))
		return;
	full = FIELD(struct kthread, kthread, full_name);
	if (full && bpf_probe_read_kernel_str(n->text, sizeof(n->text), full) > 0)
		n->kind = FP_NAME_FULL;
}

#endif
