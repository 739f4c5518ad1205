/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPU time, faults, switches and I/O, and related limits. */
#ifndef FASTPROC_TASKS_ACCOUNTING_H
#define FASTPROC_TASKS_ACCOUNTING_H

#include "io.h"
#include "waits.h"

static __always_inline void collect_cpu(struct task_struct *t, struct fp_cpu *c)
{
	struct signal_struct *signal = t->signal;

	/* exited threads have left their share in the signal struct; the walk adds living ones as it meets them */
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
	collect_waits(t, &c->run_delay_ns, &c->timeslices);
}

static __always_inline void fold_cpu(struct task_struct *t, struct fp_cpu *c)
{
	c->sampled_utime_ns += t->utime;
	c->sampled_stime_ns += t->stime;
	c->sum_exec_ns += t->se.sum_exec_runtime;
	c->gtime_ns += t->gtime;
	c->minflt += t->min_flt;
	c->majflt += t->maj_flt;
	fold_waits(t, &c->run_delay_ns, &c->timeslices);
}

/* A thread that is listed; the library calculates its user and system times from these. */
static __always_inline void collect_thread_cpu(struct task_struct *t, struct fp_thread_record *r)
{
	r->utime_ns = r->stime_ns = 0;
	r->gtime_ns = t->gtime;
	r->minflt = t->min_flt;
	r->majflt = t->maj_flt;
	r->nvcsw = t->nvcsw;
	r->nivcsw = t->nivcsw;
	r->sum_exec_ns = t->se.sum_exec_runtime;
	waits_of_thread(t, &r->run_delay_ns, &r->timeslices);
	r->sampled_utime_ns = t->utime;
	r->sampled_stime_ns = t->stime;
	r->prev_utime_ns = t->prev_cputime.utime;
	r->prev_stime_ns = t->prev_cputime.stime;
}

static __always_inline void collect_limits(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct files_struct *files = RELOAD(t->files);

	r->limits.rss_limit = t->signal->rlim[RLIMIT_RSS].rlim_cur;
	r->limits.fd_size = 0;
	if (files) {
		r->limits.fd_size = files->fdt->max_fds;
		if (REPLACED(t->files, files))
			r->identity.torn |= FP_TORN_FILES;
	}
}

static __always_inline void collect_io(struct task_struct *t, struct fp_record *r, u32 index)
{
	if (!bpf_core_field_exists(t->ioac))
		return;
	IO_SET(&r->io, =, t->signal->ioac);
	IO_SET(&r->io, +=, t->ioac);
}

#endif
